"""What the site needs beside the pages: the README, the reference, links that hold, and Mermaid."""

from __future__ import annotations

import base64
import hashlib
import io
import re
import sys
import tarfile
from pathlib import Path
from typing import Any
from urllib.request import urlopen

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # mkdocs loads this file by its path
from docs.api_pages import api_pages  # noqa: E402

MERMAID = "https://registry.npmjs.org/mermaid/-/mermaid-11.4.1.tgz"
MERMAID_SHA512 = (
    "Mb01JT/x6CKDWaxigwfZYuYmDZ6xtrNwNlidKZwkSrDaY9n90tdrJTV5Umk+wP1fZscGptmKFXHsXMDEVZ+Q6A=="
)
MERMAID_FILE = "package/dist/mermaid.min.js"
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


def mermaid() -> Path:
    """The script that draws flowcharts: from npm, once, and from the site itself from then on."""
    path = ROOT / "build" / Path(MERMAID).with_suffix(".js").name
    if not path.exists():
        with urlopen(MERMAID, timeout=120) as found:
            archive = found.read()
        if base64.b64encode(hashlib.sha512(archive).digest()).decode() != MERMAID_SHA512:
            raise ValueError(f"{MERMAID}: not the archive that was checked. Try again later.")
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            script = files.extractfile(MERMAID_FILE)
            assert script is not None
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(script.read())
    return path


def on_files(files: Any, config: Any) -> Any:
    """Add the README, the reference and the script for flowcharts to what is built."""
    from mkdocs.structure.files import File

    for path, text in {"readme.md": readme(), **api_pages()}.items():
        files.append(File.generated(config, path, content=text))
    script = File.generated(config, "mermaid.min.js", abs_src_path=str(mermaid()))
    files.append(script)
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Links that would lead out of the site."""
    if page.file.src_uri.startswith("api/"):
        return markdown
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
