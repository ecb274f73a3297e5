"""What an installed wheel holds, in an environment that has nothing else."""
# ruff: noqa: SIM300 - asserts read expected first

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PATIENCE = 600


def test_the_version_is_written_once():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" in project["project"]["dynamic"]
    assert {"attr": "windowlib.__version__"} == project["tool"]["setuptools"]["dynamic"]["version"]
    text = (ROOT / "windowlib" / "__init__.py").read_text()
    assert 1 == len(re.findall(r'^__version__ = "\d+\.\d+\.\d+"$', text, re.MULTILINE))


def test_all_that_tests_need_has_a_tested_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["spark"], *extras["dev"]]
    names = {canonicalize_name(Requirement(each).name) for each in wanted} - {"spl-windows"}
    pinned = set(re.findall(r"^([\w.-]+)==", (ROOT / "constraints.txt").read_text(), re.MULTILINE))
    assert set() == names - pinned, "Run: make constraints"


def test_nobody_is_told_to_install_the_other_windowlib():
    texts = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("windowlib/**/*.py")]
    wrong = re.compile(r"pip\s+install\s+[\"']?windowlib\b")
    assert [] == [path.name for path in texts if wrong.search(path.read_text())]


def done(*command, cwd, **more):
    """Run a command that must end well; what it writes."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    ran = subprocess.run(
        [str(each) for each in command],
        cwd=cwd,
        env={**clean, **more},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert 0 == ran.returncode, ran.stdout + ran.stderr
    return ran.stdout


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A copy of what a build needs, because builders write beside the source."""
    source = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE", "MANIFEST.in"):
        (source / name).write_bytes((ROOT / name).read_bytes())
    done("cp", "-r", "-L", ROOT / "windowlib", source / "windowlib", cwd=source)
    return source


