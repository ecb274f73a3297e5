"""Every mistake with farms gets a message: the argument, its value, the reason and the fix."""
# ruff: noqa: SIM300 - asserts read expected first

import ast
import os
import re
import shutil
import threading  # noqa: F401 - named in the table
import time
from datetime import timedelta  # noqa: F401 - named in the table
from pathlib import Path

import numpy as np  # noqa: F401 - named in the table
import pyarrow as pa
import pytest

import windowlib
from tests.helpers.raise_sites import raised, raises_in, unreached
from windowlib import (
    Count,
    Event,  # noqa: F401 - named in the table
    Operator,
    OperatorModel,
    Session,  # noqa: F401 - named in the table
    Sliding,
    Time,  # noqa: F401 - named in the table
    Tumbling,
    WindowlibError,
)
from windowlib.control import PaneRoundRobin  # noqa: F401 - named in the table
from windowlib.errors import BrokenStateError
from windowlib.farms import KeyFarm, PaneFarm, WindowFarm, WindowPartition, farm  # noqa: F401
from windowlib.farms.adaptive import BrokenFarm  # noqa: F401 - named in the table
from windowlib.farms.choice import choose  # noqa: F401 - named in the table
from windowlib.farms.chunks import ChunkStore
from windowlib.farms.evaluator import BatchExtent, WindowEvaluator
from windowlib.farms.models import *  # noqa: F403
from windowlib.farms.pool import ProcessPool, WorkerDeath, pickled  # noqa: F401
from windowlib.farms.round_robin import RoundRobin  # noqa: F401 - named in the table
from windowlib.farms.running_farm import check_workers  # noqa: F401 - named in the table
from windowlib.farms.scheduler import scheduler  # noqa: F401
from windowlib.farms.virtual import VirtualPool
from windowlib.farms.window_function import WindowFunction  # noqa: F401 - named in the table
from windowlib.operators import Aggregate, agg

PACKAGE = Path(windowlib.__file__).parent / "farms"
REPR = "0x..."
ten = Aggregate(Sliding(Count(10), every=Count(4)), high=agg.max("x"))
keyed = Aggregate(Tumbling(Count(9), by="k"), n=agg.count())
by_function = Aggregate(Tumbling(Count(2), by=len), rows=agg.collect(), name="odd")
high = Aggregate(Sliding(Count(9)), high=agg.max("x"), name="high")
rows = Aggregate(Tumbling(Count(9)), rows=agg.collect(), name="rows")

POINT = (
    "not a point or a length on an axis. Use a finite number; for instants and durations, ticks "
    "such as microseconds."
)
LENGTH = "a length is more than zero. Use 1, for example."
WHOLE = "tuples and windows are counted. Use a whole number."


class Bare(Operator):
    """Says that its function is associative, and no more."""

    model = OperatorModel(windows=[Tumbling, Sliding])
    function_kind = "associative"


class Dying:
    """Workers that die of everything."""

    now = 0.0

    def __init__(self, workers, setup):
        pass

    def send(self, *_):
        pass

    def wait(self, *, block):
        yield WorkerDeath(0, -9)

    def close(self):
        pass


class Sample(Operator):
    """Keeps something beside its window."""

    model = OperatorModel(windows=[Tumbling])

    def splits_by(self, port):
        return ("k",)

    def snapshot(self):
        return 7


sampled = Sample(Tumbling(Count(9), by="k"))


def virtual(workers, setup):
    """Virtual workers."""
    return VirtualPool(workers, setup, cost=lambda *_: 1.0)


def resized(farm_):
    """A farm gets a third worker."""
    with farm_.running(pool=virtual) as run:
        run.resize(3)


class Endless(Operator):
    """Wants to look at its tuples again and again."""

    model = OperatorModel(windows=[Tumbling])
    content = "arrow"
    function_kind = "associative"

    def part_of(self, window, key):
        return 0

    def emit_again(self, window, key, whole):
        return whole


def once_more():
    """There is one round, and another is asked for."""
    evaluator = WindowEvaluator(Endless(Tumbling(Count(1))))
    evaluator.emit_again(pa.record_batch({"x": [1]}), BatchExtent(None, 0, 1, 0), 0)


