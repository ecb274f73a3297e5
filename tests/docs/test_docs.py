"""What the documentation shows is what happens: every example runs, every link leads somewhere."""
# ruff: noqa: SIM300 - asserts read expected first

import doctest
import importlib
import importlib.util
import pkgutil
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import windowlib

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```\s*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]\n]*\]\(\s*<?([^)\s>]+)>?[^)\n]*\)|(?:src|href)=\"([^\"]+)\"")
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$", re.MULTILINE)


def name(page):
    return str(page.relative_to(ROOT))


pages = pytest.mark.parametrize("page", PAGES, ids=name)


class Block(NamedTuple):
    """A fenced block: its language, its text, and the line where the text starts."""

    language: str
    text: str
    line: int


def blocks(text):
    return [
        Block(match[1], match[2], text.count("\n", 0, match.start(2)) + 1)
        for match in FENCE.finditer(text)
    ]


class Complaints(list[str]):
    """Collects what a doctest runner writes."""

    def write(self, text):
        self.append(text)


def run_examples(text, scope, where, line):
    """Run `>>>` examples; raise with the difference if one gives something else."""
    test = doctest.DocTestParser().get_doctest(text, scope, where, where, line - 1)
    runner = doctest.DocTestRunner(verbose=False)
    said = Complaints()
    runner.run(test, out=said.write, clear_globs=False)
    scope.update(test.globs)
    if runner.failures:
        raise AssertionError("".join(said))
    return runner.tries


def run_page(text, where):
    """Run the Python blocks of a page in one namespace, in order; how many there were."""
    scope: dict[str, Any] = {"__name__": "__main__"}
    found = [block for block in blocks(text) if block.language == "python"]
    for block in found:
        if ">>>" in block.text:
            run_examples(block.text, scope, where, block.line)
        else:
            padded = "\n" * (block.line - 1) + block.text  # so that tracebacks name the line
            exec(compile(padded, where, "exec"), scope)
    return len(found)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder that looks like the repository, where examples may write."""
    for path in ROOT.iterdir():
        if not path.name.startswith("."):
            (tmp_path / path.name).symlink_to(path)
    monkeypatch.chdir(tmp_path)


def starts_spark(page):
    """Whether a page has Python that asks for a session."""
    found = blocks(page.read_text())
    return any("session(" in block.text for block in found if block.language == "python")


# Those that start Spark are run by test_spark_pages.py.
@pytest.mark.parametrize("page", [page for page in PAGES if not starts_spark(page)], ids=name)
@pytest.mark.usefixtures("folder")
def test_the_examples_of_a_page_run(page):
    text = page.read_text()
    assert text.count("```python") == run_page(text, name(page))


# -- the tests above can fail --


@pytest.mark.parametrize(
    "text",
    [
        "```python\n>>> 1 + 1\n3\n```\n",
        "```python\nassert 1 + 1 == 3\n```\n",
        "```python\nx = 1\n```\ntext\n```python\n>>> x\n2\n```\n",
        "```python\n>>> undefined\n```\n",
        "```python\nundefined\n```\n",
        "```python\n>>> 1 / 0\n```\n",
    ],
)
def test_an_example_that_is_wrong_is_found(text):
    with pytest.raises((AssertionError, NameError)):
        run_page(text, "page.md")


def test_blocks_of_a_page_share_one_namespace():
    text = "```python\nx = 1\n```\n```text\n>>> x\n7\n```\n```python\n>>> x\n1\n>>> y = x\n```\n"
    assert 3 == run_page(f"{text}```python\nassert y == 1\n```\n", "page.md")


# -- docstrings --


HAS_SPARK = importlib.util.find_spec("pyspark") is not None


def only_spark(package):
    """Without PySpark its room cannot be imported; any other package must be."""
    if HAS_SPARK or package != "windowlib.spark":
        raise


def modules(package):
    prefix = f"{package.__name__}."
    found = pkgutil.walk_packages(package.__path__, prefix, only_spark)
    names = [info.name for info in found if HAS_SPARK or info.name != "windowlib.spark"]
    return [package.__name__, *(name for name in names if not name.endswith("__main__"))]


