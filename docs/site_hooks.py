"""What the site needs beside the pages: the README, the reference, links that hold, and Mermaid."""

from __future__ import annotations

import base64
import hashlib
import io
import re
import sys
import tarfile
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import urlopen

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # mkdocs loads this file by its path
from docs.api_pages import api_pages  # noqa: E402


class Script(NamedTuple):
    """A script that the site ships, so that nothing is fetched when a page is read."""

    url: str
    sha512: str
    member: str
    """Its place in the archive."""

    def local(self) -> Path:
        """The script, from npm once, and from then on from the folder of what was built."""
        path = ROOT / "build" / Path(self.url).with_suffix(".js").name
        if not path.exists():
            with urlopen(self.url, timeout=120) as found:
                archive = found.read()
            if base64.b64encode(hashlib.sha512(archive).digest()).decode() != self.sha512:
                raise ValueError(f"{self.url}: not the archive that was checked. Try again later.")
            with tarfile.open(fileobj=io.BytesIO(archive)) as files:
                script = files.extractfile(self.member)
                assert script is not None
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(script.read())
        return path


NPM = "https://registry.npmjs.org"
MERMAID = "mermaid.min.js"
SCRIPTS = {
    # Draws flowcharts; the theme would fetch it.
    MERMAID: Script(
        f"{NPM}/mermaid/-/mermaid-11.4.1.tgz",
        "Mb01JT/x6CKDWaxigwfZYuYmDZ6xtrNwNlidKZwkSrDaY9n90tdrJTV5Umk+wP1fZscGptmKFXHsXMDEVZ+Q6A==",
        "package/dist/mermaid.min.js",
    ),
    # Lets the search work from disk, where a page may not start a worker.
    "iframe-worker.js": Script(
        f"{NPM}/iframe-worker/-/iframe-worker-1.0.3.tgz",
        "bzOpLcy1R4vBFGsx2fQ4iMI0ikyUWwt9YKjp6/8KZcpk+FSvZavxWD0gA6hqKksjdsn3u59E2TT7qJlTq4Gn4A==",
        "package/shim/index.js",
    ),
}
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
    """Add the README, the reference and the scripts to what is built."""
    from mkdocs.structure.files import File

    for path, text in {"readme.md": readme(), **api_pages()}.items():
        files.append(File.generated(config, path, content=text))
    for name, script in SCRIPTS.items():
        files.append(File.generated(config, name, abs_src_path=str(script.local())))
    return files


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Mermaid, which is large, for pages with flowcharts alone."""
    if 'class="mermaid"' not in output:
        return output
    to_root = "../" * page.url.count("/")
    return output.replace("</body>", f'<script src="{to_root}{MERMAID}"></script></body>', 1)


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
