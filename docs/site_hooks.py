"""What the site needs beside the pages: the README as a page, and links that leave the folder."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)")


def readme() -> str:
    """The README as a page of this folder."""
    return (ROOT / "README.md").read_text(encoding="utf-8").replace("](docs/", "](")


def inside(text: str, folder: Path) -> str:
    """A page whose links to files elsewhere in the repository are plain text.

    >>> inside("[a](b.md) [code](../examples/vwap.py) [top](../README.md)", ROOT / "docs")
    '[a](b.md) `code` [top](readme.md)'
    """

    def link(match: re.Match[str]) -> str:
        words, target = match[1], match[2]
        if re.match(r"[a-z]+:|#", target):
            return match[0]
        path = (folder / target.partition("#")[0]).resolve()
        if path == ROOT / "README.md":
            return f"[{words}](readme.md)"
        return match[0] if (ROOT / "docs") in path.parents else f"`{words.strip('`')}`"

    return LINK.sub(link, text)


def on_files(files: Any, config: Any) -> Any:
    """Add the README to what is built."""
    from mkdocs.structure.files import File

    files.append(File.generated(config, "readme.md", content=readme()))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Links that would lead out of the site."""
    folder = ROOT if page.file.src_uri == "readme.md" else ROOT / "docs"
    return _outside_code(markdown, folder)


def _outside_code(markdown: str, folder: Path) -> str:
    parts = re.split(r"(^```.*?^```$)", markdown, flags=re.MULTILINE | re.DOTALL)
    return "".join(
        _shown(part) if part.startswith("```") else _readme_aware(part, folder) for part in parts
    )


def _shown(code: str) -> str:
    """Code for readers: without what is there for doctest, and output that is no Python.

    >>> _shown("```python\\n>>> f()\\na\\n<BLANKLINE>\\nb\\n\\n```")
    '```pycon\\n>>> f()\\na\\n\\nb\\n```'
    """
    session = code.replace("<BLANKLINE>", "").replace("\n\n```", "\n```")
    return session.replace("```python\n>>>", "```pycon\n>>>", 1)


def _readme_aware(text: str, folder: Path) -> str:
    # GitHub wants a bar in the code of a table escaped, and the site would show the backslash.
    text = re.sub(r"`[^`\n]*`", lambda code: code[0].replace("\\|", "|"), text)
    # The README's links to pages were shortened, so they are looked for in docs/ first.
    if folder != ROOT:
        return inside(text, folder)
    return LINK.sub(
        lambda m: m[0] if (ROOT / "docs" / m[2].partition("#")[0]).exists() else inside(m[0], ROOT),
        text,
    )
