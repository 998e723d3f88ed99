"""Policies by name or by file: whatever a command takes where it says POLICY."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TypeVar

from algorithms.exact.kuhn import nash
from algorithms.support.errors import UsageError, unknown
from kuhn_bridge.policy import TabularPolicy

T = TypeVar("T")

FILES = (".json", ".zip", ".onnx")
FORMS = ("uniform", "nash:<alpha>", "random:<seed>", "policy.json", "model.zip", "policy.onnx")
HELP = f"one of {', '.join(FORMS)}"


def load(
    source: str, *, trust: bool = False, deterministic: bool = False, besides: Sequence[str] = ()
) -> TabularPolicy:
    """The policy that `source` names.

    `deterministic` keeps the likeliest action of each row; `trust` lets a model's file run code;
    `besides` are names that the caller knows, to be suggested too.
    """
    is_file = Path(source).suffix in FILES
    policy = _read(source, trust=trust) if is_file else _named(source, besides)
    return policy.likeliest() if deterministic else policy


def _read(path: str, *, trust: bool) -> TabularPolicy:
    """A policy from a file; what a kind of file needs is imported for it alone."""
    if path.endswith(".json"):
        return TabularPolicy.load(path)
    if path.endswith(".onnx"):
        from algorithms.policies import onnx as onnx_policy

        return onnx_policy.load_policy(path)
    from algorithms.policies import sb3 as model

    return model.load_policy(path, trust=trust)


def _named(source: str, besides: Sequence[str]) -> TabularPolicy:
    name, _, argument = source.partition(":")
    if source == "uniform":
        return TabularPolicy.uniform()
    if name == "nash":
        return nash(_number(Fraction, argument, "nash:<alpha>, a number in [0, 1/3]: nash:1/3"))
    if name == "random":
        return TabularPolicy.random(_number(_seed, argument, "random:<seed>, a whole number"))
    raise unknown("policy", source, (*besides, *FORMS))


def _number(parse: Callable[[str], T], text: str, want: str) -> T:
    try:
        return parse(text)
    except (ValueError, ZeroDivisionError):
        raise UsageError(f"{text!r} is not a number here; want {want}") from None


def _seed(text: str) -> int:
    seed = int(text)
    if seed < 0:
        raise ValueError
    return seed
