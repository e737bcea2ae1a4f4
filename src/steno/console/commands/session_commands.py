"""Commands about sessions: resume, fork, rename, tag, export, copy, transcript."""

import asyncio
import os
from base64 import b64encode
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

from steno.agent.context.token_usage import message_text
from steno.console.commands import ConsoleCommand
from steno.console.dialog import Choice, Dialog
from steno.console.external_programs import run_program, steno_command
from steno.errors import BadRequest
from steno.format.paths import SHORT_ID_LENGTH
from steno.report import humanize
from steno.sanitize.terminal import StyledLine, one_line
from steno.session.session import Session
from steno.session.transcript import Node
from steno.session.turns.branches import Branch
from steno.session.turns.prompts import TURN_ORIGINS, origin_of, read_prompt
from steno.session.turns.turn_builder import Turn
from steno.store import environment

if TYPE_CHECKING:
    from steno.console.chat import Chat
    from steno.store.discovery import DiscoveredFile
    from steno.store.summary import SessionSummary


_MAX_DEPTH: Final = 3
_SHOWN_ORIGINS: Final = frozenset(("human", "command", "shell"))


def session_tree_lines(session: Session, columns: int, max_prompts: int = 4) -> list[StyledLine]:
    """Return the last prompts of a session, with the abandoned branches that fork off after each."""
    turns = [turn for turn in session.turns() if turn.prompt and turn.prompt.origin in _SHOWN_ORIGINS]
    if not turns:
        return [[("  Empty session", "yellow")]]
    branches = [branch for branch in session.branches if _first_prompt(branch)]
    last_turns = turns[-max_prompts:]
    tree = _BranchTree(branches, columns)
    lines: list[StyledLine] = []
    for turn in last_turns:
        prompt_text = turn.prompt.text if turn.prompt else ""
        # Branches without a fork point come first.
        if turn is turns[0]:
            lines += tree.branch_lines([None])
        lines.append([("  │ ", "blue"), one_line(prompt_text, max(columns - 4, 10))])
        lines += tree.branch_lines(_turn_node_ids(turn))
    header = f"  {humanize.count(len(turns), 'prompt')}"
    if branches:
        earlier_count = len(branches) - tree.shown_count
        earlier_note = f" ({earlier_count} above)" if earlier_count else ""
        header += f", {humanize.count(len(branches), 'abandoned branch', 'abandoned branches')}{earlier_note}"
    header_end = "; last:" if len(turns) > len(last_turns) else ":"
    return [[(header + header_end, "dim")], *lines]


class _BranchTree:
    """The branches of a session, grouped by the record they fork from."""

    def __init__(self, branches: list[Branch], columns: int) -> None:
        self._columns = columns
        self._branches_by_fork: dict[str | None, list[Branch]] = {}
        self.shown_count = 0
        for branch in branches:
            fork_id = branch.fork.uuid if branch.fork is not None else None
            self._branches_by_fork.setdefault(fork_id, []).append(branch)

    def branch_lines(self, node_ids: list[str | None], depth: int = 0) -> Iterator[StyledLine]:
        """Yield the branches that fork off at the given records, with their own branches indented."""
        for node_id in node_ids:
            for branch in self._branches_by_fork.pop(node_id, []):
                self.shown_count += 1
                yield self._line(branch, depth)
                if depth < _MAX_DEPTH:
                    yield from self.branch_lines([node.uuid for node in branch.nodes], depth + 1)

    def _line(self, branch: Branch, depth: int) -> StyledLine:
        size = f"  {humanize.count(branch.turns, 'turn')}, abandoned"
        prefix = "  │ " + "  " * depth
        text_width = max(self._columns - len(prefix) - len(size) - 4, 10)
        return [(prefix, "blue"), ("└ ", "yellow"), one_line(_first_prompt(branch), text_width), (size, "dim")]


def _turn_node_ids(turn: Turn) -> list[str | None]:
    return [node.uuid for node in turn.nodes]


def _first_prompt(branch: Branch) -> str:
    """Return the first prompt of a branch, or an empty string."""
    for node in branch.nodes:
        prompt_text = _typed_prompt(branch, node)
        if prompt_text:
            return prompt_text
    return ""


def _typed_prompt(branch: Branch, node: Node) -> str:
    if node.type != "user" or node.meta or node.results:
        return ""
    record = branch.transcript.record(node)
    origin = origin_of(record)
    return read_prompt(record, node, origin).text.strip() if origin in TURN_ORIGINS else ""


_MAX_SESSIONS: Final = 500
_PREVIEW_PROMPTS: Final = 4


