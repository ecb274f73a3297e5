"""Operator models: how many ports, which windows, which punctuation (paper, 3.4 and 5.1).

A model is checked when an operator is built and when it is connected, never later.

| input port | |
| --- | --- |
| oblivious | works without punctuations, and ignores those that come |
| expecting | needs punctuations |
| window_bound | expecting if its window is `Tumbling(Punct())`, oblivious otherwise |

| output port | |
| --- | --- |
| free | carries no punctuations |
| generating | carries its own |
| preserving | carries those of one input port |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, get_args

from windowlib.errors import ModelError, suggestion
from windowlib.spec.pattern import Pattern
from windowlib.spec.specification import Landmark, Session, Sliding, Spec, Tumbling

InputMode = Literal["oblivious", "expecting", "window_bound"]
OutputMode = Literal["free", "generating", "preserving"]
Partitioning = Literal["either", "only", "never"]
Windows = Sequence[Pattern | type[Any]]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of an operator: its meaning and its values, checked when the operator is built.

    Args:
        doc: what it means, in a few words.
        kind: the types it may have; any, if left out.
        least: the least value it may have.
        choices: all values it may have.

    >>> Parameter("how far a price may be off", kind=float, least=0).values
    'float, from 0 on'
    """

    doc: str
    kind: type[Any] | tuple[type[Any], ...] = ()
    least: Any = None
    choices: tuple[Any, ...] = ()

    @property
    def _kinds(self) -> tuple[type[Any], ...]:
        return self.kind if isinstance(self.kind, tuple) else (self.kind,)

    @property
    def values(self) -> str:
        """The values it takes, in words."""
        if self.choices:
            return ", ".join(map(repr, self.choices))
        kinds = " or ".join(kind.__name__ for kind in self._kinds) or "any"
        return kinds if self.least is None else f"{kinds}, from {self.least!r} on"

    def check(self, owner: str, name: str, value: Any) -> None:
        """Refuse a value that it does not take; None is for what it may be left out."""
        kinds = (*self._kinds, int) if float in self._kinds else self._kinds  # an int is as good
        wrong = bool(kinds) and (not isinstance(value, kinds) or _flag(value, kinds))
        if self.choices:
            wrong = value not in self.choices
        elif not wrong and self.least is not None:
            wrong = not value >= self.least
        if wrong and value is not None:
            near = suggestion(value, self.choices) if isinstance(value, str) else ""
            msg = f"{owner}({name}={value!r}): {self.doc}. Use {self.values}.{near}"
            raise ModelError(msg)


def _flag(value: Any, kinds: tuple[type[Any], ...]) -> bool:
    """Whether a bool stands where a number should."""
    return isinstance(value, bool) and bool not in kinds


@dataclass(frozen=True, slots=True)
class InputPort:
    """One input: its name, the windows it may have (none at all if empty), and its mode."""

    name: str
    windows: tuple[Pattern | type[Any], ...]
    punctuation: InputMode

    def supports(self, spec: Spec) -> bool:
        """Whether this port may have such a window."""
        return any(
            isinstance(spec, window) if isinstance(window, type) else window.matches(spec)
            for window in self.windows
        )

    def expects(self, spec: Spec | None) -> bool:
        """Whether this port, with this window, needs punctuations."""
        bound = spec is not None and spec.punctuated
        return self.punctuation == "expecting" or (self.punctuation == "window_bound" and bound)


@dataclass(frozen=True, slots=True)
class OutputPort:
    """One output: its name, its mode, and the input port whose punctuations it preserves."""

    name: str
    punctuation: OutputMode
    preserves: int | None = None


