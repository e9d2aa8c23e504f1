"""Sweeps and explored machines on a Ray cluster."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable
from typing import Any

from chipless import _native
from chipless._sweep import _paths

_SHARDS_PER_PROCESSOR = 4
"""So that nobody waits long for the last one, and a lost one is made again quickly."""


def sweep(
    plan: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    address: str | None = None,
    shards: int | None = None,
    num_cpus: int = 1,
) -> None:
    """Does the runs of a plan on a Ray cluster and writes the file that ``chipless sweep PLAN -o OUTPUT`` writes, to the byte.

    Programs and what they need are sent to the nodes, which need the package and nothing else. Shards of nodes that are lost are made again on
    others. Plan and output are files of this machine.

    Args:
        plan: the path of a plan (YAML).
        output: the path of the results, ``.parquet`` or ``.csv``.
        address: of the cluster; the one that Ray is connected to, or else a local one, by default.
        shards: how many tasks the runs are cut into; four for each processor of the cluster by default.
        num_cpus: processors of each task.

    Raises:
        ImportError: the package ``ray`` is not installed.
        FileNotFoundError: there is no such plan.
        ReadError: the plan is wrong, or a program is not there.
    """
    os.stat(plan)
    carried = _native.sweep_carry(os.fspath(plan))
    _on_cluster("sweep_shard", carried, carried[2], output, address, shards, num_cpus)


def tune(
    networks: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    space: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    address: str | None = None,
    shards: int | None = None,
    num_cpus: int = 1,
) -> None:
    """Schedules networks on every machine of a space, on a Ray cluster; writes the file that ``chipless tune`` writes, to the byte.

    Networks are sent to the nodes, which need the package and nothing else.

    Args:
        networks: the path of a network (ONNX), or several.
        space: the path of a space (YAML).
        output: the path of the results, ``.parquet`` or ``.csv``.
        address: of the cluster; the one that Ray is connected to, or else a local one, by default.
        shards: how many tasks the points are cut into; four for each processor of the cluster by default.
        num_cpus: processors of each task.

    Raises:
        ImportError: the package ``ray`` is not installed.
        FileNotFoundError: there is no such space.
        ReadError: the space is wrong, or a network cannot be scheduled.
    """
    os.stat(space)
    carried = _native.tune_carry(_paths(networks), os.fspath(space))
    _on_cluster("tune_shard", carried, carried[3], output, address, shards, num_cpus)


def _on_cluster(
    shard: str,
    carried: Any,
    runs: int,
    output: str | os.PathLike[str],
    address: str | None,
    shards: int | None,
    num_cpus: int,
) -> None:
    """Makes all shards of what is carried, with the native function of this name, and writes the merged file. Twice gives the same bytes."""
    try:
        ray: Any = importlib.import_module("ray")
    except ImportError as error:
        raise ImportError("a cluster needs the package ray (pip install chipless[ray])") from error
    if shards is not None and shards < 1:
        raise ValueError(f"expected one shard at least, found {shards}")
    started = not ray.is_initialized()
    if started:
        ray.init(address=address, log_to_driver=False)
    try:
        if shards is None:
            shards = _SHARDS_PER_PROCESSOR * int(ray.cluster_resources().get("CPU", 1))
        shards = max(1, min(shards, runs))
        shared = ray.put(carried)

        def make(carried: Any, index: tuple[int, int]) -> bytes:
            made: bytes = getattr(_native, shard)(carried, index, num_cpus)
            return made

        task = ray.remote(num_cpus=num_cpus, max_retries=-1)(make)
        waiting = [task.remote(shared, (index, shards)) for index in range(1, shards + 1)]
        _native.sweep_merge(ray.get(waiting), os.fspath(output))
    finally:
        if started:
            ray.shutdown()
