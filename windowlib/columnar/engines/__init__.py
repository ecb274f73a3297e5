"""The engines over whole batches: tumbling, sliding, sliced, sort, join."""
