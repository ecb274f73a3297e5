"""Examples in docstrings as code: for Markdown, `>>>` would be a quotation in a quotation."""

from __future__ import annotations

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"^>>> .*?(?=\n\s*\n|\Z)", re.MULTILINE | re.DOTALL)


def fenced(text: str) -> str:
    r"""A docstring whose examples are fenced, without what is there for doctest.

    >>> fenced("A sum.\n\n>>> 1 + 1  # doctest: +ELLIPSIS\n2")
    'A sum.\n\n```pycon\n>>> 1 + 1\n2\n```'
    """
    text = re.sub(r"  # doctest:.*", "", text)
    return EXAMPLE.sub(lambda match: f"```pycon\n{match[0].rstrip()}\n```", text)


class FencedExamples(griffe.Extension):
    """Fences the examples of every docstring that is read."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Once for each object."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)
