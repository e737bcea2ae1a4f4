"""NotebookEdit, which changes one cell of a notebook, and the cell format that Read shows."""

import asyncio
import os
from typing import Any, Final, Literal, TypeAlias

import msgspec

from steno.format.lenient_json import as_list, as_object
from steno.tools.builtin.write import FileDraft, open_draft, save_draft
from steno.tools.context import ToolContext
from steno.tools.file_content import DecodedText
from steno.tools.output import json_safe_name, quote_name
from steno.tools.protocol import ToolFailure, ToolResult, builtin_spec, parse_input

JsonObject: TypeAlias = dict[str, Any]
_DESCRIPTION: Final = """\
Edits one cell of a Jupyter notebook (.ipynb). You must have read the notebook with Read.

- `replace` replaces the source of the cell and clears the outputs of a code cell.
- `insert` adds a new cell after `cell_id`, or at the beginning; requires `cell_type`.
- `delete` removes the cell.
"""
_SCHEMA: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "notebook_path": {"type": "string", "description": "Path of the notebook"},
        "cell_id": {
            "type": "string",
            "description": "ID of the cell, as shown by Read; for insert, of the preceding cell",
        },
        "new_source": {"type": "string", "description": "The new source of the cell"},
        "cell_type": {"type": "string", "enum": ["code", "markdown"]},
        "edit_mode": {
            "type": "string",
            "enum": ["replace", "insert", "delete"],
            "description": "The operation (default: replace)",
        },
    },
    "required": ["notebook_path", "new_source"],
    "additionalProperties": False,
}
_MAX_OUTPUT_LENGTH: Final = 10_000
_CELL_ID_VERSION: Final = (4, 5)
_IMAGE_TYPES: Final = ("image/png", "image/jpeg")


# Reading


def is_notebook(path: str) -> bool:
    """Return whether a path has the extension of a notebook."""
    return path.lower().endswith(".ipynb")


