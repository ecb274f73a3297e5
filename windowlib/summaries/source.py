"""Ready-made summaries as Python source: folding a tuple in, merging states, reading results."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from types import CodeType
from typing import TYPE_CHECKING, Any, TypeVar

from windowlib.summaries.folds import HIGHEST, LOWEST, Fold

if TYPE_CHECKING:
    from windowlib.summaries.summarizers import Plan
from windowlib.window.subwindow import Subwindow, place

P = TypeVar("P")

Row = tuple[Any, ...]
"""The places of state of all folds of a plan."""


def update_lines(plan: Plan, sample: Any, names: dict[str, Any]) -> Iterator[str]:
    """Source that folds `t` into the slots of `s`.

    A value that raises (a null, an unusual type) is left to `slow`, which folds it with the methods
    of the folds, or refuses it. So nothing may have been stored by then.
    """
    if not any(plan.getters):
        return
    names["slow"] = _slow_path(plan)
    yield "try:"
    yield from (f"    {line}" for line in _fold_lines(plan, sample, names, "s."))
    yield "except Exception: slow(s, t)"


def _fold_lines(
    plan: Plan, sample: Any, names: dict[str, Any], prefix: str, *, earlier: bool = False
) -> list[str]:
    """Source that folds `t` into places whose names start with `prefix`.

    Args:
        plan: the summarizers.
        sample: a tuple like `t`.
        names: gets what the source uses.
        prefix: in front of the names of places.
        earlier: whether `t` came before what is in the places.
    """
    names.update(HIGHEST=HIGHEST, LOWEST=LOWEST)
    names.update((f"fold{i}", fold) for i, fold in enumerate(plan.folds))
    reads, value_of = _reads(plan, sample, names)
    texts = list(_texts(plan, value_of, prefix, earlier))
    # All arithmetic comes before all stores; between them, one fold may do both at once. Best one
    # that compares, because a comparison costs least where it is tested.
    inplace = [i for i, text in enumerate(texts) if text[2]]
    last = max(inplace, key=lambda i: texts[i][2].startswith("if "), default=None)
    others = [text for i, text in enumerate(texts) if i != last]
    lines = [*reads, *(text[0] for text in others)]
    lines += [] if last is None else [texts[last][2]]
    lines += [text[1] for text in others]
    if len(lines) == 2 and lines[1].count("x0") == 1:  # used once: no need to name the value
        lines = [lines[1].replace("x0", lines[0].partition(" = ")[2])]
    return [line for text in lines for line in text.split("\n") if line]


def _slow_path(plan: Plan) -> Callable[[Subwindow, Any], None]:
    def slow(s: Subwindow, tuple_: Any) -> None:
        ready = plan.load(s)
        ready.insert(tuple_)
        plan.store(s, ready)
        s.n -= 1  # the insert counts the tuple itself
        plan.irregular = True

    return slow


def _reads(plan: Plan, sample: Any, names: dict[str, Any]) -> tuple[list[str], dict[Any, str]]:
    """One line per attribute that is read, and the variable that each is read into."""
    lines: list[str] = []
    variables: dict[Any, str] = {}
    for getter in plan.getters:
        if getter is None or getter.attribute in variables:
            continue
        variable = variables[getter.attribute] = f"x{len(variables)}"
        names[f"get_{variable}"] = getter
        lines.append(f"{variable} = {getter.inline('t', sample) or f'get_{variable}(t)'}")
    return lines, variables


def _texts(
    plan: Plan, value_of: dict[Any, str], prefix: str, earlier: bool
) -> Iterator[tuple[str, str, str]]:
    """The source of each fold, with its own places, locals and value."""
    used = 0
    for i, (fold, getter) in enumerate(zip(plan.folds, plan.getters, strict=True)):
        if getter is None:
            continue
        value = value_of[getter.attribute]
        compute, store, inplace = fold.compute, fold.store, fold.inplace
        if earlier and fold.earlier is not None:
            compute, store, inplace = fold.earlier
        if not compute and not store and fold.empty:  # no text of its own
            row = row_text([f"{{{j}}}" for j in range(len(fold.empty))])
            compute, store = f"_0 = F.step({row}, x)", f"{row} = _0"
        yield tuple(  # type: ignore[misc]  # three of them
            _fill(text, fold, used, i, value, prefix) for text in (compute, store, inplace)
        )
        used += len(fold.empty)


def _fill(text: str, fold: Fold, used: int, i: int, value: str, prefix: str) -> str:
    places = [f"{prefix}{place(used + j)}" for j in range(len(fold.empty))]
    text = re.sub(r"\bx\b", value, text).format(*places)
    text = re.sub(r"\bF\b", f"fold{i}", text)
    return re.sub(r"\b_(\d)", rf"_{i}_\1", text)


def folder(plan: Plan, sample: Any) -> tuple[Callable[..., Row], Callable[..., list[Row]]]:
    """Two functions over tuples like `sample`.

    The first folds tuples into a row of places. The second takes tuples, the newest first, and
    returns, for each, the row of it and all newer ones: the front of two stacks.
    """
    row = row_text([place(i) for i in range(plan.places)])
    if not any(plan.getters):  # nothing to fold, but a row for every tuple all the same
        return (lambda tuples, row: row), (lambda tuples: [plan.start for _ in tuples])
    names: dict[str, Any] = {}
    loop = _fold_loop(plan, sample, names)
    run = function("tuples, row", [f"{row} = row", *loop, f"return {row}"], dict(names))
    if all(f.commutative for f in plan.folds):
        loop = _fold_loop(plan, sample, names, earlier=True)
        kept = [f"{row} = start", "front = []", *loop, f"    front.append({row})", "return front"]
        return run, function("tuples", kept, dict(names))
    merge = merger(plan)

    def suffixes(tuples: Iterable[Any]) -> list[Row]:
        front: list[Row] = []
        for t in tuples:
            alone = run((t,), plan.start)
            front.append(merge(alone, front[-1]) if front else alone)
        return front

    return run, suffixes


def _fold_loop(
    plan: Plan, sample: Any, names: dict[str, Any], *, earlier: bool = False
) -> list[str]:
    """Source that folds `tuples` into places that are local names; there must be some to read."""
    slow = _slow_earlier(plan) if earlier else _slow_row(plan)
    names.update(slow=slow, start=plan.start)
    row = row_text([place(i) for i in range(plan.places)])
    lines = _fold_lines(plan, sample, names, "", earlier=earlier)
    fold = ["try:", *(f"    {line}" for line in lines)]
    fold += [f"except Exception: {row} = slow({row}, t)"]
    return ["for t in tuples:", *(f"    {line}" for line in fold)]


def tuple_reader(plan: Plan, sample: Any) -> Callable[[Sequence[Any]], Any]:
    """A function from tuples like `sample` to the value of all of them, folded anew."""
    places = [place(i) for i in range(plan.places)]
    names = value_methods(plan) | {"start": plan.start}
    loop = _fold_loop(plan, sample, names) if any(plan.getters) else []
    lines = [f"{row_text(places)} = start", *loop, "n = len(tuples)", *_value_lines(plan, places)]
    return function("tuples", lines, names)


def _slow_row(plan: Plan) -> Callable[[Row, Any], Row]:
    def slow(row: Row, tuple_: Any) -> Row:
        ready = plan()
        ready.states = plan.states(row)
        ready.insert(tuple_)
        plan.irregular = True
        return tuple(value for state in ready.states for value in state)

    return slow


def _slow_earlier(plan: Plan) -> Callable[[Row, Any], Row]:
    alone, merge = _slow_row(plan), merger(plan)
    return lambda row, tuple_: merge(alone(plan.start, tuple_), row)


def merger(plan: Plan) -> Callable[[Row, Row], Row]:
    """A function that merges two rows, the earlier first, by the folds' own methods."""
    parts = []
    for i, numbers in _fold_places(plan, range(plan.places)):
        a, b = (row_text(place_names(run, numbers)) for run in "ab")
        parts.append(f"*merge{i}({a}, {b})")
    lines = [f"{row_text(place_names(run, range(plan.places)))} = {run}" for run in "ab"]
    names = {f"merge{i}": fold.merge for i, fold in enumerate(plan.folds)}
    return function("a, b", [*lines, f"return {row_text(parts)}"], names)


