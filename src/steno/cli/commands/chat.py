"""`steno chat`: runs an agent in the current directory, in a console or headless (`-p`).

Also validates the options, reads piped input and selects the session: new, resumed, forked or
rewound. A damaged configuration file is skipped with a warning; a file that an option names must be
readable.
"""

import asyncio
import math
import os
import sys
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from steno.cli.options import (
    ALLOWED_TOOLS,
    COLOR,
    DISALLOWED_TOOLS,
    JSON,
    MAX_TURNS_OPTION,
    MODEL_OPTION,
    PERMISSION_MODES,
    SETTINGS_OPTION,
    add_options,
)
from steno.cli.output.screen import Screen, escape_invisible, print_error, write_bytes, write_json
from steno.errors import BadRequest, InDialect, NotFound, Unreadable
from steno.extras import require
from steno.format.catalogue import MCP_PREFIX
from steno.format.encode import encode
from steno.format.paths import JSONL_SUFFIX
from steno.report.humanize import MICRO_DOLLARS_PER_DOLLAR
from steno.sanitize.terminal import ColourMode, clean, one_line

if TYPE_CHECKING:
    from steno.agent.config.agent_options import AgentOptions
    from steno.agent.config.project_files import ConfigNote
    from steno.agent.headless import StructuredOutputTool
    from steno.agent.headless_output import HeadlessPrinter, OutputFormat
    from steno.agent.writable_session import WritableSession
    from steno.llm.messages_api import Block


_CHUNK_SIZE: Final = 1 << 16
_NEWLINE: Final = b"\n"


async def read_lines(file: int) -> AsyncIterator[str]:
    """Yield the complete lines of an open file; the last one may lack a line end.

    Pipes are read without a thread: a reading thread cannot be stopped and would outlast an interrupt.
    """
    buffer = bytearray()
    while chunk := await _read_chunk(file):
        # Search only the new bytes: a line with an image can be very long.
        start = len(buffer)
        buffer += chunk
        while (end := buffer.find(_NEWLINE, start)) >= 0:
            yield buffer[:end].decode("utf-8", "replace")
            del buffer[: end + 1]
            start = 0
    if buffer:
        yield buffer.decode("utf-8", "replace")


async def _read_chunk(file: int) -> bytes:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    try:
        loop.add_reader(file, ready.set)
    except (NotImplementedError, OSError):
        # Regular files, and pipes on platforms that cannot watch them, are read in a thread.
        return await asyncio.to_thread(os.read, file, _CHUNK_SIZE)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(file)
    return os.read(file, _CHUNK_SIZE)


def check_option_files(options: "AgentOptions") -> None:
    """Check the files, directories and tools that options name.

    Raises:
        BadRequest: a file or directory is missing, a file is not JSON, or a tool is unknown.
    """
    _check_json_option("--settings", options.settings)
    for server_config in options.mcp_config:
        _check_json_option("--mcp-config", server_config, required_key="mcpServers")
    if options.agents.strip():
        _check_json_text("--agents", options.agents)
    for folder in options.folders:
        if not os.path.isdir(os.path.join(options.cwd, os.path.expanduser(folder))):
            raise BadRequest(f"not a directory: {folder}", hint="Check the value of --add-dir.")
    _check_tool_names(options.tools or ())


def _check_json_option(option: str, value: str, *, required_key: str = "") -> None:
    """Check that a value is empty, a JSON object, or the path of a JSON file.

    If `required_key` is given, the value of that key must be an object.
    """
    if not value.strip():
        return
    if value.lstrip().startswith("{"):
        _check_json_text(option, value, required_key=required_key)
        return
    from pathlib import Path

    from steno.agent.config.project_files import read_text

    notes: list[ConfigNote] = []
    text = read_text(Path(value), notes)
    if text is None:
        reason = notes[0].message if notes else "does not exist"
        raise BadRequest(f"{value} {reason}", hint=f"Check the value of {option}.")
    _check_json_text(option, text, value, required_key=required_key)


