"""Benchmarks: `python -m bench NAME` prints ratios and writes bench/out/NAME.json."""
