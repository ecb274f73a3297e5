"""Every example runs as a script and prints what its docstring promises."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

LINES = {
    "breakout.py": [
        "77 breakouts in 500 trades; the last five:",
        "14:33:13  MSFT    410.01  above 409.90",
    ],
    "vwap.py": [
        "column       n = agg.count(): slices in two stacks",
        "72 results; the last of each symbol:",
        "IBM   100 trades  VWAP 191.493  high 192.40",
    ],
    "sensor_query.py": [
        "query 0: north wanted 21.9: s16 reads 21.3, the nearest of 10",
    ],
    "dedup.py": [
        "254 orders: 221 passed, 33 were duplicates",
    ],
    "fused_graph_spark.py": [
        "106 rows from Spark, the same in plain Python",
        "IBM   mean 191.37, spread 0.85",
    ],
    "join_streams.py": [
        "379 trades have a quote, 21 came before any",
        "IBM   mean spread 0.020 of 10100 shares",
    ],
    "clean_vwap.py": ["19 prices, 42 trades rejected"],
    "correlation.py": ["AAPL: 100 pairs, correlation 0.947"],
    "visits.py": ["62 visits; the longest had 5 clicks"],
    "sessions.py": [
        "37 sessions of 3 users; the longest:",
        "eve  10 clicks in 14 minutes",
    ],
    "online_regression.py": [
        "39 fits on 2 workers, the same as on one; the last:",
    ],
    "skyline_offers.py": [
        "382 rows in the skylines of all windows",
        "  433   111 EUR   0.4 km  ****  factor 2 of 3",
        "300 offers entered a skyline, 249 left it; the last three:",
        "+ Rome     98 EUR   0.2 km  ***",
    ],
    "network_age.py": [
        "  21.6 s  10.0.0.7 > 10.0.9.1  1038 bytes/s",
        "  90.3 s  10.0.0.7 > 10.0.9.1  silent for 30 s, forgotten",
        "120 packets; still alive: 10.0.0.7 > 10.0.9.3, 10.0.0.7 > 10.0.9.4",
    ],
}


ON_SPARK = "fused_graph_spark.py"
"""A Java of its own takes long to start; tests/docs/test_spark_pages.py runs this in one it has."""


def each(name):
    return pytest.param(name, marks=pytest.mark.long if name == ON_SPARK else ())


def test_every_example_is_listed_here():
    assert set(LINES) == {path.name for path in (ROOT / "examples").glob("*.py")}


@pytest.mark.parametrize("name", [each(name) for name in LINES])
def test_example_prints_its_result(name):
    done = subprocess.run(
        [sys.executable, "-W", "error", ROOT / "examples" / name],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    check_printed(name, done.stdout)


def check_printed(name, text):
    missing = [line for line in LINES[name] if line not in text.splitlines()]
    assert not missing, text


@pytest.mark.parametrize("name", LINES)
def test_example_is_short(name):
    text = (ROOT / "examples" / name).read_text(encoding="utf-8")
    assert len(text.splitlines()) < 80
