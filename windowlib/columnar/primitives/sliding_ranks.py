"""The k-th smallest keys of a window that slides from key to key, with numpy.

Of the keys that a block of neighbouring windows has together, each window lacks as many as the
block has other windows. So its k-th smallest key is the k-th smallest of all, or behind that by no
more than it lacks. These are the *candidates* of a block, with one more for the key that follows.
The candidates of a smaller block are among them: those that it has, from the one on that has as
many before it as the smaller block lacks keys below all candidates.

In the smallest blocks, of 32 windows, each candidate is a bit, and each window a word that says
which of them it has. From a word to the next, the bits of the key that leaves and of the one that
enters change. The k-th smallest key is the bit with as many before it in the word as the window
lacks keys below all candidates.
"""

from __future__ import annotations

import numpy as np

from windowlib.columnar.primitives.grouping import Array, Places, stable_argsort

SIZES = (32, 256, 4096, 32768)
"""How many windows blocks have; the smallest as many as a word has bits."""
BITS = SIZES[0]
SHORTEST, LONGEST = 2 * BITS, (1 << 16) - SIZES[-1] - SIZES[-2]
"""Of windows: a key must not enter and leave in a small block, and 16 bits must count places."""
MOST = 2
"""Keys from the k-th on that are found."""

WORD, SHORT = np.uint32, np.uint16


def slides(lo: Places, hi: Places, first: Places, count: Places) -> bool:
    """Whether extents are a window that slides from key to key, and all want the same few keys."""
    if len(lo) < SIZES[1] or int(lo[-1] - lo[0]) != len(lo) - 1:
        return False
    length = int(hi[0] - lo[0])
    return (
        SHORTEST <= length <= LONGEST
        and int(count[0]) <= MOST
        and bool((lo[1:] > lo[:-1]).all() and (hi - lo == length).all())
        and bool((first == first[0]).all() and (count == count[0]).all())
    )


