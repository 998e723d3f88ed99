"""Exact game theory on trees: values, solvers, linear programs, elimination."""