@dataclass(frozen=True, slots=True, init=False)
class OperatorModel:
    """The input and output ports of an operator, with the windows and punctuation that they allow.

    Args:
        ports_in: how many inputs, or their names.
        ports_out: how many outputs, or their names.
        windows: the windows an input may have: `Tumbling`, `Sliding`, or patterns of them, such
            as `Tumbling[Count]`; leave it out for an operator without windows.
        punctuation_in: "oblivious", "expecting" or "window_bound"; one for all, or one a port.
        punctuation_out: "free", "generating" or "preserving"; one for all, or one a port.
        preserves: the input port whose punctuations a preserving output carries; one for all, or
            one a port.
        partitioned: "only" for an operator whose windows need a key, "never" for one that takes
            none; "either" otherwise.
        parameters: what the arguments of its `__init__` mean, by name: a `Parameter`, or a text.

    >>> from windowlib import Count, Tumbling
    >>> model = OperatorModel(windows=[Tumbling[Count]], punctuation_out="generating")
    >>> model.inputs[0].supports(Tumbling(Count(64)))
    True
    """

    inputs: tuple[InputPort, ...]
    outputs: tuple[OutputPort, ...]
    partitioned: Partitioning
    parameters: tuple[tuple[str, Parameter], ...]

    def __init__(
        self,
        *,
        ports_in: int | Sequence[str] = 1,
        ports_out: int | Sequence[str] = 1,
        windows: Windows = (),
        punctuation_in: InputMode | Sequence[InputMode] = "oblivious",
        punctuation_out: OutputMode | Sequence[OutputMode] = "free",
        preserves: int | Sequence[int | None] = 0,
        partitioned: Partitioning = "either",
        parameters: Mapping[str, Parameter | str] = MappingProxyType({}),
    ) -> None:
        if partitioned not in get_args(Partitioning):
            known = get_args(Partitioning)
            msg = (
                f"OperatorModel(partitioned={partitioned!r}): unknown. Use {', '.join(known)}."
                f"{suggestion(partitioned, known)}"
            )
            raise ModelError(msg)
        for window in windows:
            if window not in (Tumbling, Sliding, Session, Landmark) and not isinstance(
                window, Pattern
            ):
                msg = (
                    f"OperatorModel(windows=[{window!r}]): name kinds of windows, such as Tumbling "
                    f"or Sliding[Count, Count(1)]."
                )
                raise ModelError(msg)
        names_in = port_names("in", ports_in, f"OperatorModel(ports_in={ports_in!r})")
        names_out = port_names("out", ports_out, f"OperatorModel(ports_out={ports_out!r})")
        modes_in = _modes("punctuation_in", punctuation_in, len(names_in), get_args(InputMode))
        modes_out = _modes("punctuation_out", punctuation_out, len(names_out), get_args(OutputMode))
        follows = _followed(preserves, modes_out, len(names_in))
        inputs = [
            InputPort(name, tuple(windows), mode)
            for name, mode in zip(names_in, modes_in, strict=True)
        ]
        outputs = [
            OutputPort(name, mode, port)
            for name, mode, port in zip(names_out, modes_out, follows, strict=True)
        ]
        object.__setattr__(self, "inputs", tuple(inputs))
        object.__setattr__(self, "outputs", tuple(outputs))
        described = {
            name: Parameter(each) if isinstance(each, str) else each
            for name, each in parameters.items()
        }
        object.__setattr__(self, "partitioned", partitioned)
        object.__setattr__(self, "parameters", tuple(described.items()))

    def with_late(self, owner: str) -> OperatorModel:
        """This model with one more output, for the late rows of event-time windows."""
        if any(port.name == "late" for port in self.outputs):
            msg = f'{owner}: late="port" needs an output named late, and it has one. Rename that.'
            raise ModelError(msg)
        made = copy(self)
        object.__setattr__(made, "outputs", (*self.outputs, OutputPort("late", "free")))
        return made

    def input(self, port: int | str, owner: str) -> int:
        """The number of an input port, by number or name."""
        return _number(port, [each.name for each in self.inputs], f"{owner} has no input")

    def output(self, port: int | str, owner: str) -> int:
        """The number of an output port, by number or name."""
        return _number(port, [each.name for each in self.outputs], f"{owner} has no output")

    def check(self, owner: str, specs: Sequence[Spec | None], reason: str = "") -> None:
        """Refuse windows that the ports do not support."""
        windowed = [port for port in self.inputs if port.windows]
        if len(specs) != len(self.inputs):
            given = ", ".join(map(repr, specs))
            need = f"{len(self.inputs)} windows, one a port" if windowed else "no window"
            need = "one window" if windowed and len(self.inputs) == 1 else need
            fix = "Give it as many specifications." if windowed else "Drop the specifications."
            raise ModelError(f"{owner}({given}): takes {need}. {fix}")
        for port, spec in zip(self.inputs, specs, strict=True):
            if spec is None or port.supports(spec):
                continue
            supported = " or ".join(_window_text(window) for window in port.windows)
            why = f": {reason}" if reason else ""
            msg = f"{owner} does not support {spec!r}{why}. Supported: {supported or 'no window'}."
            raise ModelError(msg)
        for spec in specs:
            self._check_key(owner, spec)

    def _check_key(self, owner: str, spec: Spec | None) -> None:
        """Refuse a window with a key, or without one, where the model says so."""
        if spec is None:
            return
        if self.partitioned == "only" and not spec.partitioned:
            msg = f'{owner}({spec!r}): its windows need a key. Name the column, as by="symbol".'
            raise ModelError(msg)
        if self.partitioned == "never" and spec.partitioned:
            msg = f"{owner}({spec!r}): its windows have no key. Drop by={spec.by!r}."
            raise ModelError(msg)

    def check_parameters(self, owner: str, taken: Iterable[str], given: Mapping[str, Any]) -> None:
        """Refuse arguments of an operator that its parameters do not take.

        Args:
            owner: the operator, for messages.
            taken: the names of the arguments that it takes.
            given: those that it was given.
        """
        known = list(taken)
        for name, parameter in self.parameters:
            if name not in known:
                msg = (
                    f"{owner}.model: it describes the parameter {name!r}, which __init__ does not "
                    f"take. Parameters: {', '.join(known) or 'none'}.{suggestion(name, known)}"
                )
                raise ModelError(msg)
            if name in given:
                parameter.check(owner, name, given[name])

    def markdown(self) -> str:
        """Ports, windows and parameters as tables, for the page of an operator."""
        keys = {"either": "", "only": ", partitioned only", "never": ", never partitioned"}
        lines = ["| port | takes or gives | punctuation |", "| --- | --- | --- |"]
        for port in self.inputs:
            windows = " or ".join(map(_window_text, port.windows)) or "rows, without a window"
            key = keys[self.partitioned] if port.windows else ""
            shown = windows.replace("|", "\\|")  # which would end the cell
            lines.append(f"| {port.name} | {shown}{key} | {port.punctuation} |")
        lines += [f"| {port.name} | rows | {port.punctuation} |" for port in self.outputs]
        if self.parameters:
            lines += ["", "| parameter | meaning | values |", "| --- | --- | --- |"]
            lines += [f"| {name} | {each.doc} | {each.values} |" for name, each in self.parameters]
        return "\n".join(lines)


