"""Commands about checkpoints: rewind to a prompt, undo file changes, show the diff."""

import asyncio
import os
from typing import TYPE_CHECKING, Final, cast

from steno.agent.checkpoints.checkpointer import FileCheckpointer
from steno.console.commands import ConsoleCommand
from steno.console.dialog import Choice, Dialog
from steno.console.step_lines import diff_lines
from steno.errors import NotFound, StenoError
from steno.report import humanize
from steno.sanitize.terminal import StyledLine, one_line
from steno.tools.patch import structured_patch

if TYPE_CHECKING:
    from steno.console.chat import Chat


_RESTORE_CHOICES: Final = (
    Choice("c", "Conversation", "conversation", "files stay unchanged"),
    Choice("f", "Files", "files", "the conversation stays unchanged"),
    Choice("b", "Both", "both", "conversation and files"),
)
_MAX_ROWS: Final = 14
_PREVIEW_ROWS: Final = 5
_MAX_FILE_BYTES: Final = 1 << 20


def _checkpointer(chat: "Chat") -> FileCheckpointer | None:
    checkpointer = chat.session.agent.executor.checkpointer if chat.session is not None else None
    return checkpointer if isinstance(checkpointer, FileCheckpointer) else None


def _list_prompts(chat: "Chat") -> list[tuple[str, str]]:
    from steno.agent.writable_session import list_prompts

    session = chat.session
    path = session.agent.conversation.recorder.path if session is not None else ""
    try:
        return list_prompts(path) if os.path.exists(path) else []
    except NotFound:
        return []


async def _rewind(chat: "Chat", _arguments: str) -> None:
    """Restore the conversation, the files or both to the state before a prompt."""
    prompts = await asyncio.to_thread(_list_prompts, chat)
    checkpointer = _checkpointer(chat)
    if not prompts or checkpointer is None:
        chat.renderer.print_note("No checkpoints yet", "dim")
        return
    choices = [
        Choice("", one_line(text) or "(empty prompt)", prompt_id, f"prompt {index}")
        for index, (prompt_id, text) in reversed(list(enumerate(prompts, 1)))
    ]
    dialog = Dialog("Rewind to a prompt", (), choices, is_search=True)
    dialog.preview = lambda name: _plan_lines(chat, checkpointer, name)[:_PREVIEW_ROWS]
    reply = await chat.prompt.ask(dialog)
    if reply is None:
        return
    body = _plan_lines(chat, checkpointer, reply.value)
    target = await chat.prompt.ask(Dialog("Restore:", body, _RESTORE_CHOICES))
    if target is None:
        return
    if target.value in ("files", "both"):
        await _restore(chat, checkpointer, reply.value)
    if target.value in ("conversation", "both"):
        await _rewind_conversation(chat, reply.value, dict(prompts)[reply.value])


def _plan_lines(chat: "Chat", checkpointer: FileCheckpointer, prompt: str) -> list[StyledLine]:
    """Return the diff that restoring the files to a prompt would apply."""
    try:
        plan = [file_restore for file_restore in checkpointer.plan(prompt) if file_restore.action != "unchanged"]
    except StenoError:
        return [[("  No checkpoint of files for this prompt", "dim")]]
    lines: list[StyledLine] = []
    for each in plan:
        note = each.obstacle or ("changed outside this session" if each.changed_externally else "")
        lines.append(
            ["  ", (one_line(os.path.relpath(each.path, checkpointer.project)), "bold"), (f"  {note}", "yellow")]
        )
        lines += _file_diff(checkpointer, prompt, each.path, chat.screen.width - 4, reverse=True)
    if len(lines) > _MAX_ROWS:
        lines = [*lines[:_MAX_ROWS], [(f"    … {len(lines) - _MAX_ROWS} more lines", "dim")]]
    return lines or [[("  No file changes since", "dim")]]


def _file_diff(
    checkpointer: FileCheckpointer, prompt: str, path: str, columns: int, *, reverse: bool
) -> list[StyledLine]:
    try:
        saved = checkpointer.content(prompt, path)
    except StenoError:
        return []
    before, current = _decode_text(saved), _decode_text(_read_file(path))
    if before is None or current is None:
        return [[("    Binary file", "dim")]]
    patch = structured_patch(current, before) if reverse else structured_patch(before, current)
    max_rows = _MAX_ROWS if reverse else None
    return list(diff_lines(cast("list[object]", patch), columns, max_lines=max_rows, wrapped=not reverse))


