"""What changed from one program to another."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from chipless import _native

if TYPE_CHECKING:
    from chipless._program import Program


class Diff:
    """What differs between two programs. Printing it shows what ``chipless diff`` prints."""

    def __init__(self, found: tuple[bool, str, str]) -> None:
        self._equal, self._json, self._text = found

    @property
    def equal(self) -> bool:
        """Whether the two mean the same. Names of builds, dates and addresses that only moved do not count."""
        return self._equal

    def to_dict(self) -> dict[str, Any]:
        """What ``chipless diff --json`` prints: interface, tasks, constants and memory, and time and values where they were asked for."""
        found: dict[str, Any] = json.loads(self._json)
        return found

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<Diff: {'equal' if self._equal else 'different'}>"


def diff(a: Program, b: Program, *, time: bool = False, values: bool = False, seed: int = 0) -> Diff:
    """Tells what changed from one program to another of the same target. Tasks are matched by what they do and where their data come from.

    Args:
        a: the one program.
        b: the other one.
        time: also tell which layers take longer, and why; the parts add up to the difference.
        values: also execute both on the same random inputs and find the first task that writes other numbers.
        seed: of those inputs.

    Raises:
        MisuseError: the two are of different targets.
        DeadlockError: one of them hangs.
        UnsupportedError: Chipless lacks something that one of them needs, or their inputs differ and their values were asked for.

    >>> add, resblock = (chipless.open(f"fixtures/npu/{name}/program.blob") for name in ("add", "resblock"))
    >>> chipless.diff(add, add).equal, chipless.diff(add, resblock).equal
    (True, False)
    """
    return Diff(_native.diff(a._native, b._native, time, seed if values else None))
