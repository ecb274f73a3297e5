"""The recorded traces of the original library, run through both engines."""
# ruff: noqa: SIM300 - asserts read expected first

import copy
import gzip
import json
from pathlib import Path

import pytest

from windowlib.tools import conformance

FOLDER = Path(__file__).parents[1] / "conformance"
FILES = sorted(FOLDER.glob("*.jsonl.gz"))
ENGINES = ["generated", "reference"]


def first_case():
    return next(case for case in conformance.cases([FOLDER / "tumbling_count.jsonl.gz"]))


def test_all_traces_are_there():
    assert 1204 == sum(1 for _ in conformance.cases([FOLDER]))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name.removesuffix(".jsonl.gz"))
def test_every_event_is_the_recorded_one(file, engine):
    mismatches = (conformance.check(case, engine) for case in conformance.cases([file]))
    first = next((mismatch for mismatch in mismatches if mismatch is not None), None)
    assert first is None, str(first)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name.removesuffix(".jsonl.gz"))
def test_a_trace_without_its_last_event_is_detected(file, engine):
    case = next(case for case in conformance.cases([file]) if case["events"])
    *rest, last = case["events"]
    case["events"] = rest
    mismatch = conformance.check(case, engine)
    assert (case["id"], len(rest), None, last) == mismatch


def doctored(change):
    case = copy.deepcopy(first_case())
    change(case["events"])
    return case


def swap(events):
    events[0], events[1] = events[1], events[0]


DOCTORED = {
    "two events swapped": (0, swap),
    "an event renamed": (1, lambda events: events[1].update(e="after_evict")),
    "other contents": (2, lambda events: events[2].update(w=[99])),
    "another key": (0, lambda events: events[0].update(p="nobody")),
    "another input": (3, lambda events: events[3].update(i=99)),
    "one event too many": (-1, lambda events: events.append({"i": 0, "e": "trigger"})),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", DOCTORED)
def test_a_doctored_trace_is_detected_where_it_was_doctored(name, engine):
    where, change = DOCTORED[name]
    case = doctored(change)
    mismatch = conformance.check(case, engine)
    assert mismatch is not None
    assert where % len(case["events"]) == mismatch.number
    assert case["events"][where] == mismatch.expected


def test_a_mismatch_names_case_event_and_both_sides():
    case = doctored(lambda events: events[0].update(e="trigger"))
    text = str(conformance.check(case))
    assert text.startswith(f"{case['id']}: event 0: expected ")
    assert '"trigger"' in text
    assert '"before_insert"' in text


def test_plain_and_gzipped_files_and_folders_are_read_alike(tmp_path):
    case = first_case()
    (tmp_path / "a.jsonl").write_text(json.dumps(case) + "\n\n")
    with gzip.open(tmp_path / "b.jsonl.gz", "wt") as file:
        file.write(json.dumps(case))
    assert [case, case] == list(conformance.cases([tmp_path]))


def test_a_folder_without_traces_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no trace files"):
        list(conformance.cases([tmp_path]))
