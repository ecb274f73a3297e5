"""Functions over extents of columns, with numpy and, where it is installed, numba."""
