"""Operators at work: models, running operators, graphs, replay."""
