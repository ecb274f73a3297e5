"""Columns, partition keys, ragged arrays and kept rows: the arrays that engines work on."""
