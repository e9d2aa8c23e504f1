"""Sweeps on a Ray cluster."""

from __future__ import annotations

import importlib
import os
from typing import Any

from chipless import _native

_SHARDS_PER_PROCESSOR = 4
"""So that nobody waits long for the last one, and a lost one is made again quickly."""


def _shard(carried: tuple[str, str, int, dict[str, bytes]], shard: tuple[int, int], jobs: int) -> bytes:
    """Makes one shard. Doing it twice gives the same bytes."""
    return _native.sweep_shard(carried, shard, jobs)


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
    try:
        ray: Any = importlib.import_module("ray")
    except ImportError as error:
        raise ImportError("sweeps on a cluster need the package ray (pip install chipless[ray])") from error
    if shards is not None and shards < 1:
        raise ValueError(f"expected one shard at least, found {shards}")
    carried = _native.sweep_carry(os.fspath(plan))
    started = not ray.is_initialized()
    if started:
        ray.init(address=address, log_to_driver=False)
    try:
        if shards is None:
            shards = _SHARDS_PER_PROCESSOR * int(ray.cluster_resources().get("CPU", 1))
        shards = max(1, min(shards, carried[2]))
        shared = ray.put(carried)
        task = ray.remote(num_cpus=num_cpus, max_retries=-1)(_shard)
        waiting = [task.remote(shared, (index, shards), num_cpus) for index in range(1, shards + 1)]
        _native.sweep_merge(ray.get(waiting), os.fspath(output))
    finally:
        if started:
            ray.shutdown()
