"""Preferences by their definitions, pair by pair; the smaller, the better."""


def dominates(q, p):
    pairs = list(zip(q, p, strict=True))
    return all(a <= b for a, b in pairs) and any(a < b for a, b in pairs)


def k_dominates(q, p, k):
    """Whether q is not worse than p in k dimensions, and better in one of these."""
    pairs = list(zip(q, p, strict=True))
    return sum(a <= b for a, b in pairs) >= k and any(a < b for a, b in pairs)


def skyline(points):
    return [i for i, p in enumerate(points) if not any(dominates(q, p) for q in points)]


def k_dominant(points, k):
    return [i for i, p in enumerate(points) if not any(k_dominates(q, p, k) for q in points)]


def factor(p, points):
    """The largest k for which a point k-dominates p."""
    ks = range(1, len(p) + 1)
    return max((k for k in ks if any(k_dominates(q, p, k) for q in points)), default=0)


def smallest_k(points, delta):
    """The smallest k whose k-dominant skyline has delta points, or else that of the skyline."""
    dimensions = len(points[0])
    for k in range(1, dimensions + 1):
        if len(k_dominant(points, k)) >= delta:
            return k
    return dimensions


def top_delta(points, delta, exact):
    """The places, their factors, and k."""
    k = smallest_k(points, delta)
    found = k_dominant(points, k)
    factors = {i: factor(points[i], points) for i in found}
    if exact:
        found = sorted(sorted(found, key=lambda i: (factors[i], i))[:delta])
    return [(i, factors[i], k) for i in found]


def top_k(scores, k):
    return sorted(sorted(range(len(scores)), key=lambda i: (scores[i], i))[:k])
