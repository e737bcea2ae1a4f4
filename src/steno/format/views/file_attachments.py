"""What the attachments of files, folders and hooks carry.

Generated from catalogue.json by tools/make_views.py; do not edit.
"""

from typing import Any

from msgspec import field

from steno.format.views.base import View


class Directory(View, frozen=True):
    """`attachment/directory`, 2.1.92 to 2.1.237."""

    content: str | None = None
    display_path: str | None = field(default=None, name="displayPath")
    path: str | None = None


class EditedTextFile(View, frozen=True):
    """`attachment/edited_text_file`, 2.1.200."""

    filename: str | None = None
    snippet: str | None = None


class Dimensions(View, frozen=True):
    """`dimensions` in `file` in `content` in `attachment/file`."""

    display_height: int | float | None = field(default=None, name="displayHeight")
    display_width: int | float | None = field(default=None, name="displayWidth")
    original_height: int | float | None = field(default=None, name="originalHeight")
    original_width: int | float | None = field(default=None, name="originalWidth")


class ContentFile(View, frozen=True):
    """`file` in `content` in `attachment/file`."""

    base64: str | None = None
    content: str | None = None
    dimensions: Dimensions | None = None
    file_path: str | None = field(default=None, name="filePath")
    num_lines: int | float | None = field(default=None, name="numLines")
    original_size: int | float | None = field(default=None, name="originalSize")
    start_line: int | float | None = field(default=None, name="startLine")
    total_lines: int | float | None = field(default=None, name="totalLines")
    type: str | None = None


class Content(View, frozen=True):
    """`content` in `attachment/file`."""

    file: ContentFile | None = None
    type: str | None = None


class RenderedItem(View, frozen=True):
    """`renderedItem` in `attachment/file`."""

    content: str | None = None


class SavedCopyFraming(View, frozen=True):
    """`savedCopyFraming` in `attachment/file`."""

    enveloped: bool | None = None


class File(View, frozen=True):
    """`attachment/file`, 2.1.92 to 2.1.325."""

    content: Content | None = None
    display_path: str | None = field(default=None, name="displayPath")
    filename: str | None = None
    rendered: list[RenderedItem] | None = None
    rendered_role: str | None = field(default=None, name="renderedRole")
    saved_copy_framing: SavedCopyFraming | None = field(default=None, name="savedCopyFraming")


class HookAdditionalContext(View, frozen=True):
    """`attachment/hook_additional_context`, 2.1.92 to 2.1.325."""

    content: list[Any] | None = None
    hook_event: str | None = field(default=None, name="hookEvent")
    hook_name: str | None = field(default=None, name="hookName")
    rendered: list[RenderedItem] | None = None
    rendered_role: str | None = field(default=None, name="renderedRole")
    tool_use_id: str | None = field(default=None, name="toolUseID")


class BlockingError(View, frozen=True):
    """`blockingError` in `attachment/hook_blocking_error`."""

    blocking_error: str | None = field(default=None, name="blockingError")
    command: str | None = None


class HookBlockingError(View, frozen=True):
    """`attachment/hook_blocking_error`, 2.1.92 to 2.1.237."""

    blocking_error: BlockingError | None = field(default=None, name="blockingError")
    hook_event: str | None = field(default=None, name="hookEvent")
    hook_name: str | None = field(default=None, name="hookName")
    tool_use_id: str | None = field(default=None, name="toolUseID")


class HookNonBlockingError(View, frozen=True):
    """`attachment/hook_non_blocking_error`, 2.1.325."""

    command: str | None = None
    duration_ms: int | float | None = field(default=None, name="durationMs")
    exit_code: int | float | None = field(default=None, name="exitCode")
    hook_event: str | None = field(default=None, name="hookEvent")
    hook_name: str | None = field(default=None, name="hookName")
    stderr: str | None = None
    stdout: str | None = None
    tool_use_id: str | None = field(default=None, name="toolUseID")


class HookSuccess(View, frozen=True):
    """`attachment/hook_success`, 2.1.92 to 2.1.325."""

    command: str | None = None
    content: str | None = None
    duration_ms: int | float | None = field(default=None, name="durationMs")
    exit_code: int | float | None = field(default=None, name="exitCode")
    hook_event: str | None = field(default=None, name="hookEvent")
    hook_name: str | None = field(default=None, name="hookName")
    rendered: list[RenderedItem] | None = None
    rendered_role: str | None = field(default=None, name="renderedRole")
    stderr: str | None = None
    stdout: str | None = None
    tool_use_id: str | None = field(default=None, name="toolUseID")


class HookSystemMessage(View, frozen=True):
    """`attachment/hook_system_message`, 2.1.92 to 2.1.237."""

    content: str | None = None
    hook_event: str | None = field(default=None, name="hookEvent")
    hook_name: str | None = field(default=None, name="hookName")
    tool_use_id: str | None = field(default=None, name="toolUseID")


class InstructionsFile(View, frozen=True):
    """`file` in `attachment/instructions`."""

    content: str | None = None
    path: str | None = None
    type: str | None = None


class Instructions(View, frozen=True):
    """`attachment/instructions`, 2.1.325."""

    files: list[InstructionsFile] | None = None
    rendered: list[RenderedItem] | None = None
    rendered_role: str | None = field(default=None, name="renderedRole")


class NestedMemoryContent(View, frozen=True):
    """`content` in `attachment/nested_memory`."""

    content: str | None = None
    content_differs_from_disk: bool | None = field(default=None, name="contentDiffersFromDisk")
    globs: list[str] | None = None
    path: str | None = None
    type: str | None = None


class NestedMemory(View, frozen=True):
    """`attachment/nested_memory`, 2.1.92 to 2.1.237."""

    content: NestedMemoryContent | None = None
    display_path: str | None = field(default=None, name="displayPath")
    path: str | None = None


class ReadTruncationNotice(View, frozen=True):
    """`attachment/read_truncation_notice`, 2.1.92 to 2.1.237."""

    banner: str | None = None
    tool_use_id: str | None = field(default=None, name="toolUseID")


class SelectedLinesInIde(View, frozen=True):
    """`attachment/selected_lines_in_ide`, 2.1.92 to 2.1.237."""

    content: str | None = None
    display_path: str | None = field(default=None, name="displayPath")
    filename: str | None = None
    ide_name: str | None = field(default=None, name="ideName")
    line_end: int | float | None = field(default=None, name="lineEnd")
    line_start: int | float | None = field(default=None, name="lineStart")
