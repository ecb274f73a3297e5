"""Every mistake with control objects gets a message: argument, value, reason and fix."""
# ruff: noqa: SIM300 - asserts read expected first

from pathlib import Path

import pytest

import windowlib
from tests.helpers.raise_sites import raised, raises_in, unreached
from windowlib import FarmError, WindowlibError
from windowlib.control import *  # noqa: F403
from windowlib.control import WindowFeedback, WindowTask

PACKAGE = Path(windowlib.__file__).parent / "control"


def complete():
    """A policy whose window 3 has had its last task."""
    policy = WindowFeedback(1)
    policy.ready(WindowTask(3, "a", last=True))
    return policy


FIT = "not a number that fits. Use a finite one"
CASES = [
    ('Pid("1", setpoint=1)', f"Pid(kp)='1': {FIT}."),
    ('Pid(1, setpoint=float("nan"))', f"Pid(setpoint)=nan: {FIT}."),
    ("Pid(1, setpoint=1, step=0)", f"Pid(step)=0: {FIT} more than 0."),
    ("Pid(1, setpoint=1).update(1, dt=0)", f"Pid.update(dt)=0: {FIT} more than 0."),
    ('Pid(1, setpoint=1).update(float("inf"))', f"Pid.update(measured)=inf: {FIT}."),
    (
        "Pid(1, setpoint=1, limits=(2, 1))",
        "Pid(limits)=(2, 1): nothing lies between. Put the lower bound first.",
    ),
    (
        'Pid(1, setpoint=1, form="speed")',
        "Pid(form='speed'): no such form. Use position or velocity.",
    ),
    ("Relay(1, 0)", f"Relay(amplitude)=0: {FIT} more than 0."),
    ("Relay(1, 1, noise=-1)", f"Relay(noise)=-1: {FIT} no less than 0."),
    (
        'Relay(1, 1).gains("pd")',
        "gains(kind='pd'): no such controller. Use p, pi or pid.",
    ),
    (
        "tune(lambda output: 0.0, setpoint=1, amplitude=1, most=50)",
        "Relay.gains(): 0 swings so far, and not three alike. Update it until done, with a larger "
        "amplitude or more noise allowed.",
    ),
    (
        "tune(lambda output: 0.0, setpoint=1, amplitude=1, most=0)",
        "tune(most)=0: not a number of them. Use 1 or more.",
    ),
    (
        "Utilisation.of([], 1.0)",
        "Utilisation.of(stats=[]): no workers. Give the WorkerStats of one or more.",
    ),
    (
        "Utilisation.of([WorkerStats(1, 1, 1)], 0)",
        f"Utilisation.of(interval)=0: {FIT} more than 0.",
    ),
    ("TupleRoundRobin(0)", "TupleRoundRobin(workers)=0: not a number of them. Use 1 or more."),
    ("Adaptive(True)", "Adaptive(workers)=True: not a number of them. Use 1 or more."),
    (
        "PaneRoundRobin(2).assign(0, -1, [])",
        "assign(count)=-1: not a number of them. Use 0 or more.",
    ),
    (
        "Adaptive(2, weight=1.5)",
        "Adaptive(weight=1.5): not a share. Use more than 0, and at most 1.",
    ),
    (
        "AdaptivePid(2, smooth=2)",
        "AdaptivePid(smooth=2): not a share. Use more than 0, and at most 1.",
    ),
    (
        "Adaptive(2).assign(0, 5, [1, 2, 3])",
        "assign(loads): 3 loads of 2 workers. Give one for each.",
    ),
    (
        "AdaptivePid(2, alphas=(0, 1))",
        f"AdaptivePid(alphas)[0]=0.0: {FIT} more than 0.",
    ),
    (
        'AdaptivePid(2, on="mean")',
        "AdaptivePid(on='mean'): no such utilisation. Use worst or weighted.",
    ),
    (
        "complete().ready(WindowTask(3))",
        "ready(window=3): its last task was there before. Say last=True with the task that "
        "completes the window.",
    ),
    (
        "complete().done(1, 3)",
        "done(worker=1, window=3): this worker has no task of this window. Call it once for each "
        "task that was sent.",
    ),
    (
        "complete().done(0, 4)",
        "done(worker=0, window=4): this worker has no task of this window. Call it once for each "
        "task that was sent.",
    ),
]


@pytest.mark.parametrize(("code", "message"), CASES, ids=[code for code, _ in CASES])
def test_a_mistake_gets_its_message(code, message):
    error = raised(code, globals(), FarmError)
    assert message == str(error)
    assert isinstance(error, WindowlibError)
    assert isinstance(error, ValueError)


def test_every_raise_has_a_case():
    places = list(raises_in(PACKAGE))
    assert len(places) > 8
    assert [] == unreached(places, [raised(code, globals(), FarmError) for code, _ in CASES])
