"""Policies of games: by name, from files, from OpenSpiel, from networks."""

from algorithms.policies.network import from_network
from algorithms.policies.openspiel import (
    from_openspiel,
    to_openspiel,
    to_pyspiel_tabular,
    to_python_tabular,
)
from algorithms.policies.policy import Policy

__all__ = [
    "Policy",
    "from_network",
    "from_openspiel",
    "to_openspiel",
    "to_pyspiel_tabular",
    "to_python_tabular",
]