def slot_reader(plan: Plan) -> Callable[[Subwindow], Any]:
    """A function from a subwindow to the value of the summaries in its slots."""
    names = [f"s.{place(i)}" for i in range(plan.places)]
    return function("s", ["n = s.n", *_value_lines(plan, names)], value_methods(plan))


def row_reader(plan: Plan) -> Callable[[int, Row], list[Any]]:
    """A function from a number of tuples and their row to the values of all folds."""
    names = [place(i) for i in range(plan.places)]
    lines = [f"{row_text(names)} = row", *_value_lines(plan, names)]
    return function("n, row", lines, value_methods(plan))


def pair_reader(plan: Plan) -> Callable[[int, Row, Row], list[Any]]:
    """A function from a number of tuples and two rows, the earlier first, to their values."""
    names = [place(i) for i in range(plan.places)]
    a, b = (row_text(place_names(run, range(plan.places))) for run in "ab")
    lines: list[str] = []
    if (merged := merged_texts(plan)) is not None:
        lines += ["try:", "    if not plan.irregular:"]
        lines += [f"        {a} = a; {b} = b; return {regular_text(plan, merged)}"]
        lines += ["except Exception: plan.irregular = True"]  # types that do not mix, perhaps
    lines += [f"{row_text(names)} = merge(a, b)", f"return {general_text(plan, names)}"]
    return function("n, a, b", lines, value_methods(plan) | {"merge": merger(plan)})


