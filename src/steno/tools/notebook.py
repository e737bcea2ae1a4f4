"""Notebooks: their cells as Read shows them, and NotebookEdit, which changes one cell."""

import asyncio
import os
from typing import Any, Final, Literal, TypeAlias

import msgspec

from steno.format.values import as_list, as_object
from steno.tools.base import ToolFailure, ToolResult
from steno.tools.catalogue import own_spec
from steno.tools.context import ToolContext
from steno.tools.inputs import taken
from steno.tools.texts import Text
from steno.tools.words import shown, spoken
from steno.tools.write import Draft, save, take_up

__all__ = ["NotebookEdit", "cell_blocks", "cell_details", "is_notebook", "parse"]

Json: TypeAlias = dict[str, Any]
_DESCRIPTION: Final = """\
Changes one cell of a Jupyter notebook (.ipynb), which must have been read with Read before.

- `replace` puts `new_source` in the place of the cell's text, and empties the outputs of code.
- `insert` makes a new cell behind `cell_id`, or as the first one; it needs `cell_type`.
- `delete` takes the cell out.
"""
_SCHEMA: Final[Json] = {
    "type": "object",
    "properties": {
        "notebook_path": {"type": "string", "description": "The path of the notebook"},
        "cell_id": {
            "type": "string",
            "description": "The id of the cell, as Read shows it; for insert, of the one before",
        },
        "new_source": {"type": "string", "description": "The cell's new text"},
        "cell_type": {"type": "string", "enum": ["code", "markdown"]},
        "edit_mode": {
            "type": "string",
            "enum": ["replace", "insert", "delete"],
            "description": "replace, unless said otherwise",
        },
    },
    "required": ["notebook_path", "new_source"],
    "additionalProperties": False,
}
_MOST_OUTPUT: Final = 10_000
_IDS_SINCE: Final = (4, 5)
_IMAGES: Final = ("image/png", "image/jpeg")


# Reading


def is_notebook(path: str) -> bool:
    """Whether a file's name says that it is a notebook."""
    return path.lower().endswith(".ipynb")


