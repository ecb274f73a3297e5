"""Import paths of earlier releases: each still works, and warns with the path to use instead."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType

MOVED = {
    "windowlib.conformance": "windowlib.tools.conformance",
    "windowlib.engine": "windowlib.window.engine",
    "windowlib.engine.generated": "windowlib.window.engine.generated",
    "windowlib.farms.shares": "windowlib.farms.pane_farm",
    "windowlib.order": "windowlib.spec.order",
    "windowlib.spark.salting": "windowlib.spark.farms.salting",
}
RENAMED = {"windowlib.farms.shares": {"Shares": "SliceSplitter"}}
"""Names that these paths had, where the new places have others."""
# A module whose name is that of a public function now: it must not become the package's attribute.
HIDDEN = {"windowlib.trace": "windowlib.tools.tracing"}


class _Moved:
    """Finds the modules of `MOVED`, and fills them with what their new places hold."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in MOVED:
            return None
        package = any(other.startswith(f"{name}.") for other in MOVED)
        return ModuleSpec(name, self, is_package=package)  # type: ignore[arg-type]  # no ABC needed

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        found = vars(_new(module.__name__, MOVED[module.__name__]))
        vars(module).update({k: v for k, v in found.items() if not k.startswith("__")})
        for old, name in RENAMED.get(module.__name__, {}).items():
            setattr(module, old, found[name])


def _new(old: str, new: str) -> ModuleType:
    warnings.warn(f"{old} is now {new}; import it from there.", DeprecationWarning, stacklevel=3)
    return import_module(new)


def _hidden(old: str, new: str) -> ModuleType:
    """A module that is found by its name alone, and reads everything from its new place."""
    module = ModuleType(old)

    def find(name: str) -> object:
        if name.startswith("__"):  # what `import` itself asks for
            raise AttributeError(name)
        return getattr(_new(old, new), name)

    vars(module)["__getattr__"] = find
    return module


def install() -> None:
    """Let `import` find the earlier paths; a second call does nothing."""
    for old, new in HIDDEN.items():
        sys.modules.setdefault(old, _hidden(old, new))
    if not any(isinstance(finder, _Moved) for finder in sys.meta_path):
        sys.meta_path.append(_Moved())
