"""Outputs beside those of a reference."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Union

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    from chipless._program import Program

Model = Union[str, "os.PathLike[str]", "Callable[[dict[str, NDArray[Any]]], Mapping[str, ArrayLike]]"]
"""The path of an ONNX file, or a function from inputs to outputs by name."""


@dataclass(frozen=True)
class Comparison:
    """How far the outputs of a program are from those of a reference."""

    rows: list[dict[str, Any]]
    """One for each output: ``output``, ``max_abs``, ``max_rel``, ``mean_abs``, ``place`` (the index of the largest difference), ``ok``."""

    @property
    def ok(self) -> bool:
        """Whether every output is within the tolerance."""
        return all(row["ok"] for row in self.rows)

    def __str__(self) -> str:
        lines = [f"{'output':20}  {'max |difference|':>16}  {'mean':>10}  {'relative':>10}  at"]
        for row in self.rows:
            word = "" if row["ok"] else "  beyond the tolerance"
            lines.append(f"{row['output']:20}  {row['max_abs']:16.6g}  {row['mean_abs']:10.4g}  {row['max_rel']:10.4g}  {row['place']}{word}")
        return "\n".join(lines)


_TOLERANCE = {2: (1e-2, 1e-2), 1: (1.0, 1e-1)}
"""Absolute and relative, by the bytes of an element: a few units of the last place of what accelerators compute with."""


def compare(
    program: Program,
    model: Model,
    inputs: Mapping[str, ArrayLike],
    *,
    atol: float | None = None,
    rtol: float | None = None,
) -> Comparison:
    """Runs a program and a reference on the same inputs and tells how far apart their outputs are.

    Outputs are matched by name, or else in order. Inputs of an ONNX model are cast to its types.

    Args:
        program: the program.
        model: the path of an ONNX file, which ONNX Runtime runs, or a function from inputs to outputs by name.
        inputs: arrays by the program's names.
        atol: absolute tolerance; 0.01 for 16-bit outputs, 1 for 8-bit ones, 1e-4 for others by default.
        rtol: relative tolerance; 0.01, 0.1 and 1e-4 by default.

    Raises:
        ImportError: an ONNX file is given and ``onnxruntime`` is not installed.
        ValueError: the reference has other outputs, or of other shapes.

    >>> import numpy as np
    >>> program = chipless.open("fixtures/npu/add/program.blob")
    >>> inputs = {x.name: np.ones(x.shape, x.dtype) for x in program.inputs}
    >>> chipless.compare(program, lambda given: {program.outputs[0].name: sum(given.values())}, inputs).ok
    True
    """
    import numpy as np

    given = {name: np.asarray(value) for name, value in inputs.items()}
    run = program.run(given)
    reference = dict(model(given)) if callable(model) else _onnx(model, given)
    found = {tensor.name: run[tensor.name] for tensor in program.outputs if tensor.name in run.outputs} or run.outputs
    if not set(found) & set(reference):
        # Compilers rename outputs; they keep their order.
        reference = dict(zip(found, reference.values()))
    rows = []
    for name, array in found.items():
        if name not in reference:
            raise ValueError(f"expected an output {name!r} of the reference, found {', '.join(reference) or 'none'}")
        expected = np.asarray(reference[name])
        if expected.shape != array.shape:
            raise ValueError(f"output {name!r}: expected shape {array.shape} of the reference, found {expected.shape}")
        rows.append(_row(name, array, expected, atol, rtol))
    return Comparison(rows)


def _row(name: str, found: NDArray[Any], expected: NDArray[Any], atol: float | None, rtol: float | None) -> dict[str, Any]:
    import numpy as np

    absolute, relative = _TOLERANCE.get(found.dtype.itemsize, (1e-4, 1e-4))
    absolute, relative = absolute if atol is None else atol, relative if rtol is None else rtol
    a, b = found.astype(np.float64), expected.astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        difference = np.abs(a - b)
        # Equal infinities, and NaN where NaN is expected, do not differ.
        difference[(a == b) | (np.isnan(a) & np.isnan(b))] = 0.0
        ratio = np.where(difference == 0, 0.0, difference / np.abs(b))
    difference = np.where(np.isnan(difference), np.inf, difference)
    size = difference.size
    place = tuple(int(i) for i in np.unravel_index(int(difference.argmax()), difference.shape)) if size else ()
    return {
        "output": name,
        "max_abs": float(difference.max()) if size else 0.0,
        "max_rel": float(np.nanmax(ratio)) if size else 0.0,
        "mean_abs": float(difference.mean()) if size else 0.0,
        "place": place,
        "ok": bool((difference <= absolute + relative * np.abs(b)).all()),
    }


def _onnx(path: str | os.PathLike[str], given: dict[str, NDArray[Any]]) -> dict[str, Any]:
    """Runs an ONNX model."""
    os.stat(path)
    try:
        onnxruntime = importlib.import_module("onnxruntime")
    except ImportError as error:
        raise ImportError("comparing with an ONNX model needs the package onnxruntime (pip install chipless[onnx])") from error
    session = onnxruntime.InferenceSession(os.fspath(path), providers=["CPUExecutionProvider"])
    declared = session.get_inputs()
    feeds = {}
    for index, wanted in enumerate(declared):
        # Compilers rename inputs; they keep their order.
        name = wanted.name if wanted.name in given else list(given)[index] if index < len(given) else wanted.name
        if name not in given:
            raise ValueError(f"expected an input {wanted.name!r} for the model, found {', '.join(given) or 'none'}")
        types = {"tensor(float)": "float32", "tensor(float16)": "float16", "tensor(double)": "float64"}
        kind = types.get(wanted.type)
        feeds[wanted.name] = given[name].astype(kind) if kind is not None else given[name]
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, feeds)))
