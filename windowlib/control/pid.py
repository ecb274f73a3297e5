"""A PID controller, which moves an output until a measurement is at its set point; and its gains.

Gains come from an experiment: a relay makes the process oscillate, and is measured.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite, pi
from typing import Any, Literal, NamedTuple

from windowlib.errors import FarmError

Form = Literal["position", "velocity"]
Kind = Literal["p", "pi", "pid"]
# Of each kind: kp in Ku, ki in Ku / Pu, kd in Ku * Pu.
RULES: dict[str, tuple[float, float, float]] = {
    "p": (0.5, 0.0, 0.0),
    "pi": (0.4, 0.48, 0.0),
    "pid": (0.6, 1.2, 0.075),
}
SWING_TOLERANCE = 0.05  # swings that differ by less than this are the same swing
CYCLES = 3


class Pid:
    """Proportional, integral and derivative control with a bounded output.

    The error e is the set point minus the measurement. With the gains of one sample, the law is
    `kp * e + ki * (sum of e) - kd * (change of the measurement)`; the derivative is that of the
    measurement, so that a new set point gives no kick. In the position form the law is the output;
    in the velocity form it is what the output moves by, so that `kp` alone already removes a
    lasting error. Either way the output moves by at most `step` at a time.

    The integral cannot wind up: it is kept within what the law may give, and it stands still while
    the output is at the bound that the error pushes it to.

    >>> pid = Pid(kp=2.0, ki=0.5, setpoint=1.0, limits=(0.0, 10.0))
    >>> pid.update(0.0), pid.update(0.5), pid.output
    (2.5, 1.75, 1.75)
    >>> pid = Pid(kp=2.0, setpoint=1.0, limits=(0.0, 10.0), start=5.0, form="velocity", step=1.5)
    >>> pid.update(0.0), pid.update(1.5)
    (6.5, 5.5)
    """

    def __init__(
        self,
        kp: float,
        ki: float = 0.0,
        kd: float = 0.0,
        *,
        setpoint: float,
        limits: tuple[float, float] = (-1.0, 1.0),
        start: float | None = None,
        step: float | None = None,
        form: Form = "position",
    ) -> None:
        for name, gain in (("kp", kp), ("ki", ki), ("kd", kd)):
            check_finite(f"Pid({name})", gain)
        if form not in ("position", "velocity"):
            msg = f"Pid(form={form!r}): no such form. Use position or velocity."
            raise FarmError(msg)
        self.kp, self.ki, self.kd = kp, ki, kd
        self.setpoint = check_finite("Pid(setpoint)", setpoint)
        self.limits = bounds("Pid(limits)", *limits)
        self.form = form
        low, high = self.limits
        self.step = (
            high - low if step is None else check_finite("Pid(step)", step, least=0, strict=True)
        )
        middle = clamp(0.0, low, high)
        self.start = (
            middle if start is None else clamp(check_finite("Pid(start)", start), low, high)
        )
        self.reset()

    def reset(self) -> None:
        """Forget the past; the output is at its start again."""
        self.output = self.start
        self.integral = 0.0
        self._measured: float | None = None

    def update(self, measured: float, dt: float = 1.0) -> float:
        """The output after a measurement, `dt` after the last one.

        With 1, the default, gains are those of a sample; with seconds, those of a second.
        """
        check_finite("Pid.update(measured)", measured)
        check_finite("Pid.update(dt)", dt, least=0, strict=True)
        error = self.setpoint - measured
        slope = 0.0 if self._measured is None else (measured - self._measured) / dt
        self._measured = measured
        self._integrate(self.ki * error * dt)
        law = self.kp * error + self.integral - self.kd * slope
        if self.form == "velocity":
            law = self.output + clamp(law, -self.step, self.step)
        else:
            law = clamp(law, self.output - self.step, self.output + self.step)
        self.output = clamp(law, *self.limits)
        return self.output

    def _integrate(self, change: float) -> None:
        low, high = self.limits
        if (change > 0 and self.output >= high) or (change < 0 and self.output <= low):
            return
        reach = (low, high) if self.form == "position" else (-self.step, self.step)
        self.integral = clamp(self.integral + change, *reach)


class Gains(NamedTuple):
    """Gains for a `Pid` whose time is in the units of `period`, and what they come from."""

    kp: float
    ki: float
    kd: float
    ultimate: float
    period: float


class Relay:
    """An output that switches between `start + amplitude` and `start - amplitude`.

    It is high while the measurement is below the set point, and low while it is above; within
    `noise` of it, it stays. The process then swings around the set point. After three swings that
    are alike the relay is `done`, and their height and length say how strong a controller may be.

    `raises=False` is for a process whose measurement falls when the output rises.
    """

    def __init__(
        self,
        setpoint: float,
        amplitude: float,
        *,
        start: float = 0.0,
        noise: float = 0.0,
        raises: bool = True,
    ) -> None:
        self.setpoint = check_finite("Relay(setpoint)", setpoint)
        self.amplitude = check_finite("Relay(amplitude)", amplitude, least=0, strict=True)
        self.start = check_finite("Relay(start)", start)
        self.noise = check_finite("Relay(noise)", noise, least=0)
        self.sign = 1.0 if raises else -1.0
        self.output = self.start
        self._below: bool | None = None  # whether the measurement was below, at the last switch
        self._swing_start: float | None = None  # of this swing
        self._low = self._high = 0.0
        self._swings: list[tuple[float, float]] = []  # of each: half its height, and its length

    def update(self, measured: float, now: float) -> float:
        """The output after a measurement at the time `now`."""
        check_finite("Relay.update(measured)", measured)
        self._low, self._high = min(self._low, measured), max(self._high, measured)
        error = self.setpoint - measured
        below = error > 0 if self._below is None else self._below
        if abs(error) > self.noise:
            below = error > 0
        if below is not self._below:
            if below:
                self._swing(measured, now)
            self._below = below
        side = 1.0 if below else -1.0
        self.output = self.start + side * self.sign * self.amplitude
        return self.output

    def _swing(self, measured: float, now: float) -> None:
        if self._swing_start is not None:
            self._swings.append(((self._high - self._low) / 2, now - self._swing_start))
        self._swing_start = now
        self._low = self._high = measured

    @property
    def done(self) -> bool:
        """Whether the last three swings were alike."""
        last = self._swings[-CYCLES:]
        if len(last) < CYCLES:
            return False
        heights = [height for height, _ in last]
        return min(heights) > 0 and max(heights) - min(heights) < SWING_TOLERANCE * max(heights)

    def gains(self, kind: Kind = "pid") -> Gains:
        """The gains for a controller of a kind: p, pi or pid."""
        if kind not in RULES:
            msg = f"gains(kind={kind!r}): no such controller. Use p, pi or pid."
            raise FarmError(msg)
        if not self.done:
            msg = (
                f"Relay.gains(): {len(self._swings)} swings so far, and not three alike. Update it "
                f"until done, with a larger amplitude or more noise allowed."
            )
            raise FarmError(msg)
        last = self._swings[-CYCLES:]
        height = sum(each for each, _ in last) / CYCLES
        period = sum(each for _, each in last) / CYCLES
        ultimate = self.sign * 4 * self.amplitude / (pi * height)
        kp, ki, kd = RULES[kind]
        strong = kp * ultimate, ki * ultimate / period, kd * ultimate * period
        return Gains(*strong, ultimate, period)


def tune(
    process: Callable[[float], float],
    *,
    setpoint: float,
    amplitude: float,
    start: float = 0.0,
    noise: float = 0.0,
    raises: bool = True,
    interval: float = 1.0,
    kind: Kind = "pid",
    most: int = 10_000,
) -> Gains:
    """Gains for a process that takes an output and gives the measurement an `interval` later.

    >>> pipe, levels = [0.0, 0.0, 0.0], [0.0]
    >>> def tank(inflow):  # what flows in reaches the tank three samples later
    ...     pipe.append(inflow)
    ...     levels.append(levels[-1] + pipe.pop(0))
    ...     return levels[-1]
    >>> gains = tune(tank, setpoint=10.0, amplitude=1.0)
    >>> gains.period, round(gains.kp, 2)
    (16.0, 0.19)
    """
    relay = Relay(setpoint, amplitude, start=start, noise=noise, raises=raises)
    check_finite("tune(interval)", interval, least=0, strict=True)
    output = relay.output
    for sample in range(check_count("tune(most)", most)):
        output = relay.update(process(output), sample * interval)
        if relay.done:
            return relay.gains(kind)
    return relay.gains(kind)


# -------------------------------------------------------------------------------------------------
# What the arguments of controllers and policies have to be.


def check_finite(
    name: str, value: Any, *, least: float | None = None, strict: bool = False
) -> float:
    """A finite number, no less than `least`, or above it."""
    fits = isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
    if fits and least is not None:
        fits = value > least if strict else value >= least
    if not fits:
        above = "" if least is None else f" {'more than' if strict else 'no less than'} {least:g}"
        msg = f"{name}={value!r}: not a number that fits. Use a finite one{above}."
        raise FarmError(msg)
    return float(value)


def check_count(name: str, value: Any, *, least: int = 1) -> int:
    """A whole number, no less than `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        msg = f"{name}={value!r}: not a number of them. Use {least} or more."
        raise FarmError(msg)
    return value


def bounds(name: str, low: float, high: float) -> tuple[float, float]:
    """Two finite numbers in order."""
    check_finite(f"{name}[0]", low)
    check_finite(f"{name}[1]", high)
    if low >= high:
        msg = f"{name}=({low!r}, {high!r}): nothing lies between. Put the lower bound first."
        raise FarmError(msg)
    return float(low), float(high)


def clamp(value: float, low: float, high: float) -> float:
    """The nearest number within the bounds.

    >>> clamp(1.5, 0, 1), clamp(0.5, 0, 1)
    (1, 0.5)
    """
    return min(max(value, low), high)
