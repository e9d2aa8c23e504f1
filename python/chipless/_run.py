"""Runs, and what they leave."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from chipless._arrays import dtype_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from chipless import _native


class Table:
    """A table by the Arrow PyCapsule protocol: ``pyarrow.table(t)``, ``polars.DataFrame(t)``, ``pandas.DataFrame.from_arrow(t)`` take it."""

    def __init__(self, native: _native.Table) -> None:
        self._native = native

    @property
    def column_names(self) -> list[str]:
        """Names of the columns."""
        return self._native.column_names

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """A stream of one batch."""
        return self._native.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return len(self._native)

    def __repr__(self) -> str:
        return f"<Table of {len(self)} rows: {', '.join(self.column_names)}>"


class Run:
    """A run that came to its end: its outputs, how long it took, and where the time went."""

    def __init__(self, native: _native.Run) -> None:
        self._native = native
        self._outputs: dict[str, NDArray[np.generic]] | None = None

    @property
    def outputs(self) -> dict[str, NDArray[np.generic]]:
        """Arrays by name, in the program's order; none of a timing run. They are views of the memory of the run, and keep it alive."""
        if self._outputs is None:
            self._outputs = {name: flat.view(dtype_of(element)).reshape(shape) for name, element, shape, flat in self._native.outputs}
        return dict(self._outputs)

    def __getitem__(self, name: str) -> NDArray[np.generic]:
        """The output of this name.

        Raises:
            KeyError: there is none.
        """
        outputs = self.outputs
        if name not in outputs:
            raise KeyError(f"expected the name of an output ({', '.join(outputs) or 'a timing run has none'}), found {name!r}")
        return outputs[name]

    @property
    def latency(self) -> float:
        """Seconds from the start until the program reports that it is done."""
        return self._native.latency_ns / 1e9

    def summary(self) -> dict[str, Any]:
        """What ``chipless run --json`` prints. ``wall_ms`` is how long this run took here, in milliseconds."""
        summary: dict[str, Any] = json.loads(self._native.summary())
        return summary

    @property
    def tasks(self) -> Table:
        """A row for each task: times, waits, bytes, slack, whether it is on the critical path. Times are nanoseconds.

        >>> run = chipless.open("fixtures/npu/add/program.blob").run(timing_only=True)
        >>> len(run.tasks)
        25
        >>> run.tasks.column_names[:4]
        ['task', 'queue', 'server', 'index']
        """
        return Table(self._native.tasks())

    @property
    def waits(self) -> Table:
        """A row for each part of each wait: for what, and who ended it. Times are nanoseconds."""
        return Table(self._native.waits())

    @property
    def memory(self) -> Table:
        """Live bytes of each memory: a row at time 0 and one for each change. Times are nanoseconds."""
        return Table(self._native.memory())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the run, by the ending of the name: a trace (``.pftrace`` for Perfetto, ``.json`` in the Chrome format), the tasks
        (``.csv``, ``.parquet``), or the page (``.html``).

        Raises:
            ValueError: another ending.
            OSError: the file cannot be written.
        """
        self._native.save(os.fspath(path))

    def _repr_html_(self) -> str:
        return self._native.html()

    def __str__(self) -> str:
        return self._native.text()

    def __repr__(self) -> str:
        return f"<Run: {self.latency * 1e6:.3f} µs, outputs {', '.join(self.outputs) or 'none'}>"