def _check_json_text(option: str, text: str, path: str = "", *, required_key: str = "") -> None:
    from steno.agent.config.project_files import parse_json
    from steno.format.lenient_json import as_object

    notes: list[ConfigNote] = []
    data = parse_json(text, path or option, notes)
    if notes:
        raise BadRequest(str(notes[0]), hint=f"Check the value of {option}.")
    if required_key and as_object(data.get(required_key)) is None:
        raise BadRequest(f"{path or option}: `{required_key}` is not an object", hint=f"Check the value of {option}.")


def _check_tool_names(names: tuple[str, ...]) -> None:
    if not names:
        return
    from steno.permissions.permission_rules import rule_tool_name
    from steno.tools.registry import builtin_tool_names

    known_names = builtin_tool_names()
    for name in names:
        # The tools of MCP servers are not known yet.
        if not name.startswith(MCP_PREFIX) and name not in known_names and rule_tool_name(name) not in known_names:
            listed_names = ", ".join(sorted(known_names))
            raise BadRequest(f"unknown tool: {name}", hint=f"Available tools: {listed_names}.")


def checked_cwd() -> str:
    """Return the working directory of the agent.

    Raises:
        Unreadable: it no longer exists.
        BadRequest: its path is not valid UTF-8.
    """
    try:
        cwd = os.getcwd()
    except FileNotFoundError:
        raise Unreadable("the current directory no longer exists", hint="Change to another directory.") from None
    try:
        cwd.encode("utf-8")
    except UnicodeEncodeError:
        # The path is part of every record and of the system prompt.
        raise BadRequest("the path of the current directory is not valid UTF-8", hint="Rename the directory.") from None
    return cwd


def finite_seconds(seconds: float | None) -> float | None:
    """Check a time limit in seconds.

    Raises:
        BadRequest: it is not finite.
    """
    if seconds is not None and not math.isfinite(seconds):
        raise BadRequest("--max-time must be a finite number", hint="Example: `--max-time 90`.")
    return seconds


def micro_dollars(dollars: float | None) -> int | None:
    """Convert a budget in dollars to micro-dollars.

    Raises:
        BadRequest: it is not finite.
    """
    if dollars is None:
        return None
    if not math.isfinite(dollars):
        raise BadRequest("--max-budget-usd must be a finite number", hint="Example: `--max-budget-usd 1.50`.")
    return round(dollars * MICRO_DOLLARS_PER_DOLLAR)


def split_rules(arguments: tuple[str, ...]) -> tuple[str, ...]:
    """Split arguments into permission rules at commas and spaces outside of parentheses."""
    rules: list[str] = []
    for text in arguments:
        start = depth = 0
        for index, character in enumerate(f"{text},"):
            depth += (character == "(") - (character == ")")
            if character in ", " and depth <= 0:
                rules.append(text[start:index].strip())
                start = index + 1
    return tuple(rule for rule in rules if rule)


def select_session(chat_options: "ChatOptions", options: "AgentOptions") -> "WritableSession":
    """Return the session to write to: new, resumed, forked or rewound."""
    from steno.agent.writable_session import fork_session, new_session, rewind_session
    from steno.store.session_lookup import find

    if chat_options.session_id:
        _check_new_id(chat_options.session_id, options.config)
    if not chat_options.resume and not chat_options.go_on:
        for name, value in (("--fork-session", chat_options.fork), ("--rewind", chat_options.rewind)):
            if value:
                raise BadRequest(f"{name} requires a session", hint="Add --continue or --resume.")
        return new_session(options.config, options.cwd, session_id=chat_options.session_id)
    if chat_options.fork and chat_options.rewind:
        raise BadRequest("--fork-session cannot be combined with --rewind", hint="Fork first, then rewind the fork.")
    if chat_options.session_id and not chat_options.fork:
        raise BadRequest("--session-id cannot be combined with --continue or --resume", hint="Add --fork-session.")
    path = (
        find(chat_options.resume, cwd=options.cwd, archived=False).path
        if chat_options.resume
        else _newest_session_here(options)
    )
    if chat_options.fork:
        session = fork_session(options.config, path, options.cwd, session_id=chat_options.session_id)
    elif chat_options.rewind:
        session = rewind_session(path, options.cwd, chat_options.rewind)
    else:
        session = _resume_session(path, options)
    _warn_if_summary_unsent(path)
    return session


