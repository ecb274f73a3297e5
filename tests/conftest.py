"""Settings of all tests."""

from hypothesis import settings

# How long an example takes depends on the machine, and on what the first one has to import.
settings.register_profile("windowlib", deadline=None)
settings.load_profile("windowlib")
