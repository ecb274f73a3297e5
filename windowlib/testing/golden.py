"""Golden files: text that a test once made, was looked at, and is kept to be compared with."""

from __future__ import annotations

import difflib
import os
from pathlib import Path

VARIABLE = "WINDOWLIB_UPDATE_GOLDEN"
HOW = f"Run pytest --update-golden, or set {VARIABLE}=1, look at the file, and commit it."
_asked = False


def update_all(asked: bool) -> None:
    """Say whether golden files are to be written from now on; for test runners."""
    global _asked
    _asked = asked


def updating() -> bool:
    """Whether golden files are to be written: somebody asked for it, or the environment does."""
    return _asked or os.environ.get(VARIABLE, "0") not in ("", "0")


def assert_golden(text: str, path: str | Path, *, update: bool | None = None) -> None:
    """Compare a text with the one that is kept in a file.

    Args:
        text: what was made now.
        path: the file; a relative path starts where the process runs.
        update: whether the file is written instead. Unless given, it is if pytest was called with
            `--update-golden`, or if the environment has WINDOWLIB_UPDATE_GOLDEN=1.
    """
    __tracebackhide__ = True
    path, text = Path(path), text if text.endswith("\n") else f"{text}\n"
    if updating() if update is None else update:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
        return
    if not path.exists():
        raise AssertionError(f"{path}: there is no such golden file. {HOW} It would be:\n{text}")
    kept = path.read_text(encoding="utf-8")
    if kept != text:
        diff = difflib.unified_diff(
            kept.splitlines(), text.splitlines(), f"{path} (kept)", "made now", lineterm=""
        )
        msg = "\n".join([f"{path}: the text is another one now.", *diff, f"If it is right: {HOW}"])
        raise AssertionError(msg)
