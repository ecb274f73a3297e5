"""Windows over whole Arrow batches, with array arithmetic: the answers of the event engine."""