def _resume_session(path: str, options: "AgentOptions") -> "WritableSession":
    """Resume a session; one that Claude Code cannot read is resumed as a converted copy."""
    from steno.agent.writable_session import fork_session, resume_session

    try:
        session = resume_session(path, options.cwd)
    except InDialect as error:
        session = fork_session(options.config, path, options.cwd)
        print_error(str(error), f"The file is unchanged. Continuing in a converted copy: {session.id}.")
    return session


def _warn_if_summary_unsent(path: str) -> None:
    from steno.cli.output.record_views import warn_of_unsent_summary
    from steno.session.transcript import load
    from steno.store.file_source import FileSource

    name = os.path.splitext(os.path.basename(path))[0]
    warn_of_unsent_summary(load(FileSource(path)), name)


def _check_new_id(session_id: str, config: str) -> None:
    """Check that a new session ID is a UUID that no session uses.

    Raises:
        BadRequest: it is not a lower-case UUID, or a session already has it.
    """
    import uuid

    try:
        is_uuid = str(uuid.UUID(session_id)) == session_id
    except ValueError:
        is_uuid = False
    if not is_uuid:
        raise BadRequest(f"invalid session ID {session_id!r}", hint="Use a UUID in lower case, with dashes.")
    projects = os.path.join(config, "projects")
    folders = os.listdir(projects) if os.path.isdir(projects) else []
    if any(os.path.exists(os.path.join(projects, folder, f"{session_id}{JSONL_SUFFIX}")) for folder in folders):
        raise BadRequest(f"session {session_id} already exists", hint="Use --resume to continue it.")


def _newest_session_here(options: "AgentOptions") -> str:
    """Return the newest session of the current directory that has messages."""
    from steno.format.paths import slug_for_path

    folder = os.path.join(options.config, "projects", slug_for_path(os.path.realpath(options.cwd)))
    try:
        names = [name for name in os.listdir(folder) if name.endswith(JSONL_SUFFIX)]
    except OSError:
        names = []
    paths = [os.path.join(folder, name) for name in names if not name.startswith("agent-")]
    paths_newest_first = sorted(paths, key=os.path.getmtime, reverse=True)
    newest_path = next(filter(_has_messages, paths_newest_first), None)
    if newest_path is None:
        raise NotFound("no session to continue in this directory", hint="Omit --continue to start a new session.")
    return newest_path


def _has_messages(path: str) -> bool:
    """Return whether a session has messages; a prompt blocked by a hook leaves only a note."""
    import re

    message_type = re.compile(rb'"type"\s*:\s*"(user|assistant)"')
    with open(path, "rb") as file:
        return any(message_type.search(line) for line in file)


_THINKING_MODES: Final = ("enabled", "adaptive", "disabled")
_EFFORT_LEVELS: Final = ("low", "medium", "high", "xhigh", "max")

_HELP: Final = """\
Run an agent in the current directory.

Uses the API at ANTHROPIC_BASE_URL with ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN, and writes
sessions that Claude Code can resume. Options and formats are those of Claude Code. In a terminal,
opens a console that asks for approval when no permission rule allows a tool call. With -p, such
tool calls are denied.

\b
Examples:
  steno chat                          Open the console
  steno chat -c                       Continue the newest session of this directory
  steno chat --demo                   Try it without an API key or network
  steno chat -p "What is in here?"    Print the answer and exit
"""


