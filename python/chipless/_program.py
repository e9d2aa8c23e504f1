"""Programs and sessions."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Union

from chipless import _native
from chipless._arrays import dtype_of, taken
from chipless._findings import Findings
from chipless._run import Run

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike

Source = Union[str, "os.PathLike[str]", bytes, bytearray, memoryview, IO[bytes]]
"""A path, bytes, or an open binary file."""

Machine = Union[Mapping[str, Union[str, int, float]], str, "os.PathLike[str]"]
"""Figures by name (numbers, or text such as ``"2x"``), the path of a machine file, or the name of a built-in machine (``"npu5"``)."""


@dataclass(frozen=True)
class Tensor:
    """An input or an output."""

    name: str
    """Its name."""
    shape: tuple[int, ...]
    """Dimensions, outermost first."""
    element: str
    """Its element type; ``int4`` and the like have a byte for each element in arrays."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The numpy type of its arrays. bfloat16 and the 8-bit floats are those of ml_dtypes.

        Raises:
            ImportError: the type is one of ml_dtypes, which is not installed.
        """
        return dtype_of(self.element)


class Program:
    """A compiled program. Made by :func:`chipless.open`; it may be used from several threads."""

    def __init__(self, native: _native.Program) -> None:
        self._native = native
        self._inputs, self._outputs = ([Tensor(name, tuple(shape), element) for name, element, shape in side] for side in native.interface())

    @property
    def target(self) -> str:
        """The family of the program: ``npu``, ``neuron``, ``gemini``, ``dsa`` or ``spu``."""
        return self._native.target

    @property
    def name(self) -> str:
        """The program's own name for itself; empty where it has none."""
        return str(self.info()["name"])

    @property
    def inputs(self) -> list[Tensor]:
        """What it takes, in the program's order."""
        return list(self._inputs)

    @property
    def outputs(self) -> list[Tensor]:
        """What it gives, in the program's order. A run may give more, see :attr:`Run.outputs`."""
        return list(self._outputs)

    def info(self) -> dict[str, Any]:
        """What ``chipless info --format json`` prints, without the name of the file.

        >>> chipless.open("fixtures/npu/add/program.blob").info()["counts"]["barriers"]
        4
        """
        info: dict[str, Any] = json.loads(self._native.info())
        del info["file"]
        return info

    def check(self, *, allow: tuple[str, ...] | list[str] = (), deny: tuple[str, ...] | list[str] = ()) -> Findings:
        """Finds out what is wrong with it, without running it.

        Args:
            allow: codes of findings to leave out, or patterns such as ``neff-*``.
            deny: codes of findings to take for errors.

        Raises:
            MisuseError: there is no such code.

        >>> print(chipless.open("fixtures/npu/add/program.blob").check())
        fixtures/npu/add/program.blob: clean
        <BLANKLINE>
        """
        return Findings(self._native.check(list(allow), list(deny)))

    def run(
        self,
        inputs: Mapping[str, ArrayLike] | None = None,
        *,
        seed: int = 0,
        timing_only: bool = False,
        verify: bool = True,
        machine: Machine | None = None,
        threads: int | None = None,
        order: str = "timed",
    ) -> Run:
        """Executes and times the program. The lock of the interpreter is released meanwhile.

        Args:
            inputs: arrays by name, of the type and shape that :attr:`inputs` has. Those that are missing are random. Arrays in C order are
                taken without a copy. Those of an FQIR plan may have one dimension more in front: a row for each step, state is carried.
            seed: of the random inputs.
            timing_only: only keep time; there are no outputs.
            verify: refuse a program in which errors are found. The proof is made once.
            machine: figures that differ from the machine's own (``chipless machine TARGET`` lists them), a machine file, or the name of a built-in
                machine such as ``"npu5"``.
            threads: that compute; as many as there are processors by default. They never change a result.
            order: ``timed``, or ``random:SEED`` for another order that the program allows.

        Raises:
            ValueError: an input of another name or shape.
            TypeError: an input of another type.
            RefusedError: errors were found in the program.
            DeadlockError: it hangs.
            FaultError: it did something wrong while it ran.
            UnsupportedError: Chipless lacks something that it needs.
            LimitError: it is beyond a limit.

        >>> program = chipless.open("fixtures/npu/add/program.blob")
        >>> slow, fast = (program.run(timing_only=True, machine={"dma.latency": n}).latency for n in (1625, 510))
        >>> slow > fast
        True
        """
        given = taken(inputs, self._inputs, self.target == "spu", self._native.depends_on_data)
        options = _machine(machine)
        return Run(self._native.run(given, seed, timing_only, verify, options, _threads(threads), _order(order)))

    def session(self) -> Session:
        """A session at its start: state is kept from step to step.

        Raises:
            RefusedError: errors were found in the program.
            LimitError: its buffers are beyond the limit.
        """
        return Session(self)

    def _repr_html_(self) -> str:
        return self._native.html()

    def __repr__(self) -> str:
        sides = (", ".join(f"{t.name}: {t.element}{list(t.shape)}" for t in side) or "nothing" for side in (self._inputs, self._outputs))
        return f"<Program {self._native.file} ({self.target}): {' -> '.join(sides)}>"


