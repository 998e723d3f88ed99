"""Solvers, measures and training for games, and their commands."""