class ChatOptions(msgspec.Struct):
    """The options of the command."""

    words: tuple[str, ...] = ()
    print_only: bool = False
    output_format: "OutputFormat" = "text"
    input_format: str = "text"
    partial: bool = False
    json_schema: str = ""
    resume: str = ""
    go_on: bool = False
    fork: bool = False
    session_id: str = ""
    rewind: str = ""
    rewind_files: str = ""
    model: str = ""
    mode: str = ""
    skip_permissions: bool = False
    allowed: tuple[str, ...] = ()
    disallowed: tuple[str, ...] = ()
    tools: str | None = None
    folders: tuple[str, ...] = ()
    system: str = ""
    more_system: str = ""
    settings: str = ""
    mcp_config: tuple[str, ...] = ()
    strict_mcp: bool = False
    agents: str = ""
    sandbox: bool | None = None
    thinking: str = ""
    effort: str = ""
    max_turns: int | None = None
    budget: float | None = None
    seconds: float | None = None
    trust: bool = False
    demo: bool = False
    reader: bool = False
    as_json: bool = False
    color: ColourMode = "auto"


@click.command("chat", help=_HELP, short_help="Run an agent in the current directory.")
@click.argument("words", metavar="[PROMPT]", nargs=-1)
@click.option("-p", "--print", "print_only", is_flag=True, help="Print the answer and exit")
@click.option(
    "--output-format",
    type=click.Choice(["text", "json", "stream-json"]),
    default="text",
    help="With -p: print the answer, one JSON object, or one JSON line per event",
)
@click.option(
    "--input-format",
    type=click.Choice(["text", "stream-json"]),
    default="text",
    help="With -p: read text, or one JSON line per message",
)
@click.option(
    "--include-partial-messages", "partial", is_flag=True, help="Include streaming events in stream-json output"
)
@click.option("--verbose", is_flag=True, expose_value=False, help="Accepted for compatibility; no effect")
@click.option("--json-schema", metavar="SCHEMA", default="", help="JSON Schema of the answer")
@click.option("-c", "--continue", "go_on", is_flag=True, help="Continue the newest session of this directory")
@click.option("-r", "--resume", metavar="SESSION", default="", help="Resume a session")
@click.option("--fork-session", "fork", is_flag=True, help="With --continue or --resume: fork to a new session")
@click.option("--rewind", metavar="ID", default="", help="With --continue or --resume: rewind to before a prompt")
@click.option("--rewind-files", metavar="ID", default="", help="Restore files to their state at a prompt")
@click.option("--session-id", metavar="UUID", default="", help="ID of the new session")
@MODEL_OPTION
@click.option("--permission-mode", "mode", type=click.Choice(PERMISSION_MODES), default=None, help="Permission mode")
@click.option("--dangerously-skip-permissions", "skip_permissions", is_flag=True, help="Bypass permission checks")
@ALLOWED_TOOLS
@DISALLOWED_TOOLS
@click.option("--tools", metavar="NAMES", default=None, help="Offer only these tools")
@click.option("--add-dir", "folders", multiple=True, metavar="DIR", help="Additional working directory; repeatable")
@click.option("--system-prompt", "system", metavar="TEXT", default="", help="Replace the system prompt")
@click.option("--append-system-prompt", "more_system", metavar="TEXT", default="", help="Append to the system prompt")
@SETTINGS_OPTION
@click.option("--mcp-config", multiple=True, metavar="FILE|JSON", help="Add MCP servers for this run; repeatable")
@click.option("--strict-mcp-config", "strict_mcp", is_flag=True, help="Use only the servers of --mcp-config")
@click.option("--agents", metavar="JSON", default="", help="Sub-agent types for this run")
@click.option(
    "--sandbox/--no-sandbox", "sandbox", default=None, help="Turn the sandbox on or off, overriding the settings"
)
@click.option("--effort", type=click.Choice(_EFFORT_LEVELS), default=None, help="Effort level of the model")
@click.option(
    "--thinking",
    type=click.Choice(_THINKING_MODES),
    default=None,
    help="Thinking mode; `enabled` uses the budget in MAX_THINKING_TOKENS",
)
@MAX_TURNS_OPTION
@click.option(
    "--max-budget-usd",
    "budget",
    type=click.FloatRange(0, min_open=True),
    default=None,
    help="Maximum cost in US dollars",
)
@click.option(
    "--max-time",
    "seconds",
    type=click.FloatRange(0, min_open=True),
    default=None,
    help="Maximum duration in seconds, including sub-agents",
)
@click.option("--demo", is_flag=True, help="Run a small task with real tools and a scripted model")
@click.option(
    "--screen-reader", "reader", is_flag=True, help="In the console: print whole lines, without cursor movement"
)
@click.option("--trust", is_flag=True, help="Trust this directory: apply its project settings")
@add_options(JSON, COLOR)
def command(**values: Any) -> None:
    """Run an agent in the current directory."""
    require("agent", "`steno chat`")
    for name in ("mode", "thinking", "effort"):
        values[name] = values[name] or ""
    if values["as_json"]:
        values["output_format"] = "json"
    sys.exit(_run_chat(ChatOptions(**values)))


