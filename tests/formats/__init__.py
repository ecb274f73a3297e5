"""State of every format that was ever written, and that this version goes on from it."""
