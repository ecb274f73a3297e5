"""Models and patterns of windows: what ports take, give and refuse, and in which words."""
# ruff: noqa: SIM300, E501 - asserts read expected first, messages stand on one line

import pickle

import pytest

from windowlib import (
    KEY,
    Count,
    Delta,
    ModelError,
    Operator,
    OperatorModel,
    PartitionAge,
    PolicyError,
    Punct,
    Sliding,
    Time,
    Tumbling,
)
from windowlib.spec.pattern import Pattern

SPECS: list[Tumbling | Sliding] = [
    Tumbling(Count(5)),
    Tumbling(Delta("x", 5)),
    Tumbling(Time("5s")),
    Tumbling(Punct()),
    Tumbling(Count(5) | Time("5s")),
    Sliding(Count(5)),
    Sliding(Count(5), every=Count(2)),
    Sliding(Count(5), every=Time("5s")),
    Sliding(Delta("x", 5), every=Delta("x", 2)),
    Sliding(Time("5s"), every=Count(1)),
]


# -- patterns --


@pytest.mark.parametrize(
    ("code", "fits"),
    [
        ("Tumbling[Count]", [0]),
        ("Tumbling[Count | Delta]", [0, 1]),
        ("Tumbling[Time | Punct]", [2, 3]),
        ("Tumbling[Count(5)]", [0]),
        ("Tumbling[Count(6)]", []),
        ("Tumbling[...]", [0, 1, 2, 3, 4]),
        ("Tumbling[type(Count(1) | Time('1s'))]", [4]),
        ("Sliding[Count]", [5, 6, 7]),
        ("Sliding[Count, Count]", [5, 6]),
        ("Sliding[Count | Time, Count(1)]", [5, 9]),
        ("Sliding[..., Time]", [7]),
        ("Sliding[Delta, ...]", [8]),
    ],
)
def test_a_pattern_fits_windows_of_its_kind_and_policies(code, fits):
    pattern = eval(code)
    assert fits == [i for i, spec in enumerate(SPECS) if pattern.matches(spec)]
    assert pattern == pickle.loads(pickle.dumps(pattern))
    model = OperatorModel(windows=[pattern])
    assert fits == [i for i, spec in enumerate(SPECS) if model.inputs[0].supports(spec)]


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("Tumbling[Count]", "Tumbling[Count]"),
        ("Sliding[Count | Delta, Count(1)]", "Sliding[Count | Delta, Count(size=1)]"),
        ("Sliding[..., Time]", "Sliding[..., Time]"),
    ],
)
def test_a_pattern_is_shown_as_it_is_written(code, text):
    assert text == str(eval(code)) == repr(eval(code))


def test_partitioning_is_of_no_matter_to_a_pattern():
    pattern = eval("Tumbling[Count]")
    assert isinstance(pattern, Pattern)
    assert pattern.matches(Tumbling(Count(5), by="k", forget=PartitionAge("1h")))


FIX = (
    "a pattern names policies, by type or by value, such as Tumbling[Count] or "
    "Sliding[Count | Delta, Count(1)]."
)


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("Tumbling[5]", "Tumbling[5]"),
        ("Tumbling[int]", "Tumbling[int]"),
        ("Tumbling[Count | int]", "Tumbling[Count | int]"),
        ("Tumbling[Count, Count]", "Tumbling[Count, Count]"),
        ("Tumbling[()]", "Tumbling[]"),
        ("Tumbling[PartitionAge]", "Tumbling[PartitionAge]"),
        ("Tumbling[Tumbling]", "Tumbling[Tumbling]"),
        ("Sliding[Count, Count, Count]", "Sliding[Count, Count, Count]"),
        ("Sliding['count']", "Sliding['count']"),
    ],
)
def test_what_is_no_pattern_is_refused(code, shown):
    with pytest.raises(PolicyError) as caught:
        eval(code)
    assert f"{shown}: {FIX}" == str(caught.value)


# -- ports --


def test_ports_are_named_or_numbered():
    model = OperatorModel(ports_in=2, ports_out=["main", "late"])
    assert ["in0", "in1"] == [port.name for port in model.inputs]
    assert ["main", "late"] == [port.name for port in model.outputs]
    assert (1, 1) == (model.input("in1", "Op"), model.input(1, "Op"))
    assert (1, 1) == (model.output("late", "Op"), model.output(1, "Op"))
    assert ["in"] == [port.name for port in OperatorModel().inputs]
    assert ["left"] == [port.name for port in OperatorModel(ports_in="left").inputs]
    assert () == OperatorModel(ports_out=0).outputs