def _run_chat(chat_options: ChatOptions) -> int:
    if not chat_options.print_only and _is_terminal():
        from steno.cli.commands.chat_console import open_console

        return open_console(chat_options)
    if chat_options.demo:
        from steno.cli.commands.chat_console import run_plain_demo

        return run_plain_demo(chat_options.color)
    if not chat_options.print_only:
        raise BadRequest("the console needs a terminal", hint="Run `steno chat -p PROMPT` to print the answer.")
    if chat_options.rewind_files:
        _restore_files(chat_options)
        if not chat_options.words:
            return 0
    return _run_headless(chat_options)


def _is_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()


def _run_headless(chat_options: ChatOptions) -> int:
    """Run the agent without a console; return the exit code."""
    import asyncio

    from steno.agent.child_process import variables_with_keys
    from steno.agent.config.models import beta_headers
    from steno.agent.headless import run_headless
    from steno.llm.client import ApiClient
    from steno.llm.endpoint import Endpoint
    from steno.permissions.program_environment import scrub_environment
    from steno.report.pricing import PriceTable, response_cost_function

    piped = _read_piped_input() if chat_options.input_format == "text" else ""
    prompt = _compose_prompt(chat_options.words, piped) if chat_options.input_format == "text" else ""
    endpoint = Endpoint.from_environment(os.environ)
    scrub_environment(variables_with_keys(os.environ))
    engine_options = agent_options(chat_options)
    check_option_files(engine_options)
    engine_options.piped = piped
    engine_options.key_source = endpoint.key_source
    work = select_session(chat_options, engine_options)
    printer = _make_printer(chat_options, work.id)
    answer_schema = _answer_schema(chat_options.json_schema)
    betas = beta_headers(chat_options.thinking, chat_options.effort, os.environ, chat_options.model)

    async def run_agent() -> int:
        async with ApiClient(endpoint, betas=betas, api_events=chat_options.partial) as api:
            prompts = _read_prompts(prompt, chat_options.input_format)
            return await run_headless(
                engine_options,
                work,
                api,
                prompts,
                printer,
                price=response_cost_function(PriceTable()),
                output_tool=answer_schema,
            )

    return asyncio.run(run_agent())


def _make_printer(chat_options: ChatOptions, session_id: str) -> "HeadlessPrinter":
    from steno.agent.headless_output import HeadlessPrinter

    return HeadlessPrinter(
        chat_options.output_format,
        session_id,
        _print_answer,
        partial=chat_options.partial,
        warn=_print_warning,
        expects_more=chat_options.input_format != "text",
    )


