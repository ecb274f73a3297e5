"""What a query does and holds: metrics, progress, state, plans as text."""
