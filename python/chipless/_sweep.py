"""Many runs by a plan, and many machines by a space."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from chipless import _native


def sweep(
    plan: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    shard: tuple[int, int] = (1, 1),
    jobs: int | None = None,
    restart: bool = False,
) -> None:
    """Does the runs of a plan and writes a row for each, as ``chipless sweep PLAN -o OUTPUT`` does. docs/sweeps.md explains plans.

    Args:
        plan: the path of a plan (YAML).
        output: the path of the results, ``.parquet`` or ``.csv``. A sweep that was stopped goes on where it was.
        shard: ``(i, n)`` for every nth run, i from 1.
        jobs: threads; as many as there are processors by default. They never change a result.
        restart: begin anew, whatever a sweep that was stopped has left.

    Raises:
        FileNotFoundError: there is no such plan.
        ReadError: the plan is wrong, or a program is not there.
    """
    os.stat(plan)
    _is_shard(shard)
    _native.sweep(os.fspath(plan), os.fspath(output), shard, jobs or 0, restart)


def tune(
    networks: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    space: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    shard: tuple[int, int] = (1, 1),
    jobs: int | None = None,
    restart: bool = False,
) -> None:
    """Schedules networks on every machine of a space and writes a row for each, as ``chipless tune NET.onnx --space SPACE -o OUTPUT`` does.

    docs/tuning.md explains spaces and the columns.

    Args:
        networks: the path of a network (ONNX), or several.
        space: the path of a space (YAML).
        output: the path of the results, ``.parquet`` or ``.csv``. A search that was stopped goes on where it was.
        shard: ``(i, n)`` for every nth point, i from 1. ``merge`` makes one file of those of all shards.
        jobs: threads; as many as there are processors by default. They never change a result.
        restart: begin anew, whatever a search that was stopped has left.

    Raises:
        FileNotFoundError: there is no such space.
        ReadError: the space is wrong, or a network cannot be scheduled.
    """
    os.stat(space)
    _is_shard(shard)
    _native.tune(_paths(networks), os.fspath(space), os.fspath(output), shard, jobs or 0, restart)


def _is_shard(shard: tuple[int, int]) -> None:
    if not 1 <= shard[0] <= shard[1]:
        raise ValueError(f"expected (i, n) with i from 1 to n, found {shard}")


def _paths(networks: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[str]:
    if isinstance(networks, (str, os.PathLike)):
        return [os.fspath(networks)]
    return [os.fspath(network) for network in networks]


def merge(shards: Iterable[str | os.PathLike[str]], output: str | os.PathLike[str]) -> None:
    """Makes one file of those of all shards, in any order: the file that one machine writes.

    Args:
        shards: paths of the Parquet files of all shards.
        output: the path of the results, ``.parquet`` or ``.csv``.

    Raises:
        ReadError: a file is none of a shard.
        MisuseError: shards are missing, stand twice, or are of several sweeps.
    """
    _native.sweep_merge([Path(shard).read_bytes() for shard in shards], os.fspath(output))
