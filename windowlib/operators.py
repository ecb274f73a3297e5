"""The ready-made operators, which live in the package `operators`, under a name of our own.

`operators` is a common name for a folder; `from windowlib.operators import Aggregate` always finds
ours.
"""

from operators import *  # noqa: F403
from operators import __all__ as __all__