async def _resume(chat: "Chat", arguments: str) -> None:
    """Resume a session named by an argument or picked from a searchable list."""
    from steno.agent.writable_session import resume_session

    path = await _pick_session(chat, arguments.strip())
    session = chat.session
    if not path or session is None:
        return
    cwd = chat.agent_setup.options.cwd
    recorder = session.agent.conversation.recorder
    if path != recorder.path:
        resumed = await asyncio.to_thread(resume_session, path, cwd)
        notes = await asyncio.to_thread(_unsent_summary_notes, path)
        await chat.enter_session(resumed, "resume")
        for note in notes:
            chat.renderer.print_note(note)
    elif recorder.save_error is None:
        chat.renderer.print_note("This session is already open", "dim")
    else:
        # Load records that another program has appended.
        await chat.switch_session(partial(resume_session, path, cwd))


def _unsent_summary_notes(path: str) -> list[str]:
    """Return a note if the summary of a session is not sent."""
    from steno.check.rules.compaction import UNSENT_SUMMARY, has_unsent_summary
    from steno.session.transcript import load
    from steno.store.file_source import FileSource

    return [UNSENT_SUMMARY] if has_unsent_summary(load(FileSource(path))) else []


async def _pick_session(chat: "Chat", name: str) -> str:
    from steno.store.session_lookup import find

    options = chat.agent_setup.options
    if name:
        return (await asyncio.to_thread(find, name, options.config, options.cwd, archived=False)).path
    current_path = chat.session_path()
    summaries = await asyncio.to_thread(_project_sessions, options.config, options.cwd)
    summaries = [pair for pair in summaries if pair[0].path != current_path]
    if not summaries:
        chat.renderer.print_note("No other sessions in this directory", "dim")
        return ""
    current_time = environment.now()
    choices = [
        Choice("", one_line(summary.title) or "(no title)", session_file.path, _time_text(summary, current_time))
        for session_file, summary in summaries
    ]
    cache: dict[str, list[StyledLine]] = {}

    def preview(path: str) -> list[StyledLine]:
        if path not in cache:
            cache[path] = _session_preview(path, chat.screen.width - 3)
        return cache[path]

    dialog = Dialog("Resume a session", (), choices, is_search=True)
    dialog.preview = preview
    reply = await chat.prompt.ask(dialog)
    return reply.value if reply is not None else ""


def _project_sessions(config: str, cwd: str) -> "list[tuple[DiscoveredFile, SessionSummary]]":
    from steno.format.paths import slug_for_path
    from steno.store.session_lookup import sessions_newest_first, summarize_files

    folder = os.path.join(config, "projects", slug_for_path(os.path.realpath(cwd)))
    files = [
        session_file for session_file in sessions_newest_first(config) if os.path.dirname(session_file.path) == folder
    ]
    return [pair for pair in summarize_files(files[:_MAX_SESSIONS]) if not pair[1].hidden]


def _time_text(summary: "SessionSummary", current_time: float) -> str:
    if summary.ended is None:
        return summary.branch
    time_text = humanize.day_and_time(summary.ended, current_time)
    return f"{summary.branch}  {time_text}" if summary.branch else time_text


def _session_preview(path: str, columns: int) -> list[StyledLine]:
    """Return the last prompts and the abandoned branches of a session."""
    from steno.session.session import Session
    from steno.session.transcript import load
    from steno.store.file_source import FileSource

    try:
        with Session(load(FileSource(path))) as session:
            return session_tree_lines(session, columns, _PREVIEW_PROMPTS)
    except OSError:
        return [[("  Cannot read the session", "yellow")]]


async def _fork(chat: "Chat", arguments: str) -> None:
    """Continue in a copy of this session or of another one."""
    from steno.agent.writable_session import fork_session

    session = chat.session
    if session is None:
        return
    options = chat.agent_setup.options
    path = await _pick_session(chat, arguments.strip()) if arguments.strip() else chat.session_path()
    if not path:
        chat.renderer.print_note("Nothing to fork yet", "dim")
        return
    previous_id = os.path.splitext(os.path.basename(path))[0]
    forked = await chat.switch_session(partial(fork_session, options.config, path, options.cwd), show_history=False)
    chat.renderer.print_note(
        f"Forked to {forked.id[:SHORT_ID_LENGTH]}. /resume {previous_id[:SHORT_ID_LENGTH]} returns to the original.",
        "dim",
    )


def _require_argument(arguments: str, argument_name: str, example: str) -> str:
    """Return the argument of a command that requires one."""
    argument = " ".join(arguments.split())
    if not argument:
        raise BadRequest(f"missing {argument_name}", hint=f"Example: {example}")
    return argument


