"""`python -m windowlib demo`: one operator, from the question to the answer."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any

from windowlib.samples import trades
from windowlib.spec import Spec
from windowlib.timeline import contents, ranges
from windowlib.trace import Moment, trace

QUESTION = "VWAP per symbol over the last 6 trades, after every 3 trades."

# Shown and run, so that what is shown is what runs.
CODE = """\
from windowlib import Count, Sliding, replay
from windowlib.operators import Aggregate, agg
from windowlib.samples import trades

vwap = Aggregate(
    Sliding(Count(6), every=Count(3), by="symbol"),
    vwap=agg.sum("notional") / agg.sum("qty"),
    until=agg.last("ts"),
)
rows = list(replay(vwap, trades(500)))
"""

TRY = """\
Try:
  python -m windowlib trace "sliding, delta(ts, 20), delta(ts, 10)"
  python -m windowlib trace "tumbling, time(10), partitioned" --svg timeline.svg
"""


def text(symbol: str = "IBM", shown: int = 12) -> str:
    """The whole demonstration."""
    names: dict[str, Any] = {}
    exec(CODE, names)
    spec: Spec = names["vwap"].windows[0]
    seen = trace(spec, [t for t in trades() if t["symbol"] == symbol][:shown])
    rows: list[dict[str, Any]] = names["rows"]
    parts = [
        f"Question: {QUESTION}",
        textwrap.indent(CODE.rstrip(), "    "),
        f"What fires, for the first {symbol} trades:",
        "\n".join(_fired(seen.moments[:7])),
        "The same as a timeline:",
        textwrap.indent(seen.text(78), "  "),
        f"The answer, {len(rows)} rows from {len(trades())} trades; the last of each symbol:",
        "\n".join(_table(rows)),
        TRY.rstrip(),
    ]
    return "\n\n".join(parts)


def _fired(moments: list[Moment]) -> Iterator[str]:
    for moment in moments:
        said = []
        for event in moment.events:
            more = ranges(event.tuples) if event.name != "trigger" else f"on {contents(event)}"
            said.append(f"{event.name} {more}".rstrip())
        yield f"  trade {moment.number}: {', '.join(said)}"


def _table(rows: list[dict[str, Any]]) -> Iterator[str]:
    yield f"  {'symbol':6}{'vwap':>10}   until"
    last = {row["symbol"]: row for row in rows}
    for symbol in sorted(last):
        row = last[symbol]
        yield f"  {symbol:6}{row['vwap']:>10.3f}   {row['until']:%H:%M:%S}"
