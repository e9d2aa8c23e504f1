"""What is wrong with a program."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, overload

if TYPE_CHECKING:
    from chipless import _native


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong, or worth a look."""

    code: str
    """The stable code of its rule; ``chipless explain CODE`` tells what it means."""
    severity: str
    """``error``, ``warning`` or ``note``."""
    rule_class: str
    """``fault`` (the program's), ``unsupported`` (what Chipless lacks), ``limit``, or ``departure`` (what compilers are not known to write)."""
    message: str
    """The finding with its numbers."""
    location: dict[str, Any]
    """Where: ``part``, ``item``, ``offset``, ``size``, ``line``, ``column``; those that there are not are None."""
    related: list[dict[str, Any]] = field(default_factory=list)
    """Other places that take part: ``location`` and ``message``."""
    hint: str = ""
    """How to mend it."""
    alike: list[str] = field(default_factory=list)
    """The findings of the same cause that this one stands for, each in a sentence."""

    def __str__(self) -> str:
        item = self.location.get("item") or self.location.get("part") or ""
        place = f" ({item})" if item else ""
        return f"{self.severity}[{self.code}]: {self.message}{place}"


def findings_of(text: str) -> list[Finding]:
    """Findings from their JSON."""
    return [
        Finding(
            code=one["code"],
            severity=one["severity"],
            rule_class=one["class"],
            message=one["message"],
            location=one["location"],
            related=one["related"],
            hint=one["hint"],
            alike=one["alike"],
        )
        for one in json.loads(text)
    ]


class Findings(Sequence[Finding]):
    """What was found, in the order in which it was found. Printing it shows what ``chipless check`` prints."""

    def __init__(self, checked: _native.Checked) -> None:
        self._checked = checked
        self._all = findings_of(json.dumps(json.loads(checked.json())["files"][0]["findings"]))

    @property
    def errors(self) -> list[Finding]:
        """Those that keep the program from running."""
        return [one for one in self._all if one.severity == "error"]

    @property
    def warnings(self) -> list[Finding]:
        """Those that somebody should look at."""
        return [one for one in self._all if one.severity == "warning"]

    @property
    def left_out(self) -> int:
        """How many findings ``allow`` left out."""
        return self._checked.left_out

    def to_sarif(self) -> str:
        """The findings as SARIF 2.1.0, for code-scanning services and editors."""
        return self._checked.sarif()

    @overload
    def __getitem__(self, index: int) -> Finding: ...
    @overload
    def __getitem__(self, index: slice) -> list[Finding]: ...
    def __getitem__(self, index: int | slice) -> Finding | list[Finding]:
        return self._all[index]

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self._all)

    def __str__(self) -> str:
        return self._checked.text()

    def __repr__(self) -> str:
        return f"<Findings: {len(self.errors)} errors, {len(self.warnings)} warnings>"
