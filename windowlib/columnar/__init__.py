"""The columnar engine: the answers of the event engine for whole Arrow batches, with arrays."""
