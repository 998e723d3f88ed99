"""Ray: started on this machine or reached on a cluster, and asked before it is relied upon."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from types import MappingProxyType
from typing import Any

from algorithms.support.errors import UsageError, first_line

REACH = 10.0  # seconds for an address to answer
ANSWER = 120.0  # seconds for all nodes to answer: each may have to start Python first
CLIENT = "ray://"
MARKER = ".kuhn-bridge"  # a file in the storage of sweeps

# Ray reads these when it is imported, on this side and on the workers'.
ENVIRONMENT: Mapping[str, str] = MappingProxyType(
    {
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_AIR_NEW_OUTPUT": "0",
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
        "RAY_CHDIR_TO_TRIAL_DIR": "0",
        "RAY_memory_monitor_refresh_ms": "0",  # or it kills trials when others fill the memory
        "GRPC_VERBOSITY": "NONE",
        "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
        "TUNE_PRINT_ALL_TRIAL_ERRORS": "0",
        "TUNE_GLOBAL_CHECKPOINT_S": "2",
    }
)


@contextmanager
def connected(address: str | None, cpus: int | None) -> Iterator[None]:
    """Ray, for the length of the block: that at `address`, or one on this machine alone.

    Nothing can be printed in the block: Ray prints there what its nodes say.
    """
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    import ray

    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):
        _start(address, cpus)
        try:
            yield
        finally:
            ray.shutdown()


def _start(address: str | None, cpus: int | None) -> None:
    import ray

    quiet = {"log_to_driver": False, "logging_level": "CRITICAL"}
    try:
        if address:
            _require_answer(address)
        with _no_standard_error():
            if address:
                ray.init(address, **quiet)
            else:
                ray.init("local", num_cpus=cpus, include_dashboard=False, **quiet)
    except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        where = f"--address {address}: no Ray there" if address else "cannot start Ray"
        raise UsageError(f"{where} ({first_line(error)})") from None


def cores(at_most: int | None) -> int:
    """On all nodes."""
    import ray

    found = int(ray.cluster_resources().get("CPU", 1))
    return min(found, at_most or found)


def require_storage(storage: str, *, name: str, fresh: bool) -> None:
    """Refuse storage that cannot be written, or that has another sweep of this name."""
    from pyarrow import fs

    try:
        system, path = fs.FileSystem.from_uri(storage)
        system.create_dir(path)
        _write(system, f"{path}/{MARKER}")
        taken = system.get_file_info(f"{path}/{name}").type != fs.FileType.NotFound
    except (OSError, ValueError) as error:
        raise UsageError(f"--storage {storage}: cannot write there ({first_line(error)})") from None
    if taken and fresh:
        raise UsageError(
            f"--storage {storage}: has a sweep {name}; give another --out or --storage"
        )


def require_nodes(storage: str) -> None:
    """Refuse a cluster where a node lacks this project, or does not reach the storage."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    look = ray.remote(num_cpus=0, max_retries=0)(reaches)
    nodes = {node["NodeID"]: node["NodeManagerHostname"] for node in ray.nodes() if node["Alive"]}
    strategies = (NodeAffinitySchedulingStrategy(node, soft=False) for node in nodes)
    asked = [look.options(scheduling_strategy=where).remote(storage) for where in strategies]
    for host, answer in zip(nodes.values(), asked, strict=True):
        try:
            reached = ray.get(answer, timeout=ANSWER)
        except ray.exceptions.RayError as error:
            reason = str(error).strip().splitlines()[-1]
            raise UsageError(f"node {host} cannot run this project: {reason}") from None
        if not reached:
            raise UsageError(f"node {host} does not reach {storage}; give a --storage that all do")


def reaches(storage: str) -> bool:
    """Whether the storage is the one that was written to, seen from where this runs."""
    from pyarrow import fs

    system, path = fs.FileSystem.from_uri(storage)
    found: bool = system.get_file_info(f"{path}/{MARKER}").type == fs.FileType.File
    return found


def _write(system: Any, path: str) -> None:
    with system.open_output_stream(path) as stream:
        stream.write(b"the trials of a sweep look for this file\n")


@contextmanager
def _no_standard_error() -> Iterator[None]:
    """Close the ears: what Ray's compiled part logs goes past `sys.stderr`."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with Path(os.devnull).open("w") as nowhere:
            os.dup2(nowhere.fileno(), 2)
            yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _require_answer(address: str) -> None:
    """Refuse an address where nothing speaks gRPC: Ray itself would try for minutes."""
    host, _, port = address.removeprefix(CLIENT).rpartition(":")
    if address == "auto" or not port.isdecimal():
        return  # Ray says at once what is wrong with these
    with socket.create_connection((host, int(port)), timeout=REACH):
        pass
    if os.environ.get("RAY_USE_TLS") == "1":
        return
    import grpc

    with grpc.insecure_channel(f"{host}:{port}") as channel:
        try:
            grpc.channel_ready_future(channel).result(timeout=REACH)
        except grpc.FutureTimeoutError:
            raise OSError("something else answers at that port") from None
