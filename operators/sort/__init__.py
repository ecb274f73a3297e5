"""Sort, and the order of tuples."""
