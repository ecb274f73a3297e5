"""The controller: its law in numbers, its bounds, and gains from an experiment."""
# ruff: noqa: SIM300 - asserts read expected first

import math

import pytest

from windowlib.control import Pid, Relay, tune


def test_the_position_form_is_the_sum_of_three_terms():
    pid = Pid(2.0, 0.5, 3.0, setpoint=10.0, limits=(-100, 100))
    assert 2 * 6 + 0.5 * 6 == pid.update(4.0)
    assert 2 * 5 + 0.5 * (6 + 5) - 3 * 1 == pid.update(5.0)
    assert 2 * 7 + 0.5 * (6 + 5 + 7) + 3 * 2 == pid.update(3.0)


def test_the_velocity_form_moves_the_output_by_the_same_sum():
    pid = Pid(2.0, 0.5, 3.0, setpoint=10.0, limits=(-100, 100), start=1.0, form="velocity")
    assert 1 + 15 == pid.update(4.0)
    assert 1 + 15 + 12.5 == pid.update(5.0)


def test_time_between_measurements_counts():
    pid = Pid(0.0, 2.0, 3.0, setpoint=1.0, limits=(-100, 100))
    assert 2 * 1 * 0.5 == pid.update(0.0, dt=0.5)
    assert 1 + 2 * 0.5 * 0.25 - 3 * (0.5 / 0.25) == pid.update(0.5, dt=0.25)


def test_a_new_set_point_gives_no_kick():
    pid = Pid(0.0, 0.0, 5.0, setpoint=1.0)
    pid.update(0.2)
    pid.setpoint = 9.0
    assert 0.0 == pid.update(0.2)


def test_the_output_keeps_within_its_bounds():
    pid = Pid(100.0, setpoint=0.0, limits=(-0.5, 2.0))
    assert [2.0, -0.5, 2.0] == [pid.update(m) for m in (-1.0, 1.0, -1.0)]


@pytest.mark.parametrize("form", ["position", "velocity"])
def test_the_output_moves_a_step_at_most(form):
    pid = Pid(100.0, setpoint=0.0, limits=(0.0, 1.0), start=0.5, step=0.25, form=form)
    assert [0.75, 1.0, 1.0, 0.75] == [pid.update(m) for m in (-1.0, -1.0, -1.0, 1.0)]


def test_the_integral_does_not_wind_up():
    """After a long time out of reach the output leaves its bound with the first other error."""
    pid = Pid(0.0, 0.1, setpoint=1.0, limits=(0.0, 1.0))
    for _ in range(1000):
        pid.update(0.0)
    assert 1.0 == pid.output
    assert 0.9 == pytest.approx(pid.update(2.0))


def test_the_integral_stands_still_at_a_bound():
    """The output is at its bound because of the proportional term; the integral is small."""
    pid = Pid(10.0, 0.01, setpoint=1.0, limits=(-1.0, 1.0))
    for _ in range(50):
        pid.update(0.0)
    assert 0.01 == pid.integral, "only the first one counted"
    pid.update(1.5)
    assert 0.005 == pytest.approx(pid.integral), "and the way back is open"


def test_in_the_velocity_form_the_integral_keeps_within_a_step():
    pid = Pid(0.0, 1.0, setpoint=1.0, limits=(0.0, 100.0), step=0.5, form="velocity")
    for _ in range(10):
        pid.update(0.0)
    assert 0.5 == pid.integral


def test_the_proportional_term_of_the_velocity_form_removes_a_lasting_error():
    def level(form):
        pid = Pid(0.5, setpoint=1.0, limits=(-10, 10), form=form)
        measured = 0.0
        for _ in range(200):
            measured = 0.5 * pid.update(measured)
        return measured

    assert level("velocity") == pytest.approx(1.0)
    assert level("position") < 0.5


def test_reset_forgets_the_past():
    pid = Pid(1.0, 1.0, 1.0, setpoint=1.0, limits=(0.0, 9.0), start=2.0)
    first = [pid.update(m) for m in (0.0, 0.5)]
    pid.reset()
    assert 2.0 == pid.output
    assert first == [pid.update(m) for m in (0.0, 0.5)]


# -- tuning --


def tank(delay, gain=1.0):
    """An integrator that sees what flows in `delay` samples later."""
    pipe, level = [0.0] * delay, 0.0

    def process(inflow):
        nonlocal level
        pipe.append(inflow)
        level += gain * pipe.pop(0)
        return level

    return process


@pytest.mark.parametrize("delay", [3, 10, 40])
def test_a_relay_finds_the_ultimate_gain_and_period(delay):
    """Of an integrator with the delay L and a relay of 1: swings of height L and length 4 L."""
    seen = delay + 1  # the switch itself comes a sample late
    gains = tune(tank(delay), setpoint=5.0, amplitude=1.0)
    assert gains.period == pytest.approx(4 * seen, rel=0.1)
    assert gains.ultimate == pytest.approx(4 / (math.pi * seen), rel=0.15)


@pytest.mark.parametrize(
    ("kind", "rule"), [("p", (0.5, 0, 0)), ("pi", (0.4, 0.48, 0)), ("pid", (0.6, 1.2, 0.075))]
)
def test_gains_follow_from_the_swing(kind, rule):
    gains = tune(tank(5), setpoint=5.0, amplitude=2.0, kind=kind)
    kp, ki, kd = rule
    assert gains.kp == pytest.approx(kp * gains.ultimate)
    assert gains.ki == pytest.approx(ki * gains.ultimate / gains.period)
    assert gains.kd == pytest.approx(kd * gains.ultimate * gains.period)


def test_time_in_other_units_gives_the_same_controller():
    per_sample = tune(tank(5), setpoint=5.0, amplitude=1.0)
    quarter = tune(tank(5), setpoint=5.0, amplitude=1.0, interval=0.25)
    assert quarter.period == pytest.approx(per_sample.period / 4)
    assert quarter.ki * 0.25 == pytest.approx(per_sample.ki)
    assert quarter.kd / 0.25 == pytest.approx(per_sample.kd)


def test_what_was_tuned_controls():
    process = tank(8)
    gains = tune(process, setpoint=20.0, amplitude=1.0, kind="pid")
    pid = Pid(*gains[:3], setpoint=20.0, limits=(-5.0, 5.0))
    fresh, measured, last = tank(8), 0.0, []
    for _ in range(600):
        measured = fresh(pid.update(measured))
        last.append(measured)
    assert last[-50:] == pytest.approx([20.0] * 50, abs=0.2)


def test_a_process_that_falls_when_the_output_rises_has_negative_gains():
    up = tune(tank(5), setpoint=5.0, amplitude=1.0)
    down = tune(tank(5, gain=-1.0), setpoint=5.0, amplitude=1.0, raises=False)
    assert -up.kp == pytest.approx(down.kp)


def test_a_relay_stays_within_the_noise():
    relay = Relay(1.0, 0.5, start=2.0, noise=0.2)
    assert [2.5, 2.5, 1.5, 1.5, 2.5] == [
        relay.update(m, now) for now, m in enumerate((0.5, 1.1, 1.3, 0.9, 0.7))
    ]
    assert not relay.done
