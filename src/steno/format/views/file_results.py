"""What `toolUseResult` holds for the tools that read, write and search files.

Generated from catalogue.json by tools/make_views.py; do not edit.
"""

from msgspec import field

from steno.format.views.base import View


class StructuredPatchItem(View, frozen=True):
    """`structuredPatchItem` in The result of `Edit`."""

    lines: list[str] | None = None
    new_lines: int | float | None = field(default=None, name="newLines")
    new_start: int | float | None = field(default=None, name="newStart")
    old_lines: int | float | None = field(default=None, name="oldLines")
    old_start: int | float | None = field(default=None, name="oldStart")


class EditResult(View, frozen=True):
    """The result of `Edit`."""

    file_path: str | None = field(default=None, name="filePath")
    new_string: str | None = field(default=None, name="newString")
    old_string: str | None = field(default=None, name="oldString")
    original_file: str | None = field(default=None, name="originalFile")
    replace_all: bool | None = field(default=None, name="replaceAll")
    structured_patch: list[StructuredPatchItem] | None = field(default=None, name="structuredPatch")
    user_modified: bool | None = field(default=None, name="userModified")


class GlobResult(View, frozen=True):
    """The result of `Glob`."""

    count_is_complete: bool | None = field(default=None, name="countIsComplete")
    duration_ms: int | float | None = field(default=None, name="durationMs")
    filenames: list[str] | None = None
    num_files: int | float | None = field(default=None, name="numFiles")
    total_matches: int | float | None = field(default=None, name="totalMatches")
    truncated: bool | None = None


class GrepResult(View, frozen=True):
    """The result of `Grep`."""

    applied_limit: int | float | None = field(default=None, name="appliedLimit")
    content: str | None = None
    filenames: list[str] | None = None
    mode: str | None = None
    num_files: int | float | None = field(default=None, name="numFiles")
    num_lines: int | float | None = field(default=None, name="numLines")
    num_matches: int | float | None = field(default=None, name="numMatches")
    total_files: int | float | None = field(default=None, name="totalFiles")
    total_lines: int | float | None = field(default=None, name="totalLines")


class LSPResult(View, frozen=True):
    """The result of `LSP`."""

    file_count: int | float | None = field(default=None, name="fileCount")
    file_path: str | None = field(default=None, name="filePath")
    operation: str | None = None
    result: str | None = None
    result_count: int | float | None = field(default=None, name="resultCount")


class Edit(View, frozen=True):
    """`edit` in The result of `MultiEdit`."""

    new_string: str | None = None
    old_string: str | None = None
    replace_all: bool | None = None


class MultiEditResult(View, frozen=True):
    """The result of `MultiEdit`."""

    edits: list[Edit] | None = None
    file_path: str | None = field(default=None, name="filePath")
    original_file_contents: str | None = field(default=None, name="originalFileContents")
    structured_patch: list[StructuredPatchItem] | None = field(default=None, name="structuredPatch")
    user_modified: bool | None = field(default=None, name="userModified")


class NotebookEditResult(View, frozen=True):
    """The result of `NotebookEdit`."""

    cell_id: str | None = None
    cell_number: int | float | None = None
    cell_type: str | None = None
    edit_mode: str | None = None
    error: str | None = None
    language: str | None = None
    new_source: str | None = None
    notebook_path: str | None = None
    old_source: str | None = None
    original_file: str | None = None
    updated_file: str | None = None


class Cell(View, frozen=True):
    """`cell` in `file` in The result of `Read`."""

    cell_id: str | None = None
    cell_type: str | None = field(default=None, name="cellType")
    language: str | None = None
    source: str | None = None


class Dimensions(View, frozen=True):
    """`dimensions` in `file` in The result of `Read`."""

    display_height: int | float | None = field(default=None, name="displayHeight")
    display_width: int | float | None = field(default=None, name="displayWidth")
    original_height: int | float | None = field(default=None, name="originalHeight")
    original_width: int | float | None = field(default=None, name="originalWidth")


class File(View, frozen=True):
    """`file` in The result of `Read`."""

    base64: str | None = None
    cells: list[Cell] | None = None
    content: str | None = None
    dimensions: Dimensions | None = None
    file_path: str | None = field(default=None, name="filePath")
    num_lines: int | float | None = field(default=None, name="numLines")
    original_size: int | float | None = field(default=None, name="originalSize")
    start_line: int | float | None = field(default=None, name="startLine")
    total_lines: int | float | None = field(default=None, name="totalLines")
    type: str | None = None


class ReadResult(View, frozen=True):
    """The result of `Read`."""

    file: File | None = None
    type: str | None = None


class WriteResult(View, frozen=True):
    """The result of `Write`."""

    content: str | None = None
    file_path: str | None = field(default=None, name="filePath")
    original_file: str | None = field(default=None, name="originalFile")
    structured_patch: list[StructuredPatchItem] | None = field(default=None, name="structuredPatch")
    type: str | None = None
    user_modified: bool | None = field(default=None, name="userModified")
