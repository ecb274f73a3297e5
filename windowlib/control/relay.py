"""Gains for a controller, from an experiment: a relay makes the process swing, and is watched."""

from __future__ import annotations

from collections.abc import Callable
from math import pi
from typing import Literal, NamedTuple

from windowlib.control.pid import counted, finite
from windowlib.errors import FarmError

Kind = Literal["p", "pi", "pid"]
# Of each kind: kp in Ku, ki in Ku / Pu, kd in Ku * Pu.
RULES: dict[str, tuple[float, float, float]] = {
    "p": (0.5, 0.0, 0.0),
    "pi": (0.4, 0.48, 0.0),
    "pid": (0.6, 1.2, 0.075),
}
ALIKE = 0.05  # swings that differ by less than this are the same swing
CYCLES = 3


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
        self.setpoint = finite("Relay(setpoint)", setpoint)
        self.amplitude = finite("Relay(amplitude)", amplitude, least=0, strict=True)
        self.start = finite("Relay(start)", start)
        self.noise = finite("Relay(noise)", noise, least=0)
        self.sign = 1.0 if raises else -1.0
        self.output = self.start
        self._below: bool | None = None  # whether the measurement was below, at the last switch
        self._begin: float | None = None  # of this swing
        self._low = self._high = 0.0
        self._swings: list[tuple[float, float]] = []  # of each: half its height, and its length

    def update(self, measured: float, now: float) -> float:
        """The output after a measurement at the time `now`."""
        finite("Relay.update(measured)", measured)
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
        if self._begin is not None:
            self._swings.append(((self._high - self._low) / 2, now - self._begin))
        self._begin = now
        self._low = self._high = measured

    @property
    def done(self) -> bool:
        """Whether the last three swings were alike."""
        last = self._swings[-CYCLES:]
        if len(last) < CYCLES:
            return False
        heights = [height for height, _ in last]
        return min(heights) > 0 and max(heights) - min(heights) < ALIKE * max(heights)

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
    finite("tune(interval)", interval, least=0, strict=True)
    output = relay.output
    for sample in range(counted("tune(most)", most)):
        output = relay.update(process(output), sample * interval)
        if relay.done:
            return relay.gains(kind)
    return relay.gains(kind)
