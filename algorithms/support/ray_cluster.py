"""Ray, started on this machine or on a cluster, with checks before a sweep relies on it."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path

from algorithms.support.errors import UsageError, first_line
from algorithms.support.files import silent_stderr

CONNECT_TIMEOUT = 10.0  # seconds
NODE_TIMEOUT = 120.0  # seconds for a node's first task: it may have to start Python
MARKER = ".kuhn-bridge"  # a file in the storage of sweeps

# Ray reads these when it is imported, here and on the workers.
ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AIR_NEW_OUTPUT": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_CHDIR_TO_TRIAL_DIR": "0",
    "RAY_memory_monitor_refresh_ms": "0",  # or it kills trials if other programs fill memory
    "GRPC_VERBOSITY": "NONE",
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "TUNE_PRINT_ALL_TRIAL_ERRORS": "0",
    "TUNE_GLOBAL_CHECKPOINT_S": "2",
}


@contextmanager
def connected(address: str | None, cpus: int | None) -> Iterator[None]:
    """Ray for the duration of the block: at `address`, or on this machine.

    Standard output is discarded in the block, because Ray prints messages of its nodes there.
    """
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    import ray

    quiet = {"log_to_driver": False, "logging_level": "CRITICAL"}
    with Path(os.devnull).open("w") as devnull, redirect_stdout(devnull):
        try:
            if address:
                _require_grpc(address)
            with silent_stderr():
                if address:
                    ray.init(address, **quiet)
                else:
                    ray.init("local", num_cpus=cpus, include_dashboard=False, **quiet)
        except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
            problem = f"address {address}: no Ray there" if address else "cannot start Ray"
            raise UsageError(f"{problem} ({first_line(error)})") from None
        try:
            yield
        finally:
            ray.shutdown()


def num_cores(at_most: int | None) -> int:
    """The number of cores of all nodes, or `at_most`."""
    import ray

    num_cpus = int(ray.cluster_resources().get("CPU", 1))
    return min(num_cpus, at_most or num_cpus)


def require_storage(storage: str, *, name: str, fresh: bool) -> None:
    """Raise an error if the storage cannot be written, or a new sweep's name is taken there."""
    from pyarrow import fs

    try:
        system, path = fs.FileSystem.from_uri(storage)
        system.create_dir(path)
        with system.open_output_stream(f"{path}/{MARKER}") as stream:
            stream.write(b"the nodes of a sweep look for this file\n")
        taken = system.get_file_info(f"{path}/{name}").type != fs.FileType.NotFound
    except (OSError, ValueError) as error:
        raise UsageError(f"storage {storage}: cannot write there ({first_line(error)})") from None
    if taken and fresh:
        raise UsageError(f"storage {storage}: has a sweep {name}; choose another folder or storage")


def require_nodes(storage: str) -> None:
    """Raise an error if a node cannot import this project or does not see the storage."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    task = ray.remote(num_cpus=0, max_retries=0)(sees_storage)
    answers = {}
    for node in ray.nodes():
        if node["Alive"]:
            here = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            answer = task.options(scheduling_strategy=here).remote(storage)
            answers[answer] = node["NodeManagerHostname"]
    for answer, host in answers.items():
        try:
            sees = ray.get(answer, timeout=NODE_TIMEOUT)
        except ray.exceptions.RayError as error:
            reason = str(error).strip().splitlines()[-1]
            raise UsageError(f"node {host} cannot run this project: {reason}") from None
        if not sees:
            raise UsageError(f"storage {storage}: node {host} does not see it; choose a shared one")


def sees_storage(storage: str) -> bool:
    """Whether this machine sees the marker that `require_storage` wrote."""
    from pyarrow import fs

    system, path = fs.FileSystem.from_uri(storage)
    return bool(system.get_file_info(f"{path}/{MARKER}").type == fs.FileType.File)


def _require_grpc(address: str) -> None:
    """Raise an error if no gRPC server listens there: Ray itself would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if address == "auto" or not port.isdecimal():
        return  # Ray reports mistakes in these at once
    socket.create_connection((host, int(port)), timeout=CONNECT_TIMEOUT).close()
    if os.environ.get("RAY_USE_TLS") == "1":
        return
    import grpc

    with grpc.insecure_channel(f"{host}:{port}") as channel:
        try:
            grpc.channel_ready_future(channel).result(timeout=CONNECT_TIMEOUT)
        except grpc.FutureTimeoutError:
            raise OSError("another service listens at that port") from None
