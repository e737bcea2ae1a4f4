"""View of shell commands: command, output, exit status."""

import re
from typing import Final

from steno.report import humanize as say
from steno.sanitize.html import SafeHtml, escape_html
from steno.web.tool_views.components import Fact, box, call_links, join_html, terminal_output
from steno.web.tool_views.generic_view import result_images
from steno.web.tool_views.view_context import Fields, ToolCall, as_fields, as_number, as_text, first_text

_EXIT_CODE: Final = re.compile(r"\A(?:Error: )?Exit code (-?\d+)\n?")
_SAVED_OUTPUT: Final = re.compile(r"<persisted-output>\n?(?P<said>.*?)\n\nPreview[^\n]*\n", re.DOTALL)
_SAVED_PATH: Final = re.compile(r"saved to: (?P<path>[^\n]{1,2000})")
_SAVED_START: Final = "<persisted-output>"
_SAVED_END: Final = "</persisted-output>"
_IMAGE_PREFIX: Final = "data:image/"


def shell_command_view(call: ToolCall) -> SafeHtml:
    """Return a command and its output."""
    result_fields = call.result_fields
    stdout, stderr = as_text(result_fields.get("stdout")), as_text(result_fields.get("stderr"))
    result_text, saved_path, code = call.result_text, "", ""
    if not stdout and not stderr:
        exit_match = _EXIT_CODE.match(result_text)
        code = exit_match[1] if exit_match else ""
        stdout, saved_path = _split_saved_output(result_text[exit_match.end() :] if exit_match else result_text)
    else:
        _, saved_path = _split_saved_output(result_text)
    is_image = stdout.startswith(_IMAGE_PREFIX) or result_fields.get("isImage") is True
    if is_image:
        stdout = ""
    node = call.step.result
    offset = node.offset if node is not None else None
    failed = call.step.state == "failed"
    body, excerpt, overwritten = terminal_output(
        stdout, call.context, command=_command_text(call), offset=offset, from_end=failed
    )
    if stderr.strip():
        errors, error_excerpt, more = terminal_output(stderr, call.context, offset=offset, from_end=True)
        cut = (
            f'<p class="dim small">{escape_html(error_excerpt.extent_label)}</p>' if error_excerpt.extent_label else ""
        )
        body = SafeHtml(f'{body}<div class="err"><h4>stderr</h4>{errors}{cut}</div>')
        overwritten += more
    if is_image or call.has_images:
        body = join_html(body, result_images(call))
    footer = _exit_facts(call, result_fields, code)
    if call.step.state != "unknown":
        footer += tuple(_output_facts(result_fields, saved_path, overwritten, stdout or stderr))
    return box(
        body,
        label=as_text(call.tool_input.get("description")),
        tags=_tags(call),
        links=call_links(call),
        footer=footer,
        excerpt=excerpt,
    )


def _command_text(call: ToolCall) -> str:
    return first_text(call.tool_input, "command") or call.step.command or first_text(call.result_fields, "command")


def _tags(call: ToolCall) -> tuple[str, ...]:
    tool_input = call.tool_input
    background_tag = ("in background",) if tool_input.get("run_in_background") is True else ()
    sandbox_tag = ("without sandbox",) if tool_input.get("dangerouslyDisableSandbox") is True else ()
    return background_tag + sandbox_tag


def _split_saved_output(text: str) -> tuple[str, str]:
    """Return the output, and the path of the full output if this is only its beginning."""
    match = _SAVED_OUTPUT.search(text) if _SAVED_START in text else None
    if match is None:
        return text, ""
    path_match = _SAVED_PATH.search(match["said"])
    preview = text[match.end() :].strip().removesuffix(_SAVED_END).strip("\n").removesuffix("\n...")
    return preview, path_match["path"] if path_match else "a file"


def _exit_facts(call: ToolCall, result_fields: Fields, code: str) -> tuple[Fact, ...]:
    """Return the exit status and the duration."""
    seconds = say.spaced_duration(call.step.duration) if call.step.duration is not None else ""
    state = call.step.state
    if state == "interrupted" or result_fields.get("interrupted") is True:
        return Fact("", "interrupted", "warn"), Fact("", seconds)
    if state == "denied":
        return (Fact("", "not run", "warn"),)
    if state == "open":
        return (Fact("", "no result yet"),)
    if state == "unknown":
        return (Fact("", call.step.outcome),)
    if result_fields.get("backgroundTaskId"):
        return (Fact("", f"moved to background as {as_text(result_fields['backgroundTaskId'])}"),)
    if state == "failed":
        return Fact("", f"exit {code}" if code else "failed", "bad"), Fact("", seconds)
    meaning = as_text(result_fields.get("returnCodeInterpretation"))
    return Fact("", meaning or "exit 0"), Fact("", seconds)


def _output_facts(result_fields: Fields, saved_path: str, overwritten: int, output: str) -> list[Fact]:
    footer: list[Fact] = []
    if not output or output.isspace():
        footer.append(Fact("", "no output"))
    if overwritten:
        footer.append(Fact("", f"{say.count(overwritten, 'line')} overwritten"))
    if output_path := as_text(result_fields.get("persistedOutputPath")) or saved_path:
        size = as_number(result_fields.get("persistedOutputSize"))
        size_label = f", {say.size(size)}" if size is not None else ""
        footer.append(Fact("", f"full output{size_label} saved to {output_path}"))
    return footer


def task_output_view(call: ToolCall) -> SafeHtml:
    """Return the output of a background task."""
    node = call.step.result
    result_fields = call.result_fields
    task = as_fields(result_fields.get("task")) or result_fields
    stdout = first_text(task, "stdout", "output", "result") or ("" if result_fields else call.result_text)
    if node is None or (not task and not stdout):
        return SafeHtml("")
    command = first_text(task, "command", "description")
    body, excerpt, overwritten = terminal_output(stdout, call.context, command=command, offset=node.offset)
    parts = [body]
    stderr = first_text(task, "stderr", "error")
    if stderr:
        errors = terminal_output(stderr, call.context, offset=node.offset)[0]
        parts.append(SafeHtml(f'<div class="err"><h4>stderr</h4>{errors}</div>'))
    code = as_number(task.get("exitCode"))
    footer = (
        Fact("", first_text(task, "status") or first_text(result_fields, "retrieval_status", "message")),
        Fact("exit", "" if code is None else str(code), "bad" if code else ""),
        Fact("", f"{say.count(overwritten, 'line')} overwritten" if overwritten else ""),
        Fact("", "" if stdout or stderr else "no output"),
    )
    title = first_text(task, "task_id", "shellId", "shell_id") or first_text(
        call.tool_input, "task_id", "bash_id", "shell_id"
    )
    header_links = call_links(call)
    return box(join_html(*parts), title=title, links=header_links, footer=footer, excerpt=excerpt)
