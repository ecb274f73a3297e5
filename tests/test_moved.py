"""Import paths of earlier releases still work, and say where things are now."""

import importlib
import sys

import pytest

import windowlib
from windowlib.moved import HIDDEN, MOVED


@pytest.fixture
def unloaded(monkeypatch):
    """A function that forgets a module, so that it is imported again."""
    return lambda name: monkeypatch.delitem(sys.modules, name, raising=False)


@pytest.mark.parametrize(("old", "new"), MOVED.items())
def test_an_earlier_path_holds_what_its_new_place_holds(old, new, unloaded):
    unloaded(old)
    with pytest.warns(DeprecationWarning, match=f"{old} is now {new}; import it from there."):
        found = importlib.import_module(old)
    public = {name for name in vars(importlib.import_module(new)) if not name.startswith("_")}
    assert public
    assert public <= set(vars(found))


@pytest.mark.parametrize(("old", "new"), HIDDEN.items())
def test_an_earlier_path_with_the_name_of_a_function_leaves_the_function(old, new):
    function = windowlib.trace
    with pytest.warns(DeprecationWarning, match=f"{old} is now {new}"):
        from windowlib.trace import advance  # type: ignore[import-not-found]  # the claim
    assert windowlib.advance is advance
    assert importlib.import_module(old) is sys.modules[old]
    assert function is windowlib.trace
    with pytest.raises(ImportError), pytest.warns(DeprecationWarning, match="is now"):
        from windowlib.trace import nothing  # noqa: F401
