"""A PID controller: moves a number until a measurement is where it should be."""

from __future__ import annotations

from math import isfinite
from typing import Any, Literal

from windowlib.errors import FarmError

Form = Literal["position", "velocity"]


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
            finite(f"Pid({name})", gain)
        if form not in ("position", "velocity"):
            msg = f"Pid(form={form!r}): no such form. Use position or velocity."
            raise FarmError(msg)
        self.kp, self.ki, self.kd = kp, ki, kd
        self.setpoint = finite("Pid(setpoint)", setpoint)
        self.limits = bounds("Pid(limits)", *limits)
        self.form = form
        low, high = self.limits
        self.step = high - low if step is None else finite("Pid(step)", step, least=0, strict=True)
        middle = clamp(0.0, low, high)
        self.start = middle if start is None else clamp(finite("Pid(start)", start), low, high)
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
        finite("Pid.update(measured)", measured)
        finite("Pid.update(dt)", dt, least=0, strict=True)
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


# -------------------------------------------------------------------------------------------------
# What the arguments of controllers and policies have to be.


def finite(name: str, value: Any, *, least: float | None = None, strict: bool = False) -> float:
    """A finite number, no less than `least`, or above it."""
    fits = isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
    if fits and least is not None:
        fits = value > least if strict else value >= least
    if not fits:
        above = "" if least is None else f" {'more than' if strict else 'no less than'} {least:g}"
        msg = f"{name}={value!r}: not a number that fits. Use a finite one{above}."
        raise FarmError(msg)
    return float(value)


def counted(name: str, value: Any, *, least: int = 1) -> int:
    """A whole number, no less than `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        msg = f"{name}={value!r}: not a number of them. Use {least} or more."
        raise FarmError(msg)
    return value


def bounds(name: str, low: float, high: float) -> tuple[float, float]:
    """Two finite numbers in order."""
    finite(f"{name}[0]", low)
    finite(f"{name}[1]", high)
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
