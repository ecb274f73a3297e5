"""The base of sketches: parameters, the check before a merge, and state as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

from windowlib.errors import ModelError, StateVersionError

VERSION = 1


class Sketch:
    """A summary of a stream that takes values one by one and merges with others of its kind."""

    __slots__ = ()
    parameters: ClassVar[tuple[str, ...]]  # of the constructor, each kept under its name

    def add(self, value: Any, /) -> None:
        """Take one more value; nulls are for the caller to skip."""
        raise NotImplementedError

    def add_many(self, values: Sequence[Any]) -> None:
        """Take values of one type, none of them null: `add` for each, only faster."""
        for value in values:
            self.add(value)

    def merge(self, other: Self) -> Self:
        """A new sketch of both streams, this one first; neither changes."""
        raise NotImplementedError

    def copy(self) -> Self:
        """A sketch of the same stream that goes its own way."""
        raise NotImplementedError

    def snapshot(self) -> dict[str, Any]:
        """The state as plain data, for `restore`."""
        return {"v": VERSION, "sketch": type(self).__name__, **self._parameters(), **self._save()}

    @classmethod
    def restore(cls, state: Mapping[str, Any]) -> Self:
        """The sketch that `snapshot` was taken of."""
        if not isinstance(state, Mapping) or state.get("sketch") != cls.__name__:
            kind = cls.__name__
            msg = (
                f"{kind}.restore(state): this is not a snapshot of a {kind}. Pass what snapshot() "
                "gave."
            )
            raise StateVersionError(msg)
        if state.get("v") != VERSION:
            msg = (
                f"{cls.__name__}.restore(state): the snapshot has format {state.get('v')!r}, this "
                f"version reads {VERSION}. Use the version that wrote it, or start afresh."
            )
            raise StateVersionError(msg)
        try:
            sketch = cls(**{name: state[name] for name in cls.parameters})
            sketch._load(state)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            msg = (
                f"{cls.__name__}.restore(state): the snapshot is damaged ({error!r}). "
                "Take it from snapshot() whole."
            )
            raise StateVersionError(msg) from error
        return sketch

    def _save(self) -> dict[str, Any]:
        """The state besides the parameters."""
        raise NotImplementedError

    def _load(self, state: Mapping[str, Any]) -> None:
        """Take over what `_save` gave; ValueError if it cannot be so."""
        raise NotImplementedError

    def _parameters(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.parameters}

    def _require_alike(self, other: object) -> None:
        if type(other) is not type(self):
            kind = type(self).__name__
            msg = f"{self._call()}.merge({other!r}): not a {kind}. Merge sketches of one kind."
            raise ModelError(msg)
        if other._parameters() != self._parameters():
            msg = (
                f"{self._call()}.merge({other._call()}): they differ in size, so their states do "
                "not fit together. Build both alike."
            )
            raise ModelError(msg)

    def _call(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self._parameters().items())
        return f"{type(self).__name__}({given})"


def require_whole(sketch: str, name: str, value: object, low: int, high: int, default: int) -> None:
    """Refuse a parameter that is no whole number between `low` and `high`."""
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        msg = (
            f"{sketch}({name}={value!r}): {name} must be a whole number from {low} to {high}, "
            f"such as {name}={default}."
        )
        raise ModelError(msg)
