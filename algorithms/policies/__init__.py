"""Policies of games: by name, from files, from OpenSpiel, from networks."""

from algorithms.policies.policy import GamePolicy

__all__ = ["GamePolicy"]
