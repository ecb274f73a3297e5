"""The containers: tumbling and sliding windows that take tuples and fire events."""