class Session:
    """A program that is run step after step. State is kept, and inputs keep what they were given; before that they are random, of seed 0.

    >>> import numpy as np
    >>> program = chipless.open("fixtures/spu/recurrent/plan.json")
    >>> session = program.session()
    >>> x = np.ones(program.inputs[0].shape, program.inputs[0].dtype)
    >>> first, second = (session.step({program.inputs[0].name: x}) for _ in range(2))
    >>> name = program.outputs[0].name
    >>> bool((first[name] == second[name]).all())
    False
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        # A program that is as long as its inputs is another one at each step, and keeps nothing.
        self._native = None if program._native.depends_on_data else program._native.session(0)

    def step(self, inputs: Mapping[str, ArrayLike] | None = None) -> Run:
        """Runs one step.

        Args:
            inputs: arrays by name; the others keep what they were given.

        Raises:
            ValueError: an input of another name or shape.
            TypeError: an input of another type.
            FaultError: the program did something wrong while it ran.
        """
        if self._native is None:
            return self._program.run(inputs)
        return Run(self._native.step(taken(inputs, self._program._inputs, False, False)))

    def reset(self) -> None:
        """Back to the start."""
        if self._native is not None:
            self._native.reset()


def open(
    source: Source,
    *,
    target: str | None = None,
    machine: Machine | None = None,
    network: str | os.PathLike[str] | None = None,
    weights: str | os.PathLike[str] | None = None,
    limits: Mapping[str, int] | None = None,
) -> Program:
    """Opens a program; whose it is shows in its content.

    Args:
        source: a path, bytes, or an open binary file.
        target: whose it is, where its content does not tell: ``npu``, ``neuron``, ``gemini``, ``dsa`` or ``spu``.
        machine: figures of the machine for every run, as :meth:`Program.run` takes them.
        network: the network of a schedule (gemini).
        weights: the directory with its weights (gemini).
        limits: bounds on what the file may ask for, such as ``{"memory_bytes": 2**30}``.

    Raises:
        FileNotFoundError: there is no such file.
        ReadError: the file is none of ours, or damaged.
        MisuseError: an option that programs of this target do not have.

    >>> chipless.open("fixtures/dsa/kernels/dot.dfg")
    <Program fixtures/dsa/kernels/dot.dfg (dsa): p_: uint64[3], q_: uint64[3] -> sum: uint64[1]>
    """
    options = _machine(machine)
    for option, file in (("network", network), ("weights", weights)):
        if file is not None:
            os.stat(file)
            options.append((option, os.fspath(file)))
    options.extend(("limit", f"{limit}={value}") for limit, value in (limits or {}).items())
    if isinstance(source, (str, os.PathLike)):
        path = os.fspath(source)
        if not isinstance(path, str):
            raise TypeError(f"expected a path as text, found {path!r}")
        os.stat(path)
        return Program(_native.open(path, None, target, options))
    if isinstance(source, (bytes, bytearray, memoryview)):
        return Program(_native.open("<bytes>", bytes(source), target, options))
    if hasattr(source, "read"):
        data = source.read()
        if not isinstance(data, bytes):
            raise TypeError("expected a file opened in binary mode ('rb'), found one that gives text")
        name: object = getattr(source, "name", None)
        return Program(_native.open(name if isinstance(name, str) else "<file>", data, target, options))
    raise TypeError(f"expected a path, bytes or an open binary file, found {type(source).__name__}")


def _machine(machine: Machine | None) -> list[tuple[str, str]]:
    """A machine as options."""
    if machine is None:
        return []
    if isinstance(machine, Mapping):
        return [("set", f"{name}={value}") for name, value in machine.items()]
    name = os.fspath(machine)
    # Without a folder or an ending it is the name of a built-in machine; whether there is one is for the library to say.
    if not isinstance(machine, str) or any(sign in name for sign in "./\\"):
        os.stat(name)
    return [("machine", name)]


def _threads(threads: int | None) -> int:
    if threads is None:
        return 0
    if threads < 1:
        raise ValueError(f"expected one thread at least, found {threads}")
    return threads


def _order(order: str) -> int | None:
    if order == "timed":
        return None
    kind, _, seed = order.partition(":")
    if kind != "random" or not seed.isdigit():
        raise ValueError(f"expected 'timed', or 'random:' and a whole number, found {order!r}")
    return int(seed)
