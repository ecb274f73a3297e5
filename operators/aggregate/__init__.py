"""Aggregate: functions of the tuples of a window."""
