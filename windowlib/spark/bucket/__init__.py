"""One bucket inside Spark's stateful processing: its operator, its state, its cache."""
