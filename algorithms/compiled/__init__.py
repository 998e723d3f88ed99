"""Fast twins of plain functions, compiled with Numba."""
