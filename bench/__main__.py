"""Run a benchmark by name, or a part of it: `python -m bench core`; draw it: `… plot core`."""

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
    "charts",
    "columnar_data",
    "columnar_peers",
    "event_time_spark",
    "farms_balance",
    "farms_kernels",
    "farms_pay",
    "farms_real",
    "farms_spark",
    "farms_virtual",
    "farms_work",
    "figures_engines",
    "figures_farms",
    "growth",
    "harness",
    "peers",
    "plot",
    "preference_disorder",
    "preference_panes",
    "preference_parts",
    "preference_real",
    "simulated",
    "sketches",
}


def main(arguments: list[str]) -> int:
    names = sorted(m.name for m in pkgutil.iter_modules(bench.__path__) if m.name not in HELPERS)
    name, *options = arguments or [""]
    if name == "plot" and len(options) == 1 and options[0] in names:
        return _plot(options[0])
    if name not in names:
        listed = ", ".join(names)
        print(f"usage: python -m bench [plot] NAME, with NAME one of: {listed}", file=sys.stderr)
        return 2
    module = importlib.import_module(f"bench.{name}")
    if not options:
        report(name, module.run())
        return 0
    if hasattr(module, "selected"):
        report(f"{name}_selected", module.selected(options))
        return 0
    option, known = " ".join(options), getattr(module, "OPTIONS", {})
    if option not in known:
        these = f"has the options {', '.join(known)}" if known else "has no options"
        print(f"python -m bench {name} {these}, and not {option}", file=sys.stderr)
        return 2
    report(f"{name}_{option.lstrip('-')}", known[option]())
    return 0


def _plot(name: str) -> int:
    from bench.plot import draw

    try:
        print(draw(name))
    except FileNotFoundError as error:
        print(f"{error.filename} is not there. Run: python -m bench {name}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
