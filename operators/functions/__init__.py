"""The arithmetic of the aggregate functions: folds, and queues for sliding windows.

Each function is one class: `step` defines it, one value at a time; `sliding` says how a sliding
window keeps it up to date, unless that is two stacks of merged states.
"""
