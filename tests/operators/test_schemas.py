"""The columns of every output, before there are rows."""

import pyarrow as pa
import pytest

from windowlib import (
    Count,
    Delta,
    Graph,
    ModelError,
    Operator,
    OperatorModel,
    SchemaError,
    Sliding,
    Tumbling,
)
from windowlib.operators import (
    Aggregate,
    Barrier,
    Batch,
    Dedup,
    Delay,
    Filter,
    Functor,
    Join,
    Lookup,
    Pair,
    Punctor,
    Sort,
    Split,
    Union,
    agg,
)

BY = Tumbling(Count(2), by="k")
LEFT = pa.schema({"k": pa.string(), "x": pa.int64()})
RIGHT = pa.schema({"k": pa.string(), "y": pa.float64()})
WIDE = pa.schema({"k": pa.string(), "x": pa.int64(), "y": pa.float64()})
SUMS = pa.schema({"k": pa.string(), "s": pa.int64()})


def both(**options):
    return Join(left=Sliding(Count(2)), right=Sliding(Count(2)), on="k", **options)


ONE = [
    (Aggregate(BY, s=agg.sum("x")), [SUMS]),
    (Aggregate(Tumbling(Delta("x", 3), by="k"), s=agg.sum("x"), late="port"), [SUMS, LEFT]),
    (Sort("x", window=BY), [LEFT]),
    (Dedup("k", within=Count(2)), [LEFT]),
    (Dedup("k", within=Count(2), duplicates="port"), [LEFT, LEFT]),
    (Filter("x"), [LEFT]),
    (Filter("x", rejected="port"), [LEFT, LEFT]),
    (Split("k", ports=["a", "b", "c"]), [LEFT, LEFT, LEFT]),
    (Functor(keep="k", s="x"), [SUMS]),
    (Functor(dict), [None]),
    (Delay(Count(2)), [LEFT]),
    (Punctor("x"), [LEFT]),
    (Batch(Count(2), function=list), [None]),
]
TWO = [
    (both(), [WIDE]),
    (both(how="left"), [WIDE]),
    (both(how="semi"), [LEFT]),
    (both(how="left", unmatched="port"), [WIDE, LEFT]),
    (both(how="right", unmatched="port"), [WIDE, RIGHT]),
    (both(how="outer", unmatched="port"), [WIDE, LEFT, RIGHT]),
    (both(how="outer", unmatched="port", select=dict), [None, LEFT, RIGHT]),
    (Lookup(on="k", unmatched="port"), [WIDE, LEFT]),
    (Barrier(on="k"), [WIDE, WIDE]),
    (Pair(on="k", select=dict), [None, WIDE]),
    (Union(2), [WIDE]),
]


@pytest.mark.parametrize(("operator", "expected"), ONE, ids=repr)
def test_an_operator_says_the_columns_of_all_its_outputs(operator, expected):
    assert operator.schemas(LEFT) == tuple(expected)
    assert operator.schema(LEFT) == expected[0]


@pytest.mark.parametrize(("operator", "expected"), TWO, ids=repr)
def test_so_does_one_with_two_inputs(operator, expected):
    assert operator.schemas(LEFT, RIGHT) == tuple(expected)
    assert operator.schema(LEFT, RIGHT) == expected[0]


@pytest.mark.parametrize("operator", [op for op, _ in ONE], ids=repr)
def test_without_columns_of_the_input_nothing_is_known_of_the_output(operator):
    assert operator.schemas(None) == (None,) * len(operator.model.outputs)


def test_unpaired_rows_are_unknown_while_one_input_is():
    assert Barrier(on="k").schemas(LEFT, None) == (None, None)


def test_unmatched_rows_are_known_if_their_own_input_is():
    _, left, right = both(how="outer", unmatched="port").schemas(None, RIGHT)
    assert (left, right) == (None, RIGHT)


def test_rows_that_are_put_aside_have_types_without_encoding():
    encoded = pa.schema({"k": pa.dictionary(pa.int8(), pa.string()), "x": pa.int64()})
    assert Filter("x", rejected="port").schemas(encoded) == (LEFT, LEFT)


# -- what a class says ----------------------------------------------------------------------------


class Sides(Operator):
    """Sends rows to two outputs."""

    model = OperatorModel(ports_out=["main", "rest"])

    def on_tuple(self, tuple_, port):
        self.emit_to("main" if tuple_["x"] else "rest", tuple_)


def saying(output, kind=Sides):
    return type("Sides", (kind,), {"output": output})()


def test_a_text_is_of_the_first_output():
    assert saying("k string, x bigint").schemas(None) == (LEFT, None)


def test_a_dict_names_the_outputs():
    operator = saying({"rest": "k string, y double", "main": "k string, x bigint"})
    assert operator.schemas(None) == (LEFT, RIGHT)
    assert operator.schema(None) == LEFT
    assert saying({"rest": "k string, y double"}).schemas(None) == (None, RIGHT)
    assert Sides().schemas(None) == (None, None)


def test_what_is_declared_of_a_second_output_counts_more_than_what_is_known():
    class Large(Filter):
        output = {"rejected": "k string, y double"}  # noqa: RUF012

    assert Large("x", rejected="port").schemas(LEFT) == (LEFT, RIGHT)


def test_process_batch_gives_what_a_dict_says_of_the_first_output():
    running = saying({"main": "k string, x int"}).open()
    made = running.process_batch(pa.record_batch({"k": ["a", "b"], "x": [1, 0]}))
    assert made.schema == pa.schema({"k": pa.string(), "x": pa.int32()})
    assert made.to_pylist() == [{"k": "a", "x": 1}]


def test_an_output_that_is_not_there_is_refused():
    operator = saying({"main": "k string", "rset": "k string"})
    for ask in (operator.schema, operator.schemas):
        with pytest.raises(ModelError) as caught:
            ask(None)
        assert str(caught.value) == (
            "Sides.output = {'rset': ...}: there is no such output. Outputs: main, rest. "
            'Did you mean "rest"?'
        )


def test_a_wrong_text_says_which_output_it_is_of():
    with pytest.raises(SchemaError, match=r"^Sides.output\['rest'\] = 'k strng': column 'k'"):
        saying({"rest": "k strng"}).schemas(None)


def test_an_operator_without_outputs_has_no_schemas():
    class Sink(Operator):
        model = OperatorModel(ports_out=0)

        def on_tuple(self, tuple_, port):
            pass

    assert Sink().schemas(LEFT) == ()
    assert Sink().schema(LEFT) is None


# -- graphs ---------------------------------------------------------------------------------------


def test_a_graph_says_the_columns_of_each_of_its_outputs():
    graph = Graph(
        inputs=["a", "b"],
        large=(Filter("x", rejected="port"), "a"),
        sums=(Aggregate(BY, s=agg.sum("x")), "large.rejected"),
        pairs=(Barrier(on="k"), "large", "b"),
        other=(Functor(dict), "b"),
    )
    named = dict(zip(graph.sinks, graph.schemas(LEFT, RIGHT), strict=True))
    assert named == {"sums": SUMS, "pairs": WIDE, "other": None, "pairs.unpaired": WIDE}
    assert graph.schema(LEFT, RIGHT) == SUMS


def test_outputs_of_a_graph_may_be_its_inputs_or_none():
    graph = Graph(inputs="a", outputs=["a", "n"], n=(Filter("x"), "a"))
    assert graph.schemas(LEFT) == (LEFT, LEFT)
    none = Graph(inputs="a", outputs=[], n=(Filter("x"), "a"))
    assert (none.schemas(LEFT), none.schema(LEFT)) == ((), None)
