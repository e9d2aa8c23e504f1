"""The command ``chipless``."""

from __future__ import annotations

import signal
import sys


def main() -> int:
    """Does what the binary ``chipless`` does with these arguments. Returns the exit status."""
    from chipless._native import command_line

    # Nothing of Python runs meanwhile: an interrupt ends the process, as it ends the binary.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return command_line(["chipless", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
