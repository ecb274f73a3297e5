"""From what a user passes to a container to its specification."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from windowlib.errors import PolicyError
from windowlib.policies import PartitionEviction, Policy
from windowlib.spec import KEY, By, Spec
from windowlib.spl import parse


def combine(
    spec: Spec | str | None,
    make: Callable[..., Spec],
    evict: Policy | None,
    by: By | Sequence[str] | None,
    forget: PartitionEviction | None,
    **more: Policy | None,
) -> tuple[Spec | str, bool]:
    """A specification from either a spec or policies, and whether keys are the caller's choice."""
    name = f"{make.__name__}Window"
    given = [evict, forget, *more.values()]
    if isinstance(spec, str) and not any(given):
        return parse(spec, by=by), False
    if spec is not None:
        if by is not None or any(value is not None for value in given):
            msg = f"{name}(spec, ...): give a specification or policies (evict=, ...), not both."
            raise PolicyError(msg)
        return spec, False
    if evict is None:
        msg = f"{name}(): give a specification or evict=, such as evict=Count(10)."
        raise PolicyError(msg)
    return make(evict, by=KEY if by is None else by, forget=forget, **more), by is None
