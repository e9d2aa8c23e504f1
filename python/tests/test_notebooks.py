"""The notebooks of examples/ run from top to bottom."""

import pytest

from conftest import ROOT

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
for needed in ("ipykernel", "onnx", "onnxruntime", "pandas", "matplotlib", "pyarrow"):
    pytest.importorskip(needed)

BOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


@pytest.mark.parametrize("book", BOOKS, ids=lambda book: book.stem)
def test_notebook(book):
    notebook = nbformat.read(book, 4)
    client = nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(book.parent)}})
    client.execute()
    assert sum(len(cell.get("outputs", [])) for cell in notebook.cells) >= 3


def test_there_are_four():
    assert len(BOOKS) >= 4