def port_names(kind: str, ports: int | Sequence[str], owner: str) -> list[str]:
    """The names of ports, given as names or as a number; `owner` begins the messages.

    >>> port_names("in", 2, "Union(inputs=2)")
    ['in0', 'in1']
    """
    if isinstance(ports, int):
        names = [kind] if ports == 1 else [f"{kind}{i}" for i in range(ports)]
    else:
        names = [ports] if isinstance(ports, str) or not isinstance(ports, Iterable) else [*ports]
    least = 1 if kind == "in" else 0
    wrong = isinstance(ports, int) and (isinstance(ports, bool) or ports < 0)
    if wrong or len(names) < least or not all(isinstance(name, str) and name for name in names):
        raise ModelError(f"{owner}: give a number from {least} on, or names.")
    if len(set(names)) < len(names):
        raise ModelError(f"{owner}: a name is given twice. Rename one.")
    return names


def _modes(argument: str, modes: str | Sequence[str], ports: int, known: Sequence[str]) -> Any:
    given = [modes] * ports if isinstance(modes, str) else list(modes)
    for mode in given:
        if mode not in known:
            msg = (
                f"OperatorModel({argument}={mode!r}): unknown mode. Use {', '.join(known)}."
                f"{suggestion(mode, known)}"
            )
            raise ModelError(msg)
    if len(given) != ports:
        msg = f"OperatorModel({argument}={modes!r}): {ports} ports. Give one mode, or one a port."
        raise ModelError(msg)
    return given


def _followed(
    preserves: int | Sequence[int | None], modes: Sequence[OutputMode], inputs: int
) -> list[int | None]:
    """For each output, the input port whose punctuations it preserves, if it does."""
    given = [preserves] * len(modes) if isinstance(preserves, int) else list(preserves)
    if len(given) != len(modes):
        msg = (
            f"OperatorModel(preserves={preserves!r}): {len(modes)} output ports. Give one input "
            f"port, or one an output."
        )
        raise ModelError(msg)
    follows = [port if m == "preserving" else None for m, port in zip(modes, given, strict=True)]
    for mode, port in zip(modes, follows, strict=True):
        if mode == "preserving" and port not in range(inputs):
            msg = (
                f"OperatorModel(preserves={preserves!r}): there is no such input port. Inputs are "
                f"numbered from 0 to {inputs - 1}."
            )
            raise ModelError(msg)
    return follows


def _number(port: int | str, names: list[str], problem: str) -> int:
    if isinstance(port, str) and port in names:
        return names.index(port)
    if isinstance(port, int) and not isinstance(port, bool) and 0 <= port < len(names):
        return port
    msg = f"{problem} {port!r}. Ports: {', '.join(names) or 'none'}.{suggestion(port, names)}"
    raise ModelError(msg)


def _window_text(window: Pattern | type[Any]) -> str:
    return f"any {window.__name__} window" if isinstance(window, type) else str(window)
