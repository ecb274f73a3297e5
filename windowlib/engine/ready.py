"""The lines that fold one tuple into ready-made summaries, in the slots of its subwindow."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from windowlib.folds import Fold
from windowlib.subwindow import Subwindow, place
from windowlib.summarizers import Plan


def update_lines(plan: Plan, sample: Any, names: dict[str, Any]) -> Iterator[str]:
    """Source that folds `t` into `s`, which holds `n` tuples so far.

    All arithmetic comes before all stores, so a value that raises (a null, an odd type) leaves
    the state as it was, and `slow` folds the tuple the readable way.
    """
    if not any(plan.getters):
        return
    names["slow"] = _slow_path(plan)
    reads, value_of = _reads(plan, sample, names)
    texts = list(_texts(plan, value_of))
    yield "try:"
    yield from (f"    {line}" for line in reads)
    yield "    if n:"
    yield from (f"        {compute}" for _, compute, _ in texts)
    yield from (f"        {store}" for _, _, store in texts)
    yield "    else:"
    yield from (f"        {first}" for first, _, _ in texts)
    yield "except Exception: slow(s, t)"


def _slow_path(plan: Plan) -> Callable[[Subwindow, Any], None]:
    def slow(s: Subwindow, tuple_: Any) -> None:
        ready = plan.load(s)
        ready.insert(tuple_)
        plan.store(s, ready)

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


def _texts(plan: Plan, value_of: dict[Any, str]) -> Iterator[tuple[str, str, str]]:
    """The fold's texts with their own places, locals and value."""
    used = 0
    for i, (fold, getter) in enumerate(zip(plan.folds, plan.getters, strict=True)):
        if getter is None:
            continue
        value = value_of[getter.attribute]
        yield tuple(  # type: ignore[misc]  # three of them
            _fill(text, fold, used, i, value) for text in (fold.first, fold.compute, fold.store)
        )
        used += len(fold.empty)


def _fill(text: str, fold: Fold, used: int, i: int, value: str) -> str:
    places = [f"s.{place(used + j)}" for j in range(len(fold.empty))]
    text = re.sub(r"\bx\b", value, text).format(*places)
    return re.sub(r"\b_(\d)", rf"_{i}_\1", text)