def _restore_files(chat_options: ChatOptions) -> None:
    """Restore files to their state at a prompt, and print them."""
    from steno.agent.agent_session import open_checkpointer

    engine_options = agent_options(chat_options)
    work = select_session(chat_options, engine_options)
    checkpoints = open_checkpointer(work, engine_options)
    outcome = checkpoints.restore(chat_options.rewind_files)
    work.conversation.recorder.close()
    if chat_options.as_json:
        write_json({"restored": outcome.restored, "skipped": outcome.skipped})
        return
    screen = Screen(chat_options.color)
    for file in outcome.restored:
        screen.print_lines([[f"{file.action:9}", " ", one_line(file.path)]])
    for file in outcome.skipped:
        screen.print_lines([[("skipped  ", "yellow"), " ", one_line(file.path)]])


def agent_options(chat_options: ChatOptions) -> "AgentOptions":
    """Return the agent options for the command-line options."""
    from steno.agent.config.agent_options import AgentOptions
    from steno.agent.config.models import check_alias
    from steno.agent.context.token_usage import TurnLimits
    from steno.permissions.project_trust import is_trusted, trust_folder
    from steno.store.environment import config_dir

    check_alias(chat_options.model)
    cwd = checked_cwd()
    if chat_options.trust:
        trust_folder(cwd)
    tool_names = chat_options.tools
    return AgentOptions(
        cwd=cwd,
        config=config_dir(),
        env=dict(os.environ),
        trusted=is_trusted(cwd),
        model=chat_options.model,
        mode="bypassPermissions" if chat_options.skip_permissions else chat_options.mode,
        allowed=split_rules(chat_options.allowed),
        disallowed=split_rules(chat_options.disallowed),
        tools=tuple(tool_names.replace(",", " ").split()) if tool_names is not None else None,
        folders=chat_options.folders,
        limits=TurnLimits(
            requests=chat_options.max_turns,
            cost=micro_dollars(chat_options.budget),
            seconds=finite_seconds(chat_options.seconds),
        ),
        system=chat_options.system,
        more_system=chat_options.more_system,
        settings=chat_options.settings,
        mcp_config=chat_options.mcp_config,
        strict_mcp=chat_options.strict_mcp,
        agents=chat_options.agents,
        sandbox=chat_options.sandbox,
        thinking=chat_options.thinking,
        effort=chat_options.effort,
    )


def _read_piped_input() -> str:
    return "" if sys.stdin is None or sys.stdin.isatty() else sys.stdin.read().strip("\n")


def _compose_prompt(arguments: tuple[str, ...], piped: str) -> str:
    """Join the arguments and the piped input into a prompt."""
    prompt = "\n\n".join(part for part in (" ".join(arguments), piped) if part)
    if not prompt.strip():
        raise BadRequest("no prompt given", hint='Example: `steno chat -p "What is in here?"`.')
    return prompt


async def _read_prompts(prompt: str, input_format: str) -> "AsyncIterator[str | list[Block]]":
    if input_format == "text":
        yield prompt
        return
    from steno.agent.headless import parse_prompt_line

    async for line in read_lines(sys.stdin.fileno()):
        prompt_blocks = parse_prompt_line(line)
        if prompt_blocks is not None:
            yield prompt_blocks


def _answer_schema(schema: str) -> "StructuredOutputTool | None":
    if not schema:
        return None
    from steno.agent.headless import StructuredOutputTool

    try:
        schema_object = msgspec.json.decode(schema, type=dict[str, Any])
    except msgspec.MsgspecError:
        raise BadRequest("the schema is not a JSON object", hint="Check the value of --json-schema.") from None
    return StructuredOutputTool(schema_object)


def _print_warning(message: str) -> None:
    """Print a warning to standard error, apart from the answer."""
    click.echo(f"steno: {one_line(message)}", err=True)


def _print_answer(answer: str | dict[str, Any]) -> None:
    """Print an answer or a JSON line; model text is cleaned for terminals."""
    if isinstance(answer, str):
        safe_text = clean(answer, newlines=True) if sys.stdout.isatty() else answer
        data = safe_text.encode("utf-8", "replace")
    else:
        data = escape_invisible(encode(answer))
    write_bytes(data + b"\n")
    sys.stdout.flush()
