"""The page on versions says what is declared, and shows what is tested."""
# ruff: noqa: SIM300 - asserts read expected first

import sys
import tomllib

import pytest

from tests import versions
from tests.versions import ENVIRONMENTS, FEW, ROOT, Environment, Result, main, table

PAGE = (ROOT / "docs" / "compatibility.md").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_lowest_versions_are_those_of_the_project():
    extras = PROJECT["optional-dependencies"]
    for text in (*PROJECT["dependencies"], *extras["spark"], *extras["speed"]):
        name, lowest = text.split(">=")
        assert f"| {lowest} |" in next(
            row for row in PAGE.splitlines() if row.startswith(f"| {name}")
        )
    assert f"| Python | {PROJECT['requires-python'].removeprefix('>=')} |" in PAGE


def test_every_environment_is_in_the_table_of_results():
    tested = PAGE[PAGE.index("## What is tested") :]
    assert [each.name for each in ENVIRONMENTS] == [
        row.split(" | ")[0].removeprefix("| ")
        for row in tested.splitlines()
        if row.startswith("| ") and not row.startswith(("| environment", "| ---"))
    ]


def test_every_python_and_spark_of_the_project_has_an_environment():
    said = [text.rsplit(" ", 1)[1] for text in PROJECT["classifiers"] if " :: 3." in text]
    assert set(said) == {each.python for each in ENVIRONMENTS}
    assert {"4.0", "4.1", "4.2", "4.3"} == {
        each.name.removeprefix("spark-") for each in ENVIRONMENTS if each.name.startswith("spark-")
    }
    assert FEW[0].tests != next(e for e in ENVIRONMENTS if e.name == FEW[0].name).tests


def test_what_is_run_and_what_is_left_out_is_there():
    for each in ENVIRONMENTS:
        paths = [text.removeprefix("--ignore=") for text in each.tests if "tests/" in text]
        assert paths
        assert [] == [path for path in paths if not (ROOT / path).exists()]


ONE = Environment("one", "3.11", ("numpy",), ("tests/none.py",))


@pytest.mark.parametrize(
    ("passed", "word", "code"), [(True, "passed", 0), (False, "FAILED", 1), (None, "not tried", 0)]
)
def test_a_failure_is_shown_and_is_the_exit_code(monkeypatch, capsys, passed, word, code):
    monkeypatch.setattr(versions, "ENVIRONMENTS", (ONE,))
    monkeypatch.setattr(versions, "run", lambda each: Result(each, passed, "2 passed", "", 1.0))
    monkeypatch.setattr("sys.argv", ["versions"])
    assert code == main()
    row = f"| one | 3.11 |  | {word}: 2 passed |"
    assert row == capsys.readouterr().out.splitlines()[0]
    assert row in table([Result(ONE, passed, "2 passed", "", 1.0)])


def test_quick_ones_leave_out_what_takes_long(monkeypatch):
    ran = []

    def run(each):
        ran.append(each.tests)
        return Result(each, True, "", "", 1.0)

    monkeypatch.setattr(versions, "ENVIRONMENTS", (ONE,))
    monkeypatch.setattr(versions, "run", run)
    for arguments in ([], ["--quick"]):
        monkeypatch.setattr("sys.argv", ["versions", *arguments])
        main()
    assert [("tests/none.py",), ("-m", "not long", "tests/none.py")] == ran


def test_a_name_that_is_none_is_refused(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["versions", "spark-3.5"])
    with pytest.raises(SystemExit):
        main()
    assert "no environment 'spark-3.5'; there are spark-4.0" in capsys.readouterr().err


def test_a_python_that_is_not_there_is_not_tried():
    found = versions.run(Environment("none", "2.9", (), ()))
    assert (None, "no Python 2.9 here") == (found.passed, found.summary)


def test_a_java_is_found_by_what_it_says_of_itself(tmp_path):
    for name, said in {"a": "25.0.3", "b": "21.0.8"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "release").write_text(f'JAVA_VERSION="{said}"\n')
    (tmp_path / "c").mkdir()  # something else
    places = [str(tmp_path / "none" / "*"), str(tmp_path / "*")]
    assert tmp_path / "b" == versions.found_java("21", places)
    assert versions.found_java("2", places) is None


def test_a_java_that_is_not_there_is_not_tried():
    found = versions.run(Environment("none", "3.11", (), (), "1234"))
    assert (None, "no Java 1234 here") == (found.passed, found.summary)


def test_an_environment_is_made_once_and_its_failure_is_told(monkeypatch, tmp_path):
    """With a test that passes, and one that does not; nothing is downloaded."""
    monkeypatch.setattr(versions, "FOLDER", tmp_path)
    one = Environment("one", "3.11", (), (str(tmp_path / "test_it.py"),))
    made = []
    monkeypatch.setattr(versions, "install", lambda each, python: made.append(each.name))
    monkeypatch.setattr(versions, "found_python", lambda version: "python")
    monkeypatch.setattr(Environment, "interpreter", sys.executable)
    monkeypatch.setattr(versions, "ROOT", tmp_path)
    one.folder.mkdir()
    (tmp_path / "test_it.py").write_text("def test_it():\n    assert True\n")
    good = versions.run(one)
    assert (True, ["one"]) == (good.passed, made)
    assert good.summary.startswith("1 passed")
    assert "numpy" in good.versions
    (tmp_path / "test_it.py").write_text("def test_it():\n    assert False\n")
    bad = versions.run(one)
    assert bad.passed is False
    assert bad.summary.startswith("1 failed")
    assert bad.summary.endswith("see one/tests.log")
