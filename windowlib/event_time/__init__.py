"""Event time: timestamps as numbers, how long to wait for rows, and watermarks."""