def _read_file(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read(_MAX_FILE_BYTES)
    except OSError:
        return None


def _decode_text(data: bytes | None) -> str | None:
    if data is None:
        return ""
    return None if b"\0" in data else data.decode("utf-8", "replace")


async def _restore(chat: "Chat", checkpointer: FileCheckpointer, prompt: str) -> None:
    plan = checkpointer.plan(prompt)
    force = False
    foreign = [
        file_restore.path for file_restore in plan if file_restore.changed_externally and not file_restore.obstacle
    ]
    if foreign:
        body: list[StyledLine] = [["  ", one_line(path)] for path in foreign[:_MAX_ROWS]]
        choices = (Choice("y", "Yes, restore them too", "yes"), Choice("n", "No", "no"))
        reply = await chat.prompt.ask(Dialog("Changed outside this session. Restore anyway?", body, choices))
        if reply is None or reply.value != "yes":
            return
        force = True
    result = await asyncio.to_thread(lambda: checkpointer.restore(prompt, force=force))
    for each in result.skipped:
        chat.renderer.print_note(f"Not restored: {each.path} ({each.obstacle})")
    chat.command_state["undo"] = result.undo_prompt or chat.command_state.get("undo", "")
    undo_hint = " · /undo to revert" if result.undo_prompt else ""
    chat.renderer.print_note(f"Restored {humanize.count(len(result.restored), 'file')}{undo_hint}", "dim")


async def _rewind_conversation(chat: "Chat", prompt: str, text: str) -> None:
    from steno.agent.writable_session import rewind_session

    session = chat.session
    if session is None:
        return
    path, cwd = session.agent.conversation.recorder.path, chat.agent_setup.options.cwd
    await chat.switch_session(lambda: rewind_session(path, cwd, prompt), show_history=False)
    chat.prompt.set_text(text)
    chat.renderer.print_note("Rewound. Later turns are kept as an abandoned branch.", "dim")


async def _undo(chat: "Chat", _arguments: str) -> None:
    """Undo the file changes of the last prompt; a second call redoes them."""
    checkpointer = _checkpointer(chat)
    last_undo = str(chat.command_state.pop("undo", "") or "")
    if checkpointer is None or not (last_undo or checkpointer.prompts):
        chat.renderer.print_note("Nothing to undo", "dim")
        return
    prompt = last_undo or checkpointer.prompts[-1]
    body = _plan_lines(chat, checkpointer, prompt)
    choices = (Choice("y", "Yes", "yes"), Choice("n", "No", "no"))
    reply = await chat.prompt.ask(Dialog("Restore these files?", body, choices))
    if reply is not None and reply.value == "yes":
        await _restore(chat, checkpointer, prompt)


async def _diff(chat: "Chat", _arguments: str) -> None:
    checkpointer = _checkpointer(chat)
    lines = _session_diff(checkpointer, chat.screen.width - 2) if checkpointer is not None else []
    chat.renderer.print_block(lines or [[("  No changes", "dim")]], "diff")


def _session_diff(checkpointer: FileCheckpointer, columns: int) -> list[StyledLine]:
    lines: list[StyledLine] = []
    if not checkpointer.prompts:
        return lines
    first = checkpointer.prompts[0]
    for file_restore in checkpointer.plan(first):
        if file_restore.action != "unchanged":
            lines.append(["  ", (one_line(os.path.relpath(file_restore.path, checkpointer.project)), "bold")])
            lines += _file_diff(checkpointer, first, file_restore.path, columns, reverse=False)
    return lines


COMMANDS: Final = (
    ConsoleCommand(
        name="rewind",
        help="Restore the conversation or files to an earlier prompt",
        run=_rewind,
        aliases=("checkpoint",),
    ),
    ConsoleCommand(name="diff", help="Show file changes of this session", run=_diff, runs_anytime=True),
    ConsoleCommand(name="undo", help="Undo file changes of the last prompt", run=_undo),
)