@pytest.fixture(scope="module")
def wheel(source, tmp_path_factory):
    """The wheel."""
    out = tmp_path_factory.mktemp("dist")
    done(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", out, source, cwd=out)
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The Python of an environment with the wheel and nothing else."""
    home = tmp_path_factory.mktemp("environment")
    venv.create(home, with_pip=True)
    python = home / "bin" / "python"
    done(python, "-m", "pip", "install", "-q", "--no-deps", "--no-index", wheel, cwd=home)
    return python


@pytest.mark.long
def test_the_wheel_holds_one_package(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    tops = {name.split("/")[0] for name in names}
    assert {"windowlib"} == {top for top in tops if not top.endswith(".dist-info")}
    assert "windowlib/operators/__init__.py" in names
    assert "windowlib/py.typed" in names
    assert wheel.name.startswith("spl_windows-")


@pytest.mark.long
def test_an_installed_windowlib_runs_and_leaves_the_name_operators_free(installed, tmp_path):
    code = """
import importlib.util, windowlib, windowlib.operators
from windowlib import Count, Tumbling, replay
from windowlib.operators import Aggregate, agg
assert importlib.util.find_spec("operators") is None
print(list(replay(Aggregate(Tumbling(Count(2)), n=agg.count()), [{"x": 1}] * 4)))
"""
    assert "[{'n': 2}, {'n': 2}]\n" == done(installed, "-c", code, cwd=tmp_path)


@pytest.mark.long
def test_a_users_own_operators_neither_break_ours_nor_are_hidden(installed, tmp_path):
    (tmp_path / "operators").mkdir()
    (tmp_path / "operators" / "__init__.py").write_text("MINE = True\n")
    (tmp_path / "job.py").write_text(
        "import pickle\n"
        "import operators\n"
        "from windowlib import Count, Tumbling\n"
        "from windowlib.operators import Aggregate, agg\n"
        "op = Aggregate(Tumbling(Count(2)), n=agg.count())\n"
        "assert pickle.loads(pickle.dumps(op)) == op\n"
        "print(operators.MINE, type(op).__module__)\n"
    )
    said = done(installed, "job.py", cwd=tmp_path)
    assert said.startswith("True windowlib.operators.aggregate")


@pytest.fixture(scope="module")
def editable(source, tmp_path_factory):
    """The Python of an environment that uses the source where it is."""
    home = tmp_path_factory.mktemp("editable")
    venv.create(home, with_pip=True)
    python = home / "bin" / "python"
    links = ("--config-settings", "editable_mode=strict")
    done(python, "-m", "pip", "install", "-q", "--no-deps", *links, "-e", source, cwd=home)
    return python


@pytest.mark.long
@pytest.mark.parametrize("how", ["installed", "editable"])
def test_mypy_sees_the_types_of_an_installation(how, request, tmp_path):
    python = request.getfixturevalue(how)
    (tmp_path / "job.py").write_text(
        "from windowlib import Count, Tumbling\n"
        "from windowlib.operators import Aggregate, agg\n"
        "reveal_type(Aggregate(Tumbling(Count(2)), n=agg.count()))\n"
    )
    options = ("--strict", "--cache-dir", tmp_path / "cache", "--python-executable", python)
    said = done(sys.executable, "-m", "mypy", *options, "job.py", cwd=tmp_path)
    assert 'Revealed type is "windowlib.operators.aggregate.aggregate.Aggregate"' in said


SNIPPETS = r"""
import doctest, re, sys

names, ran = {"__name__": "__main__"}, 0
for code in re.findall(r"^```python\n(.*?)^```", open(sys.argv[1]).read(), re.M | re.S):
    if ">>>" not in code:
        exec(compile(code, "README", "exec"), names)
        continue
    test = doctest.DocTestParser().get_doctest(code, names, "README", "README", 0)
    runner = doctest.DocTestRunner()
    runner.run(test, clear_globs=False)
    names.update(test.globs)
    assert not runner.failures
    ran += len(test.examples)
print(ran, "examples")
"""


@pytest.mark.long
def test_every_snippet_of_the_readme_runs_where_only_the_wheel_is(installed, tmp_path):
    (tmp_path / "snippets.py").write_text(SNIPPETS)
    said = done(installed, "snippets.py", ROOT / "README.md", cwd=tmp_path)
    assert int(said.split()[-2]) > 2


@pytest.mark.long
def test_a_second_user_of_an_installation_that_cannot_be_written_imports_it(installed, tmp_path):
    """As where it is in the site-packages of a machine, and caches cannot be written."""
    home = tmp_path / "home"
    home.mkdir()
    code = "import windowlib.operators; print(windowlib.__file__)"
    said = done(installed, "-B", "-I", "-c", code, cwd=tmp_path, HOME=str(home))
    assert "site-packages/windowlib/__init__.py" in said
    assert [] == list(home.iterdir())


@pytest.mark.long
def test_the_command_and_the_pytest_plugin_are_installed(installed, tmp_path):
    said = done(installed.parent / "windowlib", "--help", cwd=tmp_path)
    assert "usage: windowlib" in said
    code = "from importlib.metadata import entry_points as e; print(*e(group='pytest11'))"
    assert "windowlib.testing.plugin" in done(installed, "-c", code, cwd=tmp_path)


@pytest.mark.long
def test_the_source_archive_has_what_tests_need(tmp_path):
    done("git", "clone", "-q", ROOT, tmp_path / "clone", cwd=tmp_path)
    code = "from setuptools.build_meta import build_sdist; build_sdist('dist')"
    build = (sys.executable, "-m", "pip", "install", "-q", "--target", tmp_path / "tools")
    done(*build, "setuptools>=77", cwd=tmp_path)
    clone = tmp_path / "clone"
    done(sys.executable, "-c", code, cwd=clone, PYTHONPATH=str(tmp_path / "tools"))
    (archive,) = (clone / "dist").glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        held = {name.partition("/")[2] for name in tar.getnames()}
    known = set(done("git", "ls-files", cwd=clone).split("\n")) - {"", ".gitignore"}
    moved = {f"windowlib/{name}" if name.startswith("operators/") else name for name in known}
    assert set() == moved - {"windowlib/operators"} - held
