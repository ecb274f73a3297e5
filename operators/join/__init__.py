"""Joins: of windows, as rows arrive; and in time, once both inputs are complete."""
