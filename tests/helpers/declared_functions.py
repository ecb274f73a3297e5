"""All declarations of aggregate functions, of the operators and of the summarizers."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from windowlib.operators import functions
from windowlib.summaries import summarizers
from windowlib.summaries.aggregate_function import AggregateFunction


def declared_functions() -> list[AggregateFunction]:
    """Each of them once, in no order that matters."""
    names = [f"{functions.__name__}.{module.name}" for module in iter_modules(functions.__path__)]
    modules = [summarizers, *map(import_module, names)]
    found = (value for module in modules for value in vars(module).values())
    return list({id(f): f for f in found if isinstance(f, AggregateFunction)}.values())
