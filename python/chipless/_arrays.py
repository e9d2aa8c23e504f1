"""Element types as numpy knows them, and arrays as programs take them.

Programs take arrays with the functions of this module, which names their `Tensor` for type checkers only.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    from chipless._program import Tensor

_UNPACKED = {"int4": "int8", "int2": "int8", "uint4": "uint8", "uint1": "uint8"}
"""Types of less than a byte have a byte for each element."""


_KNOWN: dict[str, np.dtype[Any]] = {}


def dtype_of(element: str) -> np.dtype[Any]:
    """The numpy type of an element type; those that numpy lacks are of ml_dtypes."""
    if element not in _KNOWN:
        _KNOWN[element] = _found(element)
    return _KNOWN[element]


def _found(element: str) -> np.dtype[Any]:
    import numpy as np

    name = _UNPACKED.get(element, element)
    if name != "bfloat16" and not name.startswith("float8"):
        return np.dtype(name)
    try:
        ml_dtypes = importlib.import_module("ml_dtypes")
    except ImportError as error:
        raise ImportError(f"elements of type {element} need the package ml_dtypes (pip install ml_dtypes)") from error
    scalar: type[np.generic] = getattr(ml_dtypes, name)
    return np.dtype(scalar)


def names(tensors: Sequence[Tensor]) -> str:
    """Names of tensors for messages."""
    return ", ".join(tensor.name for tensor in tensors) or "none: there are no inputs"


def taken(inputs: Mapping[str, ArrayLike] | None, tensors: Sequence[Tensor], steps: bool, free: bool) -> list[tuple[str, str, list[int], NDArray[np.uint8]]]:
    """Inputs as the compiled half takes them. ``steps``: a dimension more in front is a row for each step. ``free``: lengths are the data's."""
    import numpy as np

    given: list[tuple[str, str, list[int], NDArray[np.uint8]]] = []
    for name, value in (inputs or {}).items():
        tensor = next((tensor for tensor in tensors if tensor.name == name), None)
        if tensor is None:
            raise ValueError(f"expected the name of an input ({names(tensors)}), found {name!r}")
        array = np.asarray(value)
        if array.dtype != tensor.dtype:
            if not (array.dtype.kind in "uV" and array.dtype.itemsize == tensor.dtype.itemsize and tensor.dtype.kind == "V"):
                raise TypeError(f"input {name!r}: expected {tensor.dtype}, found {array.dtype}; array.astype({str(tensor.dtype)!r}) converts")
        row = array.shape[1:] if steps and array.ndim == len(tensor.shape) + 1 else array.shape
        if row != tensor.shape and not free:
            raise ValueError(f"input {name!r}: expected shape {tensor.shape}, found {array.shape}")
        shape = list(array.shape)
        flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        given.append((name, tensor.element, shape, flat))
    return given
