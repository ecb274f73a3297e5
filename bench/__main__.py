"""Run a benchmark by name: `python -m bench core`."""

from __future__ import annotations

import importlib
import pkgutil
import sys

import bench
from bench.harness import report

HELPERS = {
    "__main__",
    "accuracy",
    "by_hand",
    "columnar_data",
    "columnar_peers",
    "growth",
    "harness",
    "peers",
}


def main(arguments: list[str]) -> int:
    names = sorted(m.name for m in pkgutil.iter_modules(bench.__path__) if m.name not in HELPERS)
    if len(arguments) != 1 or arguments[0] not in names:
        print(f"usage: python -m bench NAME, with NAME one of: {', '.join(names)}", file=sys.stderr)
        return 2
    module = importlib.import_module(f"bench.{arguments[0]}")
    report(arguments[0], module.run())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