def test_modes_are_one_for_all_or_one_a_port():
    model = OperatorModel(
        ports_in=2,
        ports_out=3,
        punctuation_in=["expecting", "oblivious"],
        punctuation_out=["free", "preserving", "generating"],
        preserves=[None, 1, None],
    )
    assert ["expecting", "oblivious"] == [port.punctuation for port in model.inputs]
    assert ["free", "preserving", "generating"] == [port.punctuation for port in model.outputs]
    assert [None, 1, None] == [port.preserves for port in model.outputs]
    both = OperatorModel(ports_out=2, punctuation_out="preserving")
    assert [0, 0] == [port.preserves for port in both.outputs]


@pytest.mark.parametrize(
    ("mode", "spec", "expects"),
    [
        ("oblivious", Tumbling(Punct()), False),
        ("oblivious", None, False),
        ("expecting", None, True),
        ("expecting", Tumbling(Count(5)), True),
        ("window_bound", Tumbling(Punct()), True),
        ("window_bound", Tumbling(Count(5)), False),
        ("window_bound", None, False),
    ],
)
def test_who_expects_punctuations(mode, spec, expects):
    model = OperatorModel(windows=[Tumbling], punctuation_in=mode)
    assert expects == model.inputs[0].expects(spec)


def test_models_are_values():
    assert OperatorModel(windows=[Tumbling]) == OperatorModel(windows=(Tumbling,))
    assert OperatorModel(windows=[Tumbling]) != OperatorModel(windows=[Sliding])
    assert OperatorModel() == pickle.loads(pickle.dumps(OperatorModel()))
    assert 1 == len({OperatorModel(), OperatorModel()})


MISTAKES = [
    ("OperatorModel(windows=[Count])",
     "OperatorModel(windows=[<class 'windowlib.spec.policies.Count'>]): name kinds of windows, such as Tumbling "
     "or Sliding[Count, Count(1)]."),
    ("OperatorModel(windows=[Tumbling(Count(5))])",
     "OperatorModel(windows=[Tumbling(Count(size=5))]): name kinds of windows, such as Tumbling or "
     "Sliding[Count, Count(1)]."),
    ("OperatorModel(ports_in=0)", "OperatorModel(ports_in=0): give a number from 1 on, or names."),
    ("OperatorModel(ports_in=[])", "OperatorModel(ports_in=[]): give a number from 1 on, or names."),
    ("OperatorModel(ports_in=True)", "OperatorModel(ports_in=True): give a number from 1 on, or names."),
    ("OperatorModel(ports_in=[1])", "OperatorModel(ports_in=[1]): give a number from 1 on, or names."),
    ("OperatorModel(ports_in='')", "OperatorModel(ports_in=''): give a number from 1 on, or names."),
    ("OperatorModel(ports_out=-1)", "OperatorModel(ports_out=-1): give a number from 0 on, or names."),
    ("OperatorModel(ports_in=['a', 'a'])", "OperatorModel(ports_in=['a', 'a']): a name is given twice. Rename one."),
    ("OperatorModel(punctuation_in='expected')",
     "OperatorModel(punctuation_in='expected'): unknown mode. Use oblivious, expecting, window_bound. Did "
     "you mean \"expecting\"?"),
    ("OperatorModel(punctuation_out='none')",
     "OperatorModel(punctuation_out='none'): unknown mode. Use free, generating, preserving."),
    ("OperatorModel(punctuation_out=['free', 'free'])",
     "OperatorModel(punctuation_out=['free', 'free']): 1 ports. Give one mode, or one a port."),
    ("OperatorModel(punctuation_out='preserving', preserves=1)",
     "OperatorModel(preserves=1): there is no such input port. Inputs are numbered from 0 to 0."),
    ("OperatorModel(punctuation_out='preserving', preserves=[0, 0])",
     "OperatorModel(preserves=[0, 0]): 1 output ports. Give one input port, or one an output."),
    ("OperatorModel(ports_in=['left', 'right']).input('rigt', 'Join')",
     "Join has no input 'rigt'. Ports: left, right. Did you mean \"right\"?"),
    ("OperatorModel().input(1, 'Op')", "Op has no input 1. Ports: in."),
    ("OperatorModel().output(-1, 'Op')", "Op has no output -1. Ports: out."),
    ("OperatorModel().output(False, 'Op')", "Op has no output False. Ports: out."),
    ("OperatorModel(ports_out=0).output(0, 'Op')", "Op has no output 0. Ports: none."),
]  # fmt: skip


