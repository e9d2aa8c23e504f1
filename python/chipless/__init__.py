"""Runs compiled AI-accelerator programs without the chip.

Opens programs of five families (Intel NPU blobs, AWS Neuron NEFFs, Gemini schedules, dataflow graphs, FQIR plans), finds out
what is wrong with them, executes them bit for bit, and tells how long they take and why.

>>> import chipless
>>> program = chipless.open("fixtures/npu/add/program.blob")
>>> program.target
'npu'
>>> run = program.run(seed=1)
>>> [(name, array.shape) for name, array in run.outputs.items()]
[('add_1', (1, 32, 16, 16))]
>>> f"{run.latency * 1e6:.1f} µs"
'9.7 µs'
"""

from chipless._compare import Comparison, compare
from chipless._diff import Diff, diff
from chipless._errors import (
    DeadlockError,
    Error,
    FaultError,
    LimitError,
    MisuseError,
    ReadError,
    RefusedError,
    UnsupportedError,
)
from chipless._findings import Finding, Findings
from chipless._native import __version__
from chipless._program import Program, Session, Tensor, open
from chipless._run import Run, Table
from chipless._sweep import merge, sweep, tune

__all__ = [
    "Comparison",
    "DeadlockError",
    "Diff",
    "Error",
    "FaultError",
    "Finding",
    "Findings",
    "LimitError",
    "MisuseError",
    "Program",
    "ReadError",
    "RefusedError",
    "Run",
    "Session",
    "Table",
    "Tensor",
    "UnsupportedError",
    "__version__",
    "compare",
    "diff",
    "merge",
    "open",
    "sweep",
    "tune",
]
