"""Operators built on windowlib's containers."""
