"""Stubs and annotations hold: mypy --strict over the package and a caller, stubtest against what is there, pyright where it is installed."""

import shutil
import subprocess
import sys

import pytest

from conftest import ROOT

pytest.importorskip("mypy")


def run(*command, cwd=ROOT / "python"):
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd)
    return done.returncode, done.stdout + done.stderr


def test_mypy_over_the_package():
    code, said = run(sys.executable, "-m", "mypy")
    assert code == 0, said


def test_stubs_are_what_is_there():
    code, said = run(sys.executable, "-m", "mypy.stubtest", "chipless", "--ignore-missing-stub", cwd=ROOT)
    assert code == 0, said


def test_pyright_over_the_package():
    if shutil.which("pyright") is None:
        pytest.skip("pyright is not installed")
    code, said = run("pyright", "--pythonpath", sys.executable, "chipless")
    assert code == 0, said


def test_mypy_finds_wrong_calls(tmp_path):
    (tmp_path / "wrong.py").write_text("import chipless\nchipless.open(3.5)\nchipless.open('x').run(seed='a')\n")
    code, said = run(sys.executable, "-m", "mypy", "--strict", "wrong.py", cwd=tmp_path)
    assert code == 1 and said.count("error:") == 2, said


def test_a_caller_is_typed(tmp_path):
    (tmp_path / "caller.py").write_text(
        "import chipless\n"
        "import numpy as np\n"
        "from numpy.typing import NDArray\n\n"
        "program: chipless.Program = chipless.open('x.blob')\n"
        "run: chipless.Run = program.run({'x': np.zeros(3)}, machine={'dma.latency': '2x'})\n"
        "y: NDArray[np.generic] = run['y']\n"
        "latency: float = run.latency\n"
        "codes: list[str] = [finding.code for finding in program.check()]\n"
        "program.session().step({'x': np.zeros(3)}).save('t.pftrace')\n"
    )
    code, said = run(sys.executable, "-m", "mypy", "--strict", "caller.py", cwd=tmp_path)
    assert code == 0, said
