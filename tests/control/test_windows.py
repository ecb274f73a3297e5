"""Who merges which window: in turn, or the first worker that is free."""
# ruff: noqa: SIM300 - asserts read expected first

import random

import pytest

from bench.simulated import merge, pane_tasks
from windowlib.control import WindowFeedback, WindowRoundRobin, WindowTask
from windowlib.workload import Map2, Poisson


def task(window, item=None, last=False):
    return WindowTask(window, item, last)


def test_windows_go_round():
    policy = WindowRoundRobin(3)
    sent = [policy.ready(task(window)) for window in (0, 1, 2, 3, 1)]
    assert [0, 1, 2, 0, 1] == [worker for ((worker, _),) in sent]
    assert [] == policy.done(0, 0)


def test_a_task_goes_to_a_free_worker():
    policy = WindowFeedback(2)
    assert [(0, task(5))] == policy.ready(task(5))
    assert [(1, task(6))] == policy.ready(task(6))
    assert [] == policy.ready(task(7))
    assert 1 == policy.pending


def test_tasks_of_one_window_are_never_at_two_workers():
    policy = WindowFeedback(2)
    policy.ready(task(5, "a"))
    assert [] == policy.ready(task(5, "b")), "although worker 1 is free"
    assert [(0, task(5, "b"))] == policy.done(0, 5)


def test_a_worker_that_is_done_goes_on_with_the_same_window_in_order():
    policy = WindowFeedback(1)
    for window, item in ((5, "a"), (4, "b"), (5, "c"), (5, "d")):
        policy.ready(task(window, item))
    assert [(0, task(5, "c"))] == policy.done(0, 5), "before the older window 4"
    assert [(0, task(5, "d"))] == policy.done(0, 5)
    assert [(0, task(4, "b"))] == policy.done(0, 5)


def test_else_it_takes_the_oldest_window_that_waits():
    policy = WindowFeedback(1)
    for window in (5, 9, 7, 8):
        policy.ready(task(window))
    order = [5]
    for _ in range(3):
        ((_, sent),) = policy.done(0, order[-1])
        order.append(sent.window)
    assert [5, 7, 8, 9] == order
    assert [] == policy.done(0, 9)


def test_a_window_goes_back_to_the_worker_that_had_it_if_that_one_is_free():
    policy = WindowFeedback(3)
    for window in (1, 2, 3):
        policy.ready(task(window))
    for worker, window in ((0, 1), (1, 2), (2, 3)):
        policy.done(worker, window)
    assert [(1, task(2))] == policy.ready(task(2))
    assert [(0, task(4))] == policy.ready(task(4)), "who has been free longest"


def test_a_window_is_forgotten_when_its_last_task_is_done():
    policy = WindowFeedback(2)
    policy.ready(task(1, "a"))
    policy.ready(task(1, "b", last=True))
    policy.done(0, 1)
    assert 1 == policy.windows, "its last task is being done"
    assert [] == policy.done(0, 1)
    assert 0 == policy.windows


def test_the_end_of_a_window_does_not_disturb_those_that_wait():
    policy = WindowFeedback(1)
    policy.ready(task(1, "a", last=True))
    policy.ready(task(2, "b"))
    assert [(0, task(2, "b"))] == policy.done(0, 1)
    assert 1 == policy.windows


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_everything_is_done_once_in_order_and_nobody_idles_while_a_window_waits(workers):
    draw, policy = random.Random(workers), WindowFeedback(workers)
    todo = [task(w, (w, i), i == 4) for w in range(60) for i in range(5)]
    todo.sort(key=lambda each: each.item[0] + 3 * each.item[1])
    running: dict[int, WindowTask] = {}
    done = []
    while todo or running:
        if todo and (not running or draw.random() < 0.6):
            sent = policy.ready(todo.pop(0))
        else:
            worker = draw.choice(sorted(running))
            finished = running.pop(worker)
            done.append(finished.item)
            sent = policy.done(worker, finished.window)
        for worker, each in sent:
            assert worker not in running
            running[worker] = each
        at_work = [each.window for each in running.values()]
        assert len(at_work) == len(set(at_work))
        if len(running) < workers:
            waiting = {w for w, window in policy._windows.items() if window.pending}
            assert waiting <= set(at_work)
    assert 300 == len(set(done)) == len(done)
    for window in range(60):
        assert [0, 1, 2, 3, 4] == [i for w, i in done if w == window]
    assert 0 == policy.windows == policy.pending


# -- in virtual time --


def ratio(arrivals, panes_per_window, workers, load=0.8):
    """How much longer windows take in turn than with feedback."""
    tasks, counts = pane_tasks(arrivals, panes_per_window=panes_per_window)
    costs = counts / counts.mean() * load * workers * 0.05 / panes_per_window
    turn, feedback = (
        merge(make(workers), tasks, costs) for make in (WindowRoundRobin, WindowFeedback)
    )
    return turn / feedback


@pytest.fixture(scope="module")
def streams():
    return [Map2(rate=20_000, dispersion=2000).arrivals(1_000_000, seed) for seed in range(4)]


@pytest.mark.parametrize("panes", [2, 5])
@pytest.mark.parametrize("workers", [2, 3, 5])
def test_feedback_is_never_worse_than_turns(streams, panes, workers):
    assert min(ratio(stream, panes, workers) for stream in streams) >= 0.98


def test_feedback_is_better_where_several_workers_have_windows_of_few_panes(streams):
    def gains(workers):
        return [ratio(stream, panes_per_window=2, workers=workers) for stream in streams]

    assert min(gains(3)) > 1.05
    assert min(gains(5)) > 1.2


def test_without_bursts_there_is_nothing_to_gain():
    even = Poisson(rate=20_000).arrivals(500_000, seed=3)
    assert ratio(even, panes_per_window=2, workers=3) == pytest.approx(1, abs=0.05)
