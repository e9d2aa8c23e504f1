"""What goes wrong, as exceptions."""

from __future__ import annotations

from chipless._findings import Finding, findings_of


class Error(Exception):
    """What kept the work from being done. Catching it catches every failure of Chipless."""

    kind: str
    """``unreadable``, ``refused``, ``unsupported``, ``limit``, ``deadlock``, ``fault`` or ``misuse``."""

    findings: list[Finding]
    """Findings that say more: rule, place, message."""

    def __init__(self, message: str, kind: str = "fault", findings: list[Finding] | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.findings = findings if findings is not None else []

    def __reduce__(self) -> tuple[type[Error], tuple[str, str, list[Finding]]]:
        return type(self), (str(self), self.kind, self.findings)


class ReadError(Error):
    """A file cannot be read, or is not what it should be."""


class RefusedError(Error):
    """Errors were found in the program, so it must not run. ``run(verify=False)`` runs it all the same."""


class UnsupportedError(Error):
    """Chipless lacks something that the program needs."""


class LimitError(Error):
    """The program is beyond a limit; ``open(..., limits=...)`` raises it."""


class DeadlockError(Error):
    """The program hangs: nothing can move and work is left."""


class FaultError(Error):
    """The program did something wrong while it ran."""


class MisuseError(Error, ValueError):
    """The request makes no sense: an option that does not fit, data of another shape."""


_CLASSES: dict[str, type[Error]] = {
    "unreadable": ReadError,
    "refused": RefusedError,
    "unsupported": UnsupportedError,
    "limit": LimitError,
    "deadlock": DeadlockError,
    "fault": FaultError,
    "misuse": MisuseError,
}


def of(kind: str, message: str, findings: str) -> Error:
    """The exception of a failure, as the compiled half reports it."""
    return _CLASSES.get(kind, Error)(message, kind, findings_of(findings))