def _value_lines(plan: Plan, names: list[str]) -> list[str]:
    """Source that returns the value of `n` tuples, given the names of the places."""
    general, regular = general_text(plan, names), regular_text(plan, names)
    return [f"if plan.irregular: return {general}", f"return {regular}"]


def general_text(plan: Plan, places: list[str]) -> str:
    """Source of the value of any `n` tuples, by the folds' own methods."""
    shares = _fold_places(plan, places)
    return _named_text(plan, [f"value{i}(n, {row_text(share)})" for i, share in shares])


def regular_text(plan: Plan, places: list[str]) -> str:
    """Source of the value of `n` regular tuples."""
    texts = []
    for i, share in _fold_places(plan, places):
        read = plan.folds[i].read.format(*share, m=f"_m{i}")
        texts.append(read or f"value{i}(n, {row_text(share)})")
    return _named_text(plan, texts)


def merged_texts(plan: Plan) -> list[str] | None:
    """Source of each merged place, of rows a0, … (earlier) and b0, …; None: a fold has none."""
    texts: list[str] = []
    for i, numbers in _fold_places(plan, range(plan.places)):
        local = {f"{run}{j}": f"{run}{k}" for run in "ab" for j, k in enumerate(numbers)}
        texts += [f"({t.format(**local, m=f'_m{i}')})" for t in plan.folds[i].merged]
    return texts if len(texts) == plan.places else None


def value_methods(plan: Plan) -> dict[str, Any]:
    """The plan and the `value` methods that the generated source uses, by name."""
    values = {f"value{i}": fold.value for i, fold in enumerate(plan.folds)}
    return {"plan": plan, **values}


def place_names(run: str, places: Iterable[int]) -> list[str]:
    """The variables of a row's places: a0, a1 and so on."""
    return [f"{run}{i}" for i in places]


def row_text(parts: list[str]) -> str:
    """Source of a tuple."""
    return f"({''.join(f'{part}, ' for part in parts)})"


def _fold_places(plan: Plan, places: Iterable[P]) -> Iterator[tuple[int, list[P]]]:
    """Each fold's number, and its places."""
    left = iter(places)
    for i, fold in enumerate(plan.folds):
        yield i, [next(left) for _ in fold.empty]


def function(arguments: str, body: list[str], scope: dict[str, Any]) -> Callable[..., Any]:
    """Compile source lines as a function."""
    exec(compiled("\n".join([f"def made({arguments}):", *(f"    {line}" for line in body)])), scope)
    made: Callable[..., Any] = scope["made"]
    return made


@lru_cache(maxsize=1024)
def compiled(text: str) -> CodeType:
    """Compile a source text, once for all windows that have the same."""
    return compile(text, "<windowlib>", "exec")


def _named_text(plan: Plan, parts: list[str]) -> str:
    if plan.names is None:
        return parts[0]
    if not plan.names:
        return f"[{', '.join(parts)}]"
    named = zip(plan.names, parts, strict=True)
    return "{" + ", ".join(f"{name!r}: {part}" for name, part in named) + "}"
