"""Which rows of a batch make a window: by count, delta and time."""