def parse_notebook(text: str, path: str) -> JsonObject:
    """Parse a notebook.

    Raises:
        ToolFailure: The text is not a notebook.
    """
    import json

    try:
        notebook = as_object(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise ToolFailure(f"{quote_name(path)} is not a notebook: invalid JSON.") from error
    if notebook is None or as_list(notebook.get("cells")) is None:
        raise ToolFailure(f"{quote_name(path)} is not a notebook: it has no cells.")
    return notebook


def cell_details(notebook: JsonObject) -> list[JsonObject]:
    """Return the cells in the format of the session record."""
    language = _notebook_language(notebook)
    cells = as_list(notebook["cells"]) or []
    return [_cell_detail(as_object(cell) or {}, index, language) for index, cell in enumerate(cells)]


def cell_blocks(cell: JsonObject) -> list[JsonObject]:
    """Return the content blocks of one of `cell_details` for the model: source, then outputs."""
    cell_id, cell_type = cell["cell_id"], cell["cellType"]
    metadata = "" if cell_type == "code" else f"<cell_type>{cell_type}</cell_type>"
    if cell_type == "code" and cell["language"] != "python":
        metadata = f"<language>{cell['language']}</language>"
    text = f'<cell id="{cell_id}">{metadata}{cell["source"]}</cell id="{cell_id}">'
    blocks: list[JsonObject] = []
    for output in cell.get("outputs", ()):
        if output["text"]:
            text += f"\n{output['text']}"
        image = output.get("image")
        if image is not None:
            source = {"type": "base64", "media_type": image["media_type"], "data": image["image_data"]}
            blocks.append({"type": "image", "source": source})
    return [{"type": "text", "text": text}, *blocks]


def _cell_detail(cell: JsonObject, index: int, language: str) -> JsonObject:
    cell_type = _join_source(cell.get("cell_type")) or "raw"
    detail: JsonObject = {"cellType": cell_type, "source": _join_source(cell.get("source"))}
    if cell_type == "code":
        if isinstance(cell.get("execution_count"), int):
            detail["execution_count"] = cell["execution_count"]
        outputs = [_output_detail(as_object(output) or {}) for output in as_list(cell.get("outputs")) or []]
        if outputs:
            detail["outputs"] = outputs
    detail["cell_id"] = _cell_id(cell, index)
    if cell_type == "code":
        detail["language"] = language
    return detail


def _output_detail(output: JsonObject) -> JsonObject:
    output_type = _join_source(output.get("output_type"))
    data = as_object(output.get("data")) or {}
    if output_type == "error":
        text = "\n".join(map(_join_source, as_list(output.get("traceback")) or []))
        text = text or _replace_surrogates(f"{output.get('ename', '')}: {output.get('evalue', '')}")
    else:
        text = _join_source(output.get("text")) or _join_source(data.get("text/plain"))
    if len(text) > _MAX_OUTPUT_LENGTH:
        text = f"{text[:_MAX_OUTPUT_LENGTH]}\n… ({len(text) - _MAX_OUTPUT_LENGTH:,} more characters of output)"
    detail: JsonObject = {"output_type": output_type, "text": text}
    image = _find_image(data)
    if image is not None:
        detail["image"] = image
    return detail


def _find_image(data: JsonObject) -> JsonObject | None:
    from steno.session.resume.api_rules import image_flaw

    for media_type in _IMAGE_TYPES:
        encoded = "".join(_join_source(data.get(media_type)).split())
        source = {"type": "base64", "media_type": media_type, "data": encoded}
        # An invalid image would make the API reject the whole conversation.
        if encoded and not image_flaw(source)[0]:
            return {"image_data": encoded, "media_type": media_type}
    return None


def _join_source(source: Any) -> str:
    lines = [source] if isinstance(source, str) else as_list(source) or []
    return _replace_surrogates("".join(line for line in lines if isinstance(line, str)))


def _replace_surrogates(text: str) -> str:
    """Replace unpaired surrogates, which JSON can contain but a message cannot."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _cell_id(cell: JsonObject, index: int) -> str:
    cell_id = cell.get("id")
    return _replace_surrogates(cell_id) if isinstance(cell_id, str) and cell_id else f"cell-{index}"


def _notebook_language(notebook: JsonObject) -> str:
    metadata = as_object(notebook.get("metadata")) or {}
    for key in ("language_info", "kernelspec"):
        language_info = as_object(metadata.get(key)) or {}
        name = language_info.get("name" if key == "language_info" else "language")
        if isinstance(name, str) and name:
            return _replace_surrogates(name)
    return "python"


# Editing


class _NotebookEditInput(msgspec.Struct, forbid_unknown_fields=True):
    notebook_path: str
    new_source: str
    cell_id: str | None = None
    cell_type: Literal["code", "markdown"] | None = None
    edit_mode: Literal["replace", "insert", "delete"] = "replace"


class NotebookEdit:
    """The NotebookEdit tool: edits one cell."""

    spec = builtin_spec("NotebookEdit", description=_DESCRIPTION, schema=_SCHEMA)

    async def run(self, tool_input: JsonObject, context: ToolContext, call: str) -> ToolResult:
        """Edit the cell and save the notebook."""
        edit_input = parse_input(tool_input, _NotebookEditInput)
        if not is_notebook(edit_input.notebook_path):
            raise ToolFailure(f"{quote_name(edit_input.notebook_path)} is not a notebook. Use Edit instead.")
        draft = await asyncio.to_thread(open_draft, edit_input.notebook_path, context, call)
        text = _notebook_text(draft)
        notebook = parse_notebook(text.text, draft.path)
        detail = _edit_cell(notebook, edit_input)
        detail["notebook_path"] = json_safe_name(draft.path)
        detail["original_file"] = text.text
        detail["updated_file"] = updated = _serialize(notebook, text.text)
        await save_draft(draft, text.text_format.apply_line_ends(updated), text.text_format, context)
        verb = {"replace": "Updated", "insert": "Inserted", "delete": "Deleted"}[edit_input.edit_mode]
        message = f"{verb} cell {quote_name(detail['cell_id'])}"
        if edit_input.edit_mode != "delete":
            message += f". New source:\n{edit_input.new_source}"
        return ToolResult(message, detail)


def _notebook_text(draft: FileDraft) -> DecodedText:
    if draft.status is None:
        raise ToolFailure(f"File not found: {quote_name(draft.path)}")
    if draft.text is None:
        raise ToolFailure(f"{quote_name(draft.path)} is not a notebook: it is a binary file.")
    return draft.text


def _serialize(notebook: JsonObject, original: str) -> str:
    import json

    end = "\n" if original.endswith("\n") else ""
    return json.dumps(notebook, indent=1, ensure_ascii=False) + end


def _edit_cell(notebook: JsonObject, edit_input: _NotebookEditInput) -> JsonObject:
    """Edit the notebook in place; return the details for the session record."""
    cells = as_list(notebook["cells"]) or []
    index = _find_cell(cells, edit_input)
    old_source = ""
    if edit_input.edit_mode == "insert":
        index += 1
        cell = _new_cell(notebook, cells, edit_input)
        cells.insert(index, cell)
    else:
        cell = as_object(cells[index]) or {}
        old_source = _join_source(cell.get("source"))
        if edit_input.edit_mode == "delete":
            del cells[index]
        else:
            _replace_source(cell, edit_input)
    cell_type = _join_source(cell.get("cell_type")) or "code"
    return {
        "new_source": edit_input.new_source,
        "old_source": old_source,
        "cell_type": cell_type,
        "language": _notebook_language(notebook) if cell_type == "code" else cell_type,
        "edit_mode": edit_input.edit_mode,
        "cell_id": _cell_id(cell, index),
        "error": "",
    }


def _find_cell(cells: list[Any], edit_input: _NotebookEditInput) -> int:
    """Return the index of the cell in the call; -1 to insert at the beginning."""
    if edit_input.cell_id is None:
        if edit_input.edit_mode == "insert":
            return -1
        raise ToolFailure(f"`cell_id` is required to {edit_input.edit_mode} a cell.")
    cell_ids = [_cell_id(as_object(cell) or {}, at) for at, cell in enumerate(cells)]
    if edit_input.cell_id in cell_ids:
        return cell_ids.index(edit_input.cell_id)
    # A cell with an ID may also be named by its position.
    number = edit_input.cell_id.removeprefix("cell-")
    if number.isdecimal() and int(number) < len(cells):
        return int(number)
    raise ToolFailure(
        f"No cell with ID {quote_name(edit_input.cell_id)}. Cells: {', '.join(map(quote_name, cell_ids))}"
    )


def _new_cell(notebook: JsonObject, cells: list[Any], edit_input: _NotebookEditInput) -> JsonObject:
    if edit_input.cell_type is None:
        raise ToolFailure("`cell_type` (code or markdown) is required to insert a cell.")
    cell: JsonObject = {"cell_type": edit_input.cell_type}
    if (_integer_field(notebook, "nbformat"), _integer_field(notebook, "nbformat_minor")) >= _CELL_ID_VERSION:
        cell["id"] = os.urandom(4).hex()
    cell["metadata"] = {}
    uses_lists = any(isinstance((as_object(other) or {}).get("source"), list) for other in cells)
    cell["source"] = [] if uses_lists else ""
    _replace_source(cell, edit_input)
    return cell


def _replace_source(cell: JsonObject, edit_input: _NotebookEditInput) -> None:
    lines = edit_input.new_source.splitlines(keepends=True)
    cell["source"] = lines if isinstance(cell.get("source"), list) else edit_input.new_source
    cell["cell_type"] = edit_input.cell_type or cell.get("cell_type", "code")
    if cell["cell_type"] == "code":
        # The outputs belong to the old source.
        cell["execution_count"] = None
        cell["outputs"] = []
    else:
        cell.pop("execution_count", None)
        cell.pop("outputs", None)


def _integer_field(notebook: JsonObject, key: str) -> int:
    value = notebook.get(key)
    return value if isinstance(value, int) else 0