def parse(text: str, path: str) -> Json:
    """Return a notebook.

    Raises:
        ToolFailure: it is none.
    """
    import json

    try:
        notebook = as_object(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise ToolFailure(f"{shown(path)} is not a notebook: it is not JSON") from error
    if notebook is None or as_list(notebook.get("cells")) is None:
        raise ToolFailure(f"{shown(path)} is not a notebook: it has no cells")
    return notebook


def cell_details(notebook: Json) -> list[Json]:
    """Return the cells in the shape that a session keeps."""
    language = _language(notebook)
    cells = as_list(notebook["cells"]) or []
    return [_detail(as_object(cell) or {}, at, language) for at, cell in enumerate(cells)]


def cell_blocks(cell: Json) -> list[Json]:
    """Return what a model reads of a cell (one of `cell_details`): its text, then its outputs."""
    name, kind = cell["cell_id"], cell["cellType"]
    mark = "" if kind == "code" else f"<cell_type>{kind}</cell_type>"
    if kind == "code" and cell["language"] != "python":
        mark = f"<language>{cell['language']}</language>"
    words = f'<cell id="{name}">{mark}{cell["source"]}</cell id="{name}">'
    blocks: list[Json] = []
    for output in cell.get("outputs", ()):
        if output["text"]:
            words += f"\n{output['text']}"
        image = output.get("image")
        if image is not None:
            source = {
                "type": "base64",
                "media_type": image["media_type"],
                "data": image["image_data"],
            }
            blocks.append({"type": "image", "source": source})
    return [{"type": "text", "text": words}, *blocks]


def _detail(cell: Json, at: int, language: str) -> Json:
    kind = _joined(cell.get("cell_type")) or "raw"
    detail: Json = {"cellType": kind, "source": _joined(cell.get("source"))}
    if kind == "code":
        if isinstance(cell.get("execution_count"), int):
            detail["execution_count"] = cell["execution_count"]
        outputs = [
            _output(as_object(output) or {}) for output in as_list(cell.get("outputs")) or []
        ]
        if outputs:
            detail["outputs"] = outputs
    detail["cell_id"] = _name(cell, at)
    if kind == "code":
        detail["language"] = language
    return detail


def _output(output: Json) -> Json:
    kind = _joined(output.get("output_type"))
    data = as_object(output.get("data")) or {}
    if kind == "error":
        text = "\n".join(map(_joined, as_list(output.get("traceback")) or []))
        text = text or _whole(f"{output.get('ename', '')}: {output.get('evalue', '')}")
    else:
        text = _joined(output.get("text")) or _joined(data.get("text/plain"))
    if len(text) > _MOST_OUTPUT:
        text = f"{text[:_MOST_OUTPUT]}\n… ({len(text) - _MOST_OUTPUT:,} more characters of output)"
    detail: Json = {"output_type": kind, "text": text}
    image = _image(data)
    if image is not None:
        detail["image"] = image
    return detail


def _image(data: Json) -> Json | None:
    from steno.session.resume.images import image_flaw

    for media_type in _IMAGES:
        encoded = "".join(_joined(data.get(media_type)).split())
        source = {"type": "base64", "media_type": media_type, "data": encoded}
        # One that the API refuses would spoil the whole conversation.
        if encoded and not image_flaw(source)[0]:
            return {"image_data": encoded, "media_type": media_type}
    return None


def _joined(source: Any) -> str:
    lines = [source] if isinstance(source, str) else as_list(source) or []
    return _whole("".join(line for line in lines if isinstance(line, str)))


def _whole(text: str) -> str:
    """Return a text without halves of characters, which JSON can hold and no message can."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _name(cell: Json, at: int) -> str:
    name = cell.get("id")
    return _whole(name) if isinstance(name, str) and name else f"cell-{at}"


def _language(notebook: Json) -> str:
    about = as_object(notebook.get("metadata")) or {}
    for key in ("language_info", "kernelspec"):
        told = as_object(about.get(key)) or {}
        name = told.get("name" if key == "language_info" else "language")
        if isinstance(name, str) and name:
            return _whole(name)
    return "python"


# Changing


class _Input(msgspec.Struct, forbid_unknown_fields=True):
    notebook_path: str
    new_source: str
    cell_id: str | None = None
    cell_type: Literal["code", "markdown"] | None = None
    edit_mode: Literal["replace", "insert", "delete"] = "replace"


class NotebookEdit:
    """The tool."""

    spec = own_spec("NotebookEdit", description=_DESCRIPTION, schema=_SCHEMA)

    async def run(self, tool_input: Json, context: ToolContext, call: str) -> ToolResult:
        """Change one cell."""
        asked = taken(tool_input, _Input)
        if not is_notebook(asked.notebook_path):
            raise ToolFailure(f"{shown(asked.notebook_path)} is not a notebook: use Edit")
        draft = await asyncio.to_thread(take_up, asked.notebook_path, context, call)
        text = _text_of(draft)
        notebook = parse(text.text, draft.path)
        detail = _change(notebook, asked)
        detail["notebook_path"] = spoken(draft.path)
        detail["original_file"] = text.text
        detail["updated_file"] = updated = _written(notebook, text.text)
        await save(draft, text.form.dress(updated), text.form, context)
        done = {"replace": "Changed", "insert": "Inserted", "delete": "Deleted"}[asked.edit_mode]
        words = f"{done} cell {shown(detail['cell_id'])}"
        if asked.edit_mode != "delete":
            words += f"; its text is now:\n{asked.new_source}"
        return ToolResult(words, detail)


def _text_of(draft: Draft) -> Text:
    if draft.status is None:
        raise ToolFailure(f"{shown(draft.path)} does not exist")
    if draft.text is None:
        raise ToolFailure(f"{shown(draft.path)} is not a notebook: it is not text")
    return draft.text


def _written(notebook: Json, like: str) -> str:
    import json

    end = "\n" if like.endswith("\n") else ""
    return json.dumps(notebook, indent=1, ensure_ascii=False) + end


def _change(notebook: Json, asked: _Input) -> Json:
    """Change the notebook; return what the session keeps of it."""
    cells = as_list(notebook["cells"]) or []
    at = _find(cells, asked)
    old = ""
    if asked.edit_mode == "insert":
        at += 1
        cell = _made(notebook, cells, asked)
        cells.insert(at, cell)
    else:
        cell = as_object(cells[at]) or {}
        old = _joined(cell.get("source"))
        if asked.edit_mode == "delete":
            del cells[at]
        else:
            _replace(cell, asked)
    kind = _joined(cell.get("cell_type")) or "code"
    return {
        "new_source": asked.new_source,
        "old_source": old,
        "cell_type": kind,
        "language": _language(notebook) if kind == "code" else kind,
        "edit_mode": asked.edit_mode,
        "cell_id": _name(cell, at),
        "error": "",
    }


def _find(cells: list[Any], asked: _Input) -> int:
    """Return where the cell is that a call names; -1 for a place before all."""
    if asked.cell_id is None:
        if asked.edit_mode == "insert":
            return -1
        raise ToolFailure(f"`cell_id` is needed to {asked.edit_mode} a cell")
    names = [_name(as_object(cell) or {}, at) for at, cell in enumerate(cells)]
    if asked.cell_id in names:
        return names.index(asked.cell_id)
    # A cell that has an id may also be named by where it is.
    number = asked.cell_id.removeprefix("cell-")
    if number.isdecimal() and int(number) < len(cells):
        return int(number)
    raise ToolFailure(f"no cell {shown(asked.cell_id)}; there are {', '.join(map(shown, names))}")


def _made(notebook: Json, cells: list[Any], asked: _Input) -> Json:
    if asked.cell_type is None:
        raise ToolFailure("`cell_type` is needed to insert a cell: code or markdown")
    cell: Json = {"cell_type": asked.cell_type}
    if (_number(notebook, "nbformat"), _number(notebook, "nbformat_minor")) >= _IDS_SINCE:
        cell["id"] = os.urandom(4).hex()
    cell["metadata"] = {}
    as_lists = any(isinstance((as_object(other) or {}).get("source"), list) for other in cells)
    cell["source"] = [] if as_lists else ""
    _replace(cell, asked)
    return cell


def _replace(cell: Json, asked: _Input) -> None:
    lines = asked.new_source.splitlines(keepends=True)
    cell["source"] = lines if isinstance(cell.get("source"), list) else asked.new_source
    cell["cell_type"] = asked.cell_type or cell.get("cell_type", "code")
    if cell["cell_type"] == "code":
        # What the old text has printed is not what the new one would.
        cell["execution_count"] = None
        cell["outputs"] = []
    else:
        cell.pop("execution_count", None)
        cell.pop("outputs", None)


def _number(notebook: Json, key: str) -> int:
    value = notebook.get(key)
    return value if isinstance(value, int) else 0
