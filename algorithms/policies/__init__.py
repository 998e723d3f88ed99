"""Policies of games, their readers and writers: JSON, SB3 zips, ONNX, OpenSpiel, networks."""

from algorithms.policies.load import load_policies, load_policy
from algorithms.policies.policy import Policy

__all__ = ["Policy", "load_policies", "load_policy"]
