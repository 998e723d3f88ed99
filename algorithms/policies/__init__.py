"""Policies of games, their readers and writers: JSON, SB3 zips, ONNX, OpenSpiel, networks."""

from algorithms.policies.policy import Policy
from algorithms.policies.sources import load_policies, load_policy, solve

__all__ = ["Policy", "load_policies", "load_policy", "solve"]
