"""NotebookEdit: one cell of a notebook changed, and the rest as it was."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from steno.tools.builtin.notebook import NotebookEdit
from steno.tools.builtin.read import Read
from steno.tools.context import ToolContext
from steno.tools.protocol import ToolFailure, ToolResult


@pytest.fixture
def context(tmp_path: Path) -> ToolContext:
    folder = str(tmp_path)
    return ToolContext(cwd=folder, project=folder, session_id="s", folder=folder, env={})


def _cell(kind: str, source: Any, **more: Any) -> dict[str, Any]:
    cell: dict[str, Any] = {"cell_type": kind, "metadata": {}, "source": source, **more}
    if kind == "code":
        cell = {**cell, "outputs": more.get("outputs", []), "execution_count": 7}
    return cell


def _notebook(context: ToolContext, *cells: dict[str, Any], minor: int = 5, end: str = "\n") -> Path:
    about = {"language_info": {"name": "python"}, "π": [1.0, 12345678901234567890]}
    made = {"cells": cells, "metadata": about, "nbformat": 4, "nbformat_minor": minor}
    path = Path(context.cwd) / "nb.ipynb"
    path.write_text(json.dumps(made) + end)
    asyncio.run(Read().run({"file_path": str(path)}, context, "call"))
    return path


def _edit(context: ToolContext, **asked: Any) -> ToolResult:
    given = {"notebook_path": "nb.ipynb", "new_source": "", **asked}
    return asyncio.run(NotebookEdit().run(given, context, "call"))


def test_a_cell_is_replaced_and_its_outputs_are_emptied(context: ToolContext) -> None:
    printed = [{"output_type": "stream", "name": "stdout", "text": "1\n"}]
    path = _notebook(context, _cell("code", "print(1)", id="c1", outputs=printed), end="")
    before = path.read_text()
    outcome = _edit(context, cell_id="c1", new_source="print(2)")
    (cell,) = json.loads(path.read_text())["cells"]
    assert (cell["source"], cell["outputs"], cell["execution_count"]) == ("print(2)", [], None)
    assert "c1" in str(outcome.content)
    assert "print(2)" in str(outcome.content)
    assert outcome.detail == {
        "new_source": "print(2)",
        "old_source": "print(1)",
        "cell_type": "code",
        "language": "python",
        "edit_mode": "replace",
        "cell_id": "c1",
        "error": "",
        "notebook_path": str(path),
        "original_file": before,
        "updated_file": path.read_text(),
    }


def test_the_rest_of_the_notebook_keeps_its_values(context: ToolContext) -> None:
    path = _notebook(context, _cell("code", "a", id="c1"), _cell("markdown", "# ü", id="c2"))
    before = json.loads(path.read_text())
    _edit(context, cell_id="c1", new_source="b")
    after = json.loads(path.read_text())
    assert after["metadata"] == before["metadata"]
    assert after["cells"][1] == before["cells"][1]
    assert "ü" in path.read_text()
    assert path.read_text().endswith("}\n")


def test_a_text_in_lines_stays_in_lines(context: ToolContext) -> None:
    path = _notebook(context, _cell("code", ["a\n", "b"], id="c1"))
    _edit(context, cell_id="c1", new_source="x\ny")
    assert json.loads(path.read_text())["cells"][0]["source"] == ["x\n", "y"]


def test_a_cell_is_inserted_behind_another_or_first(context: ToolContext) -> None:
    path = _notebook(context, _cell("code", "a", id="c1"), _cell("code", "b", id="c2"))
    made = _edit(context, cell_id="c1", new_source="# T", cell_type="markdown", edit_mode="insert")
    first = _edit(context, new_source="0", cell_type="code", edit_mode="insert")
    cells = json.loads(path.read_text())["cells"]
    assert [cell["source"] for cell in cells] == ["0", "a", "# T", "b"]
    assert "outputs" not in cells[2]
    assert cells[0]["outputs"] == []
    assert (cells[0]["id"], cells[2]["id"]) == (first.detail["cell_id"], made.detail["cell_id"])


def test_older_notebooks_get_no_ids(context: ToolContext) -> None:
    path = _notebook(context, _cell("code", "a"), minor=4)
    _edit(context, cell_id="cell-0", new_source="b", cell_type="code", edit_mode="insert")
    cells = json.loads(path.read_text())["cells"]
    assert [cell["source"] for cell in cells] == ["a", "b"]
    assert "id" not in cells[1]


def test_a_cell_is_deleted(context: ToolContext) -> None:
    path = _notebook(context, _cell("code", "a", id="c1"), _cell("code", "b", id="c2"))
    outcome = _edit(context, cell_id="c1", edit_mode="delete")
    assert [cell["id"] for cell in json.loads(path.read_text())["cells"]] == ["c2"]
    assert (outcome.detail["old_source"], outcome.detail["edit_mode"]) == ("a", "delete")


def test_code_that_becomes_words_has_no_outputs(context: ToolContext) -> None:
    path = _notebook(context, _cell("code", "a", id="c1"))
    _edit(context, cell_id="c1", new_source="b", cell_type="markdown")
    (cell,) = json.loads(path.read_text())["cells"]
    assert cell == {"cell_type": "markdown", "metadata": {}, "source": "b", "id": "c1"}


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"cell_id": "c9"}, "No cell with ID c9. Cells: c1"),
        ({"cell_id": "cell-1"}, "No cell with ID cell-1"),
        ({}, "`cell_id` is required to replace"),
        ({"edit_mode": "delete"}, "`cell_id` is required to delete"),
        ({"edit_mode": "insert"}, "`cell_type` .* is required"),
        ({"edit_mode": "melt"}, "Invalid tool input"),
        ({"notebook_path": "a.py"}, "Use Edit"),
        ({"notebook_path": "nope.ipynb"}, "File not found"),
    ],
)
def test_what_makes_no_sense_is_refused(context: ToolContext, asked: dict[str, Any], words: str) -> None:
    path = _notebook(context, _cell("code", "a", id="c1"))
    before = path.read_bytes()
    with pytest.raises(ToolFailure, match=words):
        _edit(context, **asked)
    assert path.read_bytes() == before


def test_a_notebook_must_have_been_read_and_not_changed_since(context: ToolContext) -> None:
    path = _notebook(context, _cell("code", "a", id="c1"))
    path.write_text(path.read_text() + " ")
    with pytest.raises(ToolFailure, match="has changed since"):
        _edit(context, cell_id="c1", new_source="b")
    context.file_stamps.clear()
    with pytest.raises(ToolFailure, match="Read it first"):
        _edit(context, cell_id="c1", new_source="b")


@pytest.mark.parametrize("data", ["{", "[]", '{"cells": 1}', "[" * 100_000])
def test_what_is_no_notebook_is_refused(context: ToolContext, tmp_path: Path, data: str) -> None:
    path = tmp_path / "nb.ipynb"
    path.write_text(data)
    status = path.stat()
    context.file_stamps[str(path)] = (status.st_mtime_ns, status.st_size)
    with pytest.raises(ToolFailure, match="is not a notebook"):
        _edit(context, cell_id="c1")