@pytest.mark.parametrize(("code", "text"), MISTAKES, ids=[m[0] for m in MISTAKES])
def test_a_wrong_model_is_refused(code, text):
    with pytest.raises(ModelError) as caught:
        eval(code)
    assert text == str(caught.value)


# -- windows that an operator does not support --


class Ignores(Operator):
    def on_tuple(self, tuple_, port):
        pass


class Tumbles(Operator):
    model = OperatorModel(windows=[Tumbling])


class Slides(Operator):
    model = OperatorModel(
        windows=[eval("Sliding[Count | Delta, Count(1)]"), eval("Tumbling[Count]")]
    )

    def unsupported(self, spec):
        return "it fires on every tuple" if isinstance(spec, Sliding) else ""


class Joins(Operator):
    model = OperatorModel(ports_in=["left", "right"], windows=[Sliding])


UNSUPPORTED = [
    ("Tumbles()", "Tumbles(): takes one window. Give it as many specifications."),
    ("Tumbles(Tumbling(Count(1)), Tumbling(Count(2)))",
     "Tumbles(Tumbling(Count(size=1)), Tumbling(Count(size=2))): takes one window. Give it as many "
     "specifications."),
    ("Joins(Sliding(Count(1)))",
     "Joins(Sliding(Count(size=1), every=Count(size=1))): takes 2 windows, one a port. Give it as many "
     "specifications."),
    ("Ignores(Tumbling(Count(1)), Tumbling(Count(1)))",
     "Ignores(Tumbling(Count(size=1)), Tumbling(Count(size=1))): takes no window. Drop the "
     "specifications."),
    ("Ignores(Tumbling(Count(1)))",
     "Ignores does not support Tumbling(Count(size=1)). Supported: no window."),
    ("Tumbles(Sliding(Count(3)))",
     "Tumbles does not support Sliding(Count(size=3), every=Count(size=1)). Supported: any Tumbling window."),
    ("Slides(Sliding(Count(3), every=Count(2)))",
     "Slides does not support Sliding(Count(size=3), every=Count(size=2)): it fires on every tuple. "
     "Supported: Sliding[Count | Delta, Count(size=1)] or Tumbling[Count]."),
    ("Slides('tumbling, punct()')",
     "Slides does not support Tumbling(Punct()). Supported: Sliding[Count | Delta, Count(size=1)] or "
     "Tumbling[Count]."),
    ("Tumbles(5)", "Tumbles(5): not a window. Pass a specification, as Tumbling(Count(10)), or SPL text."),
    ("Tumbles(None)",
     "Tumbles(): nothing takes the rows of input 'in'. Give it a window, or override on_tuple."),
    ("Joins(Sliding(Count(1)), None)",
     "Joins(): nothing takes the rows of input 'right'. Give it a window, or override on_tuple."),
    ("Operator()", "Operator(): nothing takes the rows of input 'in'. Give it a window, or override on_tuple."),
    ("Tumbles(Tumbling(Count(1), by=KEY))",
     "Tumbles(Tumbling(Count(size=1), by=KEY)): nothing gives its window a key. Name the column, "
     "by=\"symbol\", or override on_tuple to insert rows with a key."),
    ("Tumbles('tumbling, count(1)', name='')",
     "Tumbles(name=''): not a name. Use a text, as name=\"prices\"."),
    ("Ignores(name=5)", "Ignores(name=5): not a name. Use a text, as name=\"prices\"."),
]  # fmt: skip


@pytest.mark.parametrize(("code", "text"), UNSUPPORTED, ids=[m[0] for m in UNSUPPORTED])
def test_windows_that_do_not_fit_are_refused_when_an_operator_is_built(code, text):
    with pytest.raises(ModelError) as caught:
        eval(code)
    assert text == str(caught.value)


def test_the_tables_use_what_they_name():
    assert KEY is Tumbling(Count(1), by=KEY).by