def on_another_system():
    """A pool where the system has no `poll`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr("select.poll")
        ProcessPool(2, None)


class Fails:
    """Cannot be read where a worker starts."""

    def __reduce__(self):
        return __import__, ("a_module_that_workers_lack",)


def no_folder(again):
    """Rows cannot be written; and the farm is asked to go on without them."""
    with ChunkStore() as chunks:
        shutil.rmtree(chunks.folder)
        chunks.folder = "/dev/shm/gone"
        for _ in range(1 + again):
            try:
                chunks.check()
                chunks.append(pa.record_batch({"x": [1]}))
            except WindowlibError:
                if not again:
                    raise
        chunks.check()


def restored(farm_, other):
    """A farm goes on from the state of another."""
    with farm_.running(pool=virtual) as run, other.running(pool=virtual) as old:
        run.restore(old.snapshot())


class Exits:
    """Ends the process that reads it."""

    def __reduce__(self):
        return os._exit, (3,)


def never_started(setup):
    """A pool whose worker cannot read what it is told."""
    pool = ProcessPool(1, setup)
    try:
        while not pool.ready:
            time.sleep(0.01)
    finally:
        pool.close()


def inserted(row, pool=Dying):
    """A farm is given a row."""
    run = WindowFarm(Aggregate(Tumbling(Count(1)), n=agg.count()), workers=1).open(pool=pool)
    run.insert(row)
    run.drain()


NO_PARTS = (
    "it says that its function is associative, and has no part_of. Define part_of(window, key), "
    "merge_parts(a, b) and emit_part(key, part), or leave function_kind as it is, for WindowFarm."
)
CASES = [
    (
        "WindowEvaluator(Bare(Tumbling(Count(9)))).dump_part(range)",
        "Bare.part_of(...): dump_state(state): state is <class 'range'>, and objects of "
        "builtins.type are not plain data. Return plain data from snapshot(), such as a dict of an "
        "object's fields, and rebuild the object in restore(). Or override save_part and "
        "load_part, which make plain data of what part_of returns, and the other way.",
    ),
    ("choose(Bare(Sliding(Count(9), every=Count(3))), 2)", f"PaneFarm(Bare): {NO_PARTS}"),
    ("WindowPartition(Bare(Tumbling(Count(9))), workers=2)", f"WindowPartition(Bare): {NO_PARTS}"),
    ("farm(5)", "farm(5): not an operator. Pass one, such as Aggregate(...)."),
    ("WindowFarm(5)", "WindowFarm(5): not an operator. Pass one, such as Aggregate(...)."),
    (
        "KeyFarm(WindowFarm(rows))",
        "KeyFarm(WindowFarm(rows)): no such nesting. Put a KeyFarm or a WindowFarm around a "
        "WindowPartition or a PaneFarm.",
    ),
    (
        "once_more()",
        "Endless.emit_again(...): it returned a part for another round, and here there is one "
        "alone. Use WindowPartition in process, or return None.",
    ),
    (
        "on_another_system()",
        'farm(..., when="always"): worker processes inherit a connection, which this system does '
        "not allow. Leave out when=, or use a Unix system or WSL.",
    ),
    (
        "WindowFarm(rows, workers=0)",
        'WindowFarm(workers=0): not a number of workers. Use 1 or more, or "auto".',
    ),
    ("WindowFarm(rows, batch=0)", "WindowFarm(batch=0): not a number of tasks. Use 1 or more."),
    (
        "WindowFarm(rows, chunk=True)",
        'WindowFarm(chunk=True): not a number of rows. Use 1 or more, or Time("50ms").',
    ),
    (
        'WindowFarm(rows, scheduling="random")',
        "WindowFarm(scheduling='random'): no such way. Use 'on-demand' or 'round-robin'.",
    ),
    (
        'scheduler("random", 2)',
        "scheduling='random': no such way. Use 'on-demand' or 'round-robin'.",
    ),
    (
        "WindowFarm(rows, partials=True)",
        "WindowFarm(rows, partials=True): that is for associative functions of windows that are "
        "known only when they fire. Use PaneFarm, or drop it.",
    ),
    (
        "PaneFarm(ten, panes=Count(3))",
        "PaneFarm(panes=Count(size=3)): windows of 10 every 4 are not made of such panes. Use "
        '"pairs", "gcd", or a Count(...) that divides both.',
    ),
    (
        "PaneFarm(ten, panes=Time('1s'))",
        "PaneFarm(panes=Time(period=datetime.timedelta(seconds=1))): windows of 10 every 4 are not "
        'made of such panes. Use "pairs", "gcd", or a Count(...) that divides both.',
    ),
    ("PaneFarm(ten, parts=0)", "PaneFarm(parts=0): not a number of parts. Use 1 or more."),
    (
        "PaneFarm(ten, parts=PaneRoundRobin)",
        "PaneFarm(parts=<class 'windowlib.control.scheduling.PaneRoundRobin'>): PaneRoundRobin "
        "has no threshold to cut slices at. Use a number, Adaptive or AdaptivePid.",
    ),
    (
        'KeyFarm(keyed, order="all")',
        'KeyFarm(order=\'all\'): no such order. Use "rows" or "keys".',
    ),
    (
        "WindowFarm(by_function, workers=1).open(pool=Dying)",
        f"farm({Tumbling(Count(2), by=len, order_by=None)!r}): its key or a delta policy is a "
        "function, and the emitter of a farm reads columns. Name a column, which a Functor before "
        "it can make.",
    ),
    (
        'inserted({"x": 1})',
        "Aggregate: 3 workers died in a row (exit code -9) with the same task, windows. Look at "
        "what it does with its rows: run the operator without a farm.",
    ),
    (
        'inserted({"x": object()})',
        "Aggregate.insert_many(rows): a farm takes rows that Arrow can hold (Could not convert "
        f"{REPR} with type object: did not recognize Python value type when inferring an Arrow "
        "data type). Give the values of a column one type, or use the operator itself.",
    ),
    (
        "pickled(threading.Lock())",
        "farm(...): the operator cannot be sent to workers (cannot pickle '_thread.lock' "
        "object). Leave out what belongs to this process alone, such as open files and locks, or "
        "make it in on_open.",
    ),
    (
        'WindowFarm(high, when="never")',
        'WindowFarm(when=\'never\'): no such time. Use "auto" or "always".',
    ),
    ("check_workers('resize', 0)", "resize(workers=0): not a number of workers. Use 1 or more."),
    (
        "restored(KeyFarm(sampled, workers=3), KeyFarm(sampled, workers=2))",
        "restore(state): it is of 2 workers. Sample: it keeps more than its windows, and that "
        "cannot be told apart by key. Open a farm of 2.",
    ),
    (
        "resized(KeyFarm(sampled, workers=2))",
        "resize(workers=3): Sample: it keeps more than its windows, and that cannot be told apart "
        "by key. Open a farm of 3 workers.",
    ),
    (
        'BrokenFarm("high", "deciding where to work").insert',
        "high: it was interrupted while it was deciding where to work, and that is half done. "
        "restore() the last snapshot.",
    ),
    *(
        (
            f"no_folder({again})",
            "farm(...): 1 rows cannot be written for the workers (No such file or "
            "directory: /dev/shm/gone/0.arrow). Make room in /dev/shm or in /tmp; what the farm "
            "was given before that is not complete.",
        )
        for again in (False, True)
    ),
    (
        "never_started(Fails())",
        "farm(...): a worker process cannot start (ModuleNotFoundError: No module named "
        "'a_module_that_workers_lack'). Look for modules that the operator needs and workers "
        "cannot import.",
    ),
    (
        "never_started(Exits())",
        "farm(...): a worker process cannot start (it ended with exit code 3). Look for modules "
        "that the operator needs and workers cannot import.",
    ),
    (
        "high.then(WindowFarm(rows))",
        "Graph: 'rows' is a farm, which runs by itself. Build the graph of operators, and give "
        "that to a farm: KeyFarm(graph).",
    ),
    ('TimeWindows("5s", 1)', f"TimeWindows(size='5s'): {POINT}"),
    ("TimeWindows(True, 1)", f"TimeWindows(size=True): {POINT}"),
    ('TimeWindows(4, float("inf"))', f"TimeWindows(slide=inf): {POINT}"),
    ('TimeWindows(4, 2).windows(float("nan"))', f"windows(x=nan): {POINT}"),
    ('TimeWindows(4, 2).first(np.array([1.0, float("nan")]))', f"windows(x=nan): {POINT}"),
    ("TimeWindows(4, 2).last(timedelta(1))", f"windows(x=datetime.timedelta(days=1)): {POINT}"),
    ("TimeWindows(0, 2)", f"TimeWindows(size=0): {LENGTH}"),
    ("CountWindows(4, -2)", f"CountWindows(slide=-2): {LENGTH}"),
    ("SessionWindows(0)", f"SessionWindows(gap=0): {LENGTH}"),
    ("CountWindows(4, 0.5)", f"CountWindows(slide=Fraction(1, 2)): {WHOLE}"),
    ("CountWindows(4, 2, lowest=0.5)", f"CountWindows(lowest=0.5): {WHOLE}"),
    ("SlideByTuple(4, 1.5)", f"SlideByTuple(slide=Fraction(3, 2)): {WHOLE}"),
    (
        "model_of(5)",
        "model_of(5): not a window. Pass a specification, such as Sliding(Count(100), "
        "every=Count(10)).",
    ),
    (
        "model_of(Sliding(Count(5), every=Count(0)))",
        "model_of(Sliding(Count(size=5), every=Count(size=0))): with a count of 0 it holds nothing "
        "or is never processed, so there are no windows to give away. Use Count(1) or more.",
    ),
    (
        'WindowFarm(Aggregate(Tumbling(Event("ts", 5)), name="high", x=agg.max("x")), active=True)',
        "WindowFarm(high): tuples of event time come in any order, so what a worker has folded "
        "early would have to be folded again. Use agnostic workers: without active=True, or with "
        'pattern="window agnostic".',
    ),
    (
        'PaneFarm(Aggregate(Tumbling(Event("ts", 5)), x=agg.max("x")), panes="gcd")',
        "PaneFarm(panes='gcd'): windows of event time are cut where one starts or ends. Drop "
        "panes=.",
    ),
    (
        'WindowFunction("linear")',
        "function_kind='linear': no kind of function. Use associative, incremental, neither.",
    ),
    ("RoundRobin(0)", "RoundRobin(workers=0): not a number of workers. Use 1 or more."),
    ("RoundRobin(2, 1.5)", "RoundRobin(batch=1.5): not a number of windows. Use 1 or more."),
    (
        "RoundRobin(2, 3).private(CountWindows(4, 2), 0)",
        "RoundRobin(2, batch=3).private(...): windows that go round in batches have no one slide. "
        "Use batch=1, or window() for each of them.",
    ),
    (
        'KeyFarm(Aggregate(Tumbling(Event("ts", 5), by="k"), name="high", x=agg.max("x")))',
        "KeyFarm(high): one watermark closes the windows of all keys, so one worker must see all "
        'rows. Use WindowFarm, or say Watermark(..., scope="key").',
    ),
    ("choose(high, 0)", "choose(high, workers=0): not a number of workers. Use 1 or more."),
    (
        'choose(high, 2, pattern="panes")',
        "choose(high, pattern='panes'): no such farm. Use key, window agnostic, window active, "
        'pane, window partition. Did you mean "pane"?',
    ),
    (
        "choose(high, 2, heaviest=16)",
        "choose(high, heaviest=16): not a share of the rows. Use 0 to 1, such as 0.16.",
    ),
    (
        'choose(rows, 2, pattern="window partition")',
        "WindowPartition(rows): agg.collect() is not associative, so parts of a window cannot be "
        "combined. Use KeyFarm or WindowFarm.",
    ),
]


@pytest.mark.parametrize(("code", "message"), CASES, ids=[code for code, _ in CASES])
def test_a_mistake_gets_its_message(code, message):
    error = raised(code, globals())
    assert message == re.sub(r"(<object object at )?0x[0-9a-f]+(?(1)>)", REPR, str(error))
    assert isinstance(error, WindowlibError)
    assert isinstance(error, ValueError | BrokenStateError)


def ours(made):
    """Whether it is an exception for users, and not a method that subclasses define."""
    return ast.unparse(made) != "NotImplementedError"


def test_every_raise_has_a_case():
    places = list(raises_in(PACKAGE, ours))
    assert len(places) > 8
    assert [] == unreached(places, [raised(code, globals()) for code, _ in CASES])