def ranked(keys: Array, length: int, place: int, count: int) -> Array:
    """For each window the keys that are sorted into the places from `place` on, `count` of them.

    >>> ranked(np.arange(1000) * 7 % 100, 100, 95, 2)[:2].tolist()
    [[95, 96], [95, 96]]
    """
    windows = len(keys) - length + 1
    found = np.empty((count, windows), keys.dtype)
    last = int(place == length - 1)  # nothing follows it: it is what follows the one before
    for start in range(0, windows, SIZES[-1]):
        some = min(windows - start, SIZES[-1])
        unit = max([size for size in SIZES if size <= some], default=BITS)
        block = -(-some // unit) * unit
        pair = _block(keys[start : start + block + length - 1], length, block, place - last)
        found[:, start : start + some] = pair[last : last + count, :some]
    return found.T


def _block(keys: Array, length: int, windows: int, place: int) -> Array:
    """The keys of each window at a place and the next; windows behind the keys have anything."""
    size = windows + length - 1
    order = stable_argsort(keys)
    if len(keys) < size:  # as if the greatest keys followed
        order = np.append(order, np.arange(len(keys), size))
    ranks = np.empty(size, SHORT)
    ranks[order] = np.arange(size, dtype=SHORT)
    candidates, lowest = order[None, place : place + windows + 1].astype(SHORT), np.array([place])
    edges = ranks[:windows], ranks[length - 1 :]  # where windows begin, and where they end
    for smaller in reversed([each for each in SIZES if each < windows]):
        begins, ends = (_counts(_below(each, lowest), smaller) for each in edges)
        lacks = _lacks(begins, ends, np.dtype(np.intp))
        candidates = _within(candidates, lacks.T.ravel(), smaller, length)
        lowest = ranks.take(candidates[:, 0] + np.arange(0, windows, smaller))
    begins, ends = (_below(each, lowest).T.view(np.uint8) for each in edges)
    lacks = _lacks(begins, ends, np.dtype(np.uint8))
    own = keys.take(candidates + np.arange(0, windows, BITS)[:, None], mode="clip")
    starts = np.arange(0, own.size, own.shape[1])[:, None]
    found = np.empty((MOST, windows), keys.dtype)
    pair = bits(_words(candidates[:, :BITS], length), lacks)
    for row, bit in zip(found, pair, strict=True):
        own.take(starts + bit.T, out=row.reshape(bit.T.shape), mode="clip")
    return found


def _below(ranks: Array, lowest: Array) -> Array:
    """For each block which ranks are below its candidates."""
    found: Array = ranks.reshape(len(lowest), -1) < lowest.astype(SHORT)[:, None]
    return found


def _counts(flags: Array, smaller: int) -> Array:
    """How many flags are set in each smaller block; a column for each block."""
    words = np.bitwise_count(np.packbits(flags).view(WORD))
    parts = words.reshape(len(flags), -1, smaller // BITS)
    found: Array = parts.sum(axis=2, dtype=np.intp).T
    return found


def _lacks(begins: Array, ends: Array, dtype: np.dtype) -> Array:
    """How many keys below all candidates each part of a block lacks.

    A row is a part: a smaller block, or a window. Keys at its beginning are lacked by later parts,
    keys at its end by earlier ones.
    """
    found = np.empty(begins.shape, dtype)
    found[0] = ends[1:].sum(axis=0, dtype=dtype)
    np.subtract(begins[:-1], ends[1:], out=found[1:], dtype=dtype)
    for i in range(1, len(found)):
        found[i] += found[i - 1]
    return found


def _within(candidates: Array, lacks: Places, smaller: int, length: int) -> Array:
    """The candidates of smaller blocks: places from where each of these begins."""
    blocks, width = candidates.shape
    parts = len(lacks) // blocks
    begins = np.arange(0, parts * smaller, smaller).astype(SHORT)
    places = candidates[:, None] - begins[:, None]  # those before it are huge without a sign
    inside = np.flatnonzero(places < SHORT(smaller + length - 1))
    first = np.searchsorted(inside, np.arange(0, places.size, width)) + lacks
    chosen = inside.take(first[:, None] + np.arange(smaller + 1), mode="clip")
    found: Array = places.ravel().take(chosen)
    return found


def _words(candidates: Array, length: int) -> Array:
    """The candidates that each window has; a column for each block, and a bit for each candidate.

    A key that leaves is in no window from the next on, one that enters in all from its own on.
    """
    blocks = len(candidates)
    changes = np.zeros((2 * BITS, blocks), WORD)
    leaves = np.minimum(candidates, SHORT(BITS - 1))  # the last place has all that stay
    enters = candidates - SHORT(length)
    rows = np.where(enters < SHORT(BITS - 1), enters + SHORT(BITS), leaves).astype(np.intp)
    rows *= blocks
    rows += np.arange(blocks)[:, None]
    changes.ravel()[rows] = WORD(1) << np.arange(BITS, dtype=WORD)
    words = np.empty((BITS, blocks), WORD)
    there = np.packbits(candidates < SHORT(length), axis=1, bitorder="little")
    words[0] = there.view("<u4").ravel()
    np.bitwise_xor(changes[: BITS - 1], changes[BITS:-1], out=words[1:])
    for i in range(1, BITS):
        words[i] ^= words[i - 1]
    return words


def bits(words: Array, before: Array) -> tuple[Array, Array]:
    """For each word the bit that has so many before it, and the next; the width if there is none.

    >>> [bit.tolist() for bit in bits(np.array([0b1011_0000], np.uint32), np.array([1]))]
    [[5], [7]]
    """
    word = words.dtype.type
    bit = _select(words.ravel(), before.ravel().astype(word)).reshape(words.shape)
    rest = ~word(1) << bit
    rest &= words
    lowest = np.negative(rest)
    lowest &= rest
    lowest -= word(1)
    return bit.astype(np.uint8), np.bitwise_count(lowest)


def _select(words: Array, before: Array) -> Array:
    """For each word the bit that has so many before it: first its byte, by how many each has."""
    word, all_bits = words.dtype.type, int(np.iinfo(words.dtype).max)
    ones, signs = word(all_bits // 0xFF), word(all_bits // 0xFF << 7)  # in each byte
    pairs, fours = word(all_bits // 5), word(all_bits // 17)  # 2 bits of 4, and 4 of 8
    sums: Array = words >> word(1)
    sums &= word(all_bits // 3)
    sums = words - sums
    part = sums >> word(2)
    part &= pairs
    sums &= pairs
    sums += part
    np.right_shift(sums, word(4), out=part)
    sums += part
    sums &= fours
    sums *= ones  # each byte has the bits up to its end
    np.multiply(before, ones, out=part)
    part |= signs
    part -= sums
    part &= signs  # a sign stays with bytes that end before the bit
    shift: Array = np.bitwise_count(part).astype(word)
    shift <<= word(3)
    sums <<= word(8)
    sums >>= shift
    sums &= word(0xFF)
    np.right_shift(words, shift, out=part)
    part &= word(0xFF)
    part <<= word(3)
    part += before
    part -= sums
    shift += IN_BYTE.take(part.astype(np.intp))
    return shift


def _in_byte() -> Array:
    """For each byte, which of its bits has 0, 1, … 7 before it, if there is such a bit."""
    table = np.zeros((256, 8), np.uint8)
    for byte in range(256):
        bits = [bit for bit in range(8) if byte >> bit & 1]
        table[byte, : len(bits)] = bits
    return table.ravel()


IN_BYTE = _in_byte()