# What numba compiles can be imported only where it is installed.
COMPILED = {
    "windowlib.columnar.primitives.compiled_loops",
    "windowlib.columnar.primitives.compiled",
}
MODULES = [
    name for name in modules(windowlib) if name not in COMPILED or importlib.util.find_spec("numba")
]


def examples_of(module):
    return [test for test in doctest.DocTestFinder().find(module) if test.examples]


def run_docstrings(module):
    for test in examples_of(importlib.import_module(module)):
        runner, said = doctest.DocTestRunner(verbose=False), Complaints()
        runner.run(test, out=said.write)
        assert not runner.failures, "".join(said)


def starts_spark_itself(module):
    """Whether an example of a module asks for a session."""
    path = ROOT / Path(*module.split(".")).with_suffix(".py")
    return path.exists() and ">>> spark = session(" in path.read_text()


ON_SPARK = [module for module in MODULES if starts_spark_itself(module)]


# Those that start Spark are run by test_spark_pages.py.
@pytest.mark.parametrize("module", [each for each in MODULES if each not in ON_SPARK])
def test_the_examples_in_docstrings_run(module):
    run_docstrings(module)


def test_docstrings_have_examples():
    shown = {m for m in MODULES if examples_of(importlib.import_module(m))}
    assert {
        "windowlib.spec.policies",
        "windowlib.window.tumbling",
        "windowlib.window.sliding",
    } <= shown


@pytest.mark.parametrize("public", [n for n in windowlib.__all__ if n != "KEY"])
def test_every_public_name_says_what_it_is(public):
    assert (getattr(windowlib, public).__doc__ or "").strip()


# -- links --


def without_code(text):
    return re.sub(r"`[^`\n]*`", "", FENCE.sub("", text))


def anchors(page):
    """The anchors of a page's headings, as GitHub makes them."""
    found: list[str] = []
    for heading in HEADING.findall(FENCE.sub("", page.read_text())):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").strip().lower()
        slug = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        repeated = sum(
            re.fullmatch(rf"{re.escape(slug)}(-\d+)?", each) is not None for each in found
        )
        found.append(f"{slug}-{repeated}" if repeated else slug)
    return found


def links(page):
    found = (a or b for a, b in LINK.findall(without_code(page.read_text())))
    return [link for link in found if not re.match(r"[a-z]+:", link)]


def broken(page):
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        anchored = anchor and target.suffix == ".md"
        if not target.exists() or (anchored and anchor not in anchors(target)):
            yield link


@pages
def test_links_lead_somewhere(page):
    assert [] == list(broken(page))


def test_a_broken_link_is_found(tmp_path):
    other = tmp_path / "other.md"
    other.write_text("# A `Title`, and more\n## Again\n## Again\n")
    page = tmp_path / "page.md"
    page.write_text(
        "[a](other.md) [b](other.md#a-title-and-more) [c](#here) [d](https://example.org)\n"
        "[e](gone.md) [f](other.md#nowhere) ![g](gone.svg) [h](other.md#again-1) `[i](no.md)`\n"
        "```python\nx = [0](1)\n```\n# Here\n"
    )
    assert ["gone.md", "other.md#nowhere", "gone.svg"] == list(broken(page))


def test_the_map_has_every_page():
    index = ROOT / "docs" / "index.md"
    linked = {link.partition("#")[0] for link in links(index)}
    assert set() == {page.name for page in index.parent.glob("*.md")} - linked - {index.name}


def test_the_documentation_reaches_every_page():
    index = ROOT / "docs" / "index.md"
    seen, todo = set(), [ROOT / "README.md", index]
    while todo:
        page = todo.pop()
        if page in seen:
            continue
        seen.add(page)
        targets = [(page.parent / link.partition("#")[0]).resolve() for link in links(page)]
        todo += [target for target in targets if target.suffix == ".md" and target.exists()]
    assert [] == [name(page) for page in PAGES if page not in seen]