async def _rename(chat: "Chat", arguments: str) -> None:
    title = _require_argument(arguments, "title", "/rename Charts on one axis")
    if chat.session is not None:
        recorder = chat.session.agent.conversation.recorder
        recorder.write(recorder.composer.title(title))
        chat.status.set_title(title)
        chat.renderer.print_note(f"Renamed to {title!r}", "dim")


async def _tag(chat: "Chat", arguments: str) -> None:
    tag = _require_argument(arguments, "tag", "/tag release")
    if chat.session is not None:
        recorder = chat.session.agent.conversation.recorder
        recorder.write({"type": "tag", "tag": tag, "sessionId": recorder.session_id})
        chat.renderer.print_note(f"Tagged {tag!r}", "dim")


async def _export(chat: "Chat", arguments: str) -> None:
    await _export_session(chat, arguments.strip(), redacted=False)


async def _share(chat: "Chat", arguments: str) -> None:
    """Export with secrets masked; nothing is sent anywhere."""
    await _export_session(chat, arguments.strip(), redacted=True)


async def _export_session(chat: "Chat", name: str, *, redacted: bool) -> None:
    session, path = chat.session, chat.session_path()
    if session is None or not path:
        chat.renderer.print_note("Nothing to export yet", "dim")
        return
    suffix = "-redacted" if redacted else ""
    name = name or f"session-{session.agent.conversation.recorder.session_id[:SHORT_ID_LENGTH]}{suffix}.md"
    target = os.path.join(chat.agent_setup.options.cwd, name)
    masked_count = await asyncio.to_thread(_export_markdown, path, target, redacted=redacted)
    masked_note = f". Masked {humanize.count(masked_count, 'value')}. Review the file before you share it."
    chat.renderer.print_note(f"Written to {target}{masked_note if redacted else ''}", "dim")


def _export_markdown(path: str, target: str, *, redacted: bool) -> int:
    """Write a session as Markdown, as `steno export` does; return the number of masked values."""
    from steno.report.export.session_export import ExportJob, export_chunks, write_output_file
    from steno.sanitize.secret_masker import Masker
    from steno.store.discovery import discover_file

    if os.path.lexists(target):
        raise BadRequest(f"'{target}' already exists", hint="Use another file name.")
    masker = Masker() if redacted else None
    job = ExportJob(format="markdown", level="low", masker=masker)
    write_output_file(target, export_chunks(discover_file(path), job), force=False)
    return masker.receipt.total if masker is not None else 0


async def _copy(chat: "Chat", _arguments: str) -> None:
    """Copy the last answer to the clipboard, using the OSC 52 sequence of the terminal."""
    session = chat.session
    answers = [
        message_text(message["content"])
        for message in (session.agent.conversation.messages() if session is not None else ())
        if message["role"] == "assistant" and message_text(message["content"]).strip()
    ]
    if not answers:
        chat.renderer.print_note("No answer to copy yet", "dim")
        return
    chat.screen.send(f"\x1b]52;c;{b64encode(answers[-1].encode()).decode()}\a")
    size = humanize.count(len(answers[-1]), "character")
    chat.renderer.print_note(
        f"Sent the last answer ({size}) to the clipboard; your terminal must support OSC 52", "dim"
    )


async def _transcript(chat: "Chat", _arguments: str) -> None:
    """Show the transcript with all tool calls and results in the pager."""
    path = chat.session_path()
    if not path:
        chat.renderer.print_note("Nothing to show yet", "dim")
        return
    color_options = () if chat.screen.paint.colour else ("--color", "never")
    # Start at the end, where the latest turn is.
    pager_env = {"LESS": f"{os.environ.get('LESS', '-R')} +G"}
    await run_program(chat, steno_command("show", path, "--thinking", "--all", *color_options), pager_env)


COMMANDS: Final = (
    ConsoleCommand(name="resume", help="Resume a session", arguments="[SESSION]", run=_resume, aliases=("continue",)),
    ConsoleCommand(
        name="fork", help="Continue in a copy of this session", arguments="[SESSION]", run=_fork, aliases=("branch",)
    ),
    ConsoleCommand(name="rename", help="Rename this session", arguments="TITLE", run=_rename, runs_anytime=True),
    ConsoleCommand(name="tag", help="Tag this session", arguments="TAG", run=_tag, runs_anytime=True),
    ConsoleCommand(
        name="export", help="Export this session as Markdown", arguments="[FILE]", run=_export, runs_anytime=True
    ),
    ConsoleCommand(name="share", help="Export with secrets masked", arguments="[FILE]", run=_share, runs_anytime=True),
    ConsoleCommand(name="copy", help="Copy the last answer to the clipboard", run=_copy, runs_anytime=True),
    ConsoleCommand(name="transcript", help="Show the full transcript (ctrl-o)", run=_transcript, runs_anytime=True),
)
