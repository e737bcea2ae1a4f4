"""`steno chat`: runs an agent in the current folder, in a console or headless (`-p`).

Also validates the options, reads piped input and selects the session: new, resumed, forked or
rewound. A broken file in a folder is skipped with a warning; a file that an option names must be
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
    """Yield the lines of an open file, each when it is whole; the last one may have no end.

    No thread waits for them: one that reads cannot be stopped, and would outlast an interrupt.
    """
    buffer = bytearray()
    while chunk := await _read_chunk(file):
        # Only what is new is looked at: a line may be as long as an image is large.
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
        # A file of the disk has nothing to wait for; where pipes cannot be watched, a thread reads.
        return await asyncio.to_thread(os.read, file, _CHUNK_SIZE)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(file)
    return os.read(file, _CHUNK_SIZE)


def check_option_files(options: "AgentOptions") -> None:
    """Let nothing start with less than was asked for.

    Raises:
        BadRequest: a file or a folder is not there, is not JSON, or a tool is not known.
    """
    _check_json_option("--settings", options.settings)
    for server_config in options.mcp_config:
        _check_json_option("--mcp-config", server_config, required_key="mcpServers")
    if options.agents.strip():
        _check_json_text("--agents", options.agents)
    for folder in options.folders:
        if not os.path.isdir(os.path.join(options.cwd, os.path.expanduser(folder))):
            raise BadRequest(f"{folder} is no folder", hint="see --add-dir")
    _check_tool_names(options.tools or ())


def _check_json_option(option: str, value: str, *, required_key: str = "") -> None:
    """Refuse what is neither a JSON object nor a file that holds one; nothing is fine.

    Where a `required_key` must be in it, that is an object too.
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
        reason = notes[0].message if notes else "is not there"
        raise BadRequest(f"{value} {reason}", hint=f"see {option}")
    _check_json_text(option, text, value, required_key=required_key)


def _check_json_text(option: str, text: str, path: str = "", *, required_key: str = "") -> None:
    from steno.agent.config.project_files import parse_json
    from steno.format.lenient_json import as_object

    notes: list[ConfigNote] = []
    data = parse_json(text, path or option, notes)
    if notes:
        raise BadRequest(str(notes[0]), hint=f"see {option}")
    if required_key and as_object(data.get(required_key)) is None:
        raise BadRequest(f"{path or option}: `{required_key}` is no object", hint=f"see {option}")


def _check_tool_names(names: tuple[str, ...]) -> None:
    if not names:
        return
    from steno.permissions.permission_rules import rule_tool_name
    from steno.tools.registry import builtin_tool_names

    known_names = builtin_tool_names()
    for name in names:
        # What servers will offer is not known yet.
        if not name.startswith(MCP_PREFIX) and name not in known_names and rule_tool_name(name) not in known_names:
            listed_names = ", ".join(sorted(known_names))
            raise BadRequest(f"there is no tool {name}", hint=f"there are {listed_names}")


def checked_cwd() -> str:
    """Return the folder that an agent works in.

    Raises:
        Unreadable: it is not there any more.
        BadRequest: its name cannot be written down.
    """
    try:
        cwd = os.getcwd()
    except FileNotFoundError:
        raise Unreadable("this folder is not there any more", hint="go to another one") from None
    try:
        cwd.encode("utf-8")
    except UnicodeEncodeError:
        # It stands on every record, and in what the model is told.
        raise BadRequest("the name of this folder is not UTF-8", hint="give it another") from None
    return cwd


def finite_seconds(seconds: float | None) -> float | None:
    """Return a number of seconds.

    Raises:
        BadRequest: it is no number.
    """
    if seconds is not None and not math.isfinite(seconds):
        raise BadRequest("the time is no number of seconds", hint="such as --max-time 90")
    return seconds


def micro_dollars(dollars: float | None) -> int | None:
    """Return what may be spent.

    Raises:
        BadRequest: it is no number.
    """
    if dollars is None:
        return None
    if not math.isfinite(dollars):
        raise BadRequest("the budget is no number of dollars", hint="such as --max-budget-usd 1.50")
    return round(dollars * MICRO_DOLLARS_PER_DOLLAR)


def split_rules(arguments: tuple[str, ...]) -> tuple[str, ...]:
    """Return rules one by one: several may stand in one argument, apart by commas or spaces."""
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
    """Return the session to work in."""
    from steno.agent.writable_session import fork_session, new_session, rewind_session
    from steno.store.session_lookup import find

    if chat_options.session_id:
        _check_new_id(chat_options.session_id, options.config)
    if not chat_options.resume and not chat_options.go_on:
        for name, value in (("--fork-session", chat_options.fork), ("--rewind", chat_options.rewind)):
            if value:
                raise BadRequest(f"{name} needs a session", hint="add --continue or --resume")
        return new_session(options.config, options.cwd, session_id=chat_options.session_id)
    if chat_options.fork and chat_options.rewind:
        raise BadRequest("a fork is not taken back in one go", hint="fork first, then --rewind")
    if chat_options.session_id and not chat_options.fork:
        raise BadRequest("a session that goes on keeps its id", hint="add --fork-session")
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
    """Return a session that goes on, in a converted copy where no client reads its file."""
    from steno.agent.writable_session import fork_session, resume_session

    try:
        session = resume_session(path, options.cwd)
    except InDialect as error:
        session = fork_session(options.config, path, options.cwd)
        print_error(str(error), f"it is left as it is; a converted copy goes on: {session.id}")
    return session


def _warn_if_summary_unsent(path: str) -> None:
    from steno.cli.output.record_views import warn_of_unsent_summary
    from steno.session.transcript import load
    from steno.store.file_source import FileSource

    name = os.path.splitext(os.path.basename(path))[0]
    warn_of_unsent_summary(load(FileSource(path)), name)


def _check_new_id(session_id: str, config: str) -> None:
    """Let only ids become names of files that clients find again, and no two sessions share one.

    Raises:
        BadRequest: it is no UUID, or there is a session of that id.
    """
    import uuid

    try:
        is_uuid = str(uuid.UUID(session_id)) == session_id
    except ValueError:
        is_uuid = False
    if not is_uuid:
        raise BadRequest(f"{session_id!r} is no id for a session", hint="a UUID in small letters, with dashes")
    projects = os.path.join(config, "projects")
    folders = os.listdir(projects) if os.path.isdir(projects) else []
    if any(os.path.exists(os.path.join(projects, folder, f"{session_id}{JSONL_SUFFIX}")) for folder in folders):
        raise BadRequest(f"there is a session {session_id} already", hint="--resume goes on with it")


def _newest_session_here(options: "AgentOptions") -> str:
    """Return the newest session of this folder in which something was said."""
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
        raise NotFound("no session of this folder to go on with", hint="leave --continue out")
    return newest_path


def _has_messages(path: str) -> bool:
    """Whether somebody said something: of a prompt that a hook kept out only a note is left."""
    import re

    message_type = re.compile(rb'"type"\s*:\s*"(user|assistant)"')
    with open(path, "rb") as file:
        return any(message_type.search(line) for line in file)


_THINKING_MODES: Final = ("enabled", "adaptive", "disabled")
_EFFORT_LEVELS: Final = ("low", "medium", "high", "xhigh", "max")

_HELP: Final = """\
Let an agent work on the files of this folder.

It talks to the API that ANTHROPIC_BASE_URL names, with ANTHROPIC_API_KEY or
ANTHROPIC_AUTH_TOKEN, and writes a session that Claude Code resumes. Flags and formats are those
of Claude Code. In a terminal it opens a console, and asks before it does what no rule allows;
with -p nobody is there to be asked: what is not allowed is not done.

\b
  steno chat                          the console
  steno chat -c                       go on with the newest session of this folder
  steno chat --demo                   try it: no key, no network, real tools
  steno chat -p "What is in here?"    answer and leave
"""


class ChatOptions(msgspec.Struct):
    """The options of one call."""

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


@click.command("chat", help=_HELP, short_help="Let an agent work on your files, in a console or with -p.")
@click.argument("words", metavar="[PROMPT]", nargs=-1)
@click.option("-p", "--print", "print_only", is_flag=True, help="Answer and leave; no screen.")
@click.option(
    "--output-format",
    type=click.Choice(["text", "json", "stream-json"]),
    default="text",
    help="With -p: the answer, one JSON object, or a line of JSON per event.",
)
@click.option(
    "--input-format",
    type=click.Choice(["text", "stream-json"]),
    default="text",
    help="With -p: words, or a line of JSON per message.",
)
@click.option("--include-partial-messages", "partial", is_flag=True, help="Events as text comes in.")
@click.option("--verbose", is_flag=True, expose_value=False, help="Nothing: it is always so.")
@click.option("--json-schema", metavar="SCHEMA", default="", help="The shape of the answer.")
@click.option("-c", "--continue", "go_on", is_flag=True, help="Go on with the newest session here.")
@click.option("-r", "--resume", metavar="SESSION", default="", help="Go on with a session.")
@click.option("--fork-session", "fork", is_flag=True, help="With the two above: in a new session.")
@click.option("--rewind", metavar="ID", default="", help="With the first two: from before a prompt.")
@click.option("--rewind-files", metavar="ID", default="", help="Put the files back as they were at a prompt.")
@click.option("--session-id", metavar="UUID", default="", help="The id of a new session.")
@MODEL_OPTION
@click.option(
    "--permission-mode",
    "mode",
    type=click.Choice(PERMISSION_MODES),
    default=None,
    help="What is allowed without asking.",
)
@click.option("--dangerously-skip-permissions", "skip_permissions", is_flag=True, help="Ask about nothing.")
@ALLOWED_TOOLS
@DISALLOWED_TOOLS
@click.option("--tools", metavar="NAMES", default=None, help="The only tools there are.")
@click.option("--add-dir", "folders", multiple=True, metavar="DIR", help="One more working folder.")
@click.option("--system-prompt", "system", metavar="WORDS", default="", help="In place of ours.")
@click.option("--append-system-prompt", "more_system", metavar="WORDS", default="", help="Behind ours.")
@SETTINGS_OPTION
@click.option("--mcp-config", multiple=True, metavar="FILE|JSON", help="Servers for this run.")
@click.option("--strict-mcp-config", "strict_mcp", is_flag=True, help="Only those.")
@click.option("--agents", metavar="JSON", default="", help="Kinds of sub-agents for this run.")
@click.option(
    "--sandbox/--no-sandbox",
    "sandbox",
    default=None,
    help="Confine commands to this folder, or not, whatever the settings say.",
)
@click.option("--effort", type=click.Choice(_EFFORT_LEVELS), default=None, help="How hard the model tries.")
@click.option(
    "--thinking",
    type=click.Choice(_THINKING_MODES),
    default=None,
    help="Whether it thinks first: on a budget (MAX_THINKING_TOKENS), as it sees fit, or not.",
)
@MAX_TURNS_OPTION
@click.option(
    "--max-budget-usd", "budget", type=click.FloatRange(0, min_open=True), default=None, help="Dollars at most."
)
@click.option(
    "--max-time",
    "seconds",
    type=click.FloatRange(0, min_open=True),
    default=None,
    help="Seconds at most, sub-agents included.",
)
@click.option("--demo", is_flag=True, help="A small task with real tools and a scripted model.")
@click.option("--screen-reader", "reader", is_flag=True, help="In the console: whole lines, nothing moves.")
@click.option("--trust", is_flag=True, help="Let this folder's own settings have an effect.")
@add_options(JSON, COLOR)
def command(**values: Any) -> None:
    """Let an agent work on the files of this folder."""
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
        raise BadRequest("the console needs a terminal", hint="steno chat -p PROMPT answers and leaves")
    if chat_options.rewind_files:
        _restore_files(chat_options)
        if not chat_options.words:
            return 0
    return _run_headless(chat_options)


def _is_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()


def _run_headless(chat_options: ChatOptions) -> int:
    """Let the agent answer without a screen; return the exit code."""
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
    """Put files back as they were when a prompt was said, and say which."""
    from steno.agent.agent_session import open_checkpointer

    engine_options = agent_options(chat_options)
    work = select_session(chat_options, engine_options)
    checkpoints = open_checkpointer(work, engine_options)
    outcome = checkpoints.restore(chat_options.rewind_files)
    work.conversation.recorder.close()
    if chat_options.as_json:
        write_json({"done": outcome.restored, "left": outcome.skipped})
        return
    screen = Screen(chat_options.color)
    for file in outcome.restored:
        screen.print_lines([[f"{file.action:9}", " ", one_line(file.path)]])
    for file in outcome.skipped:
        screen.print_lines([[("left     ", "yellow"), " ", one_line(file.path)]])


def agent_options(chat_options: ChatOptions) -> "AgentOptions":
    """Return what the options of a call say of the agent."""
    from steno.agent.config.agent_options import AgentOptions
    from steno.agent.context.token_usage import TurnLimits
    from steno.permissions.project_trust import is_trusted, trust_folder
    from steno.store.environment import config_dir

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
    """Return what is piped in."""
    return "" if sys.stdin is None or sys.stdin.isatty() else sys.stdin.read().strip("\n")


def _compose_prompt(arguments: tuple[str, ...], piped: str) -> str:
    """Return the prompt: the words of the call, and what is piped in."""
    prompt = "\n\n".join(part for part in (" ".join(arguments), piped) if part)
    if not prompt.strip():
        raise BadRequest("there is nothing to say", hint='steno chat -p "What is in here?"')
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
        raise BadRequest("the schema is no JSON object", hint="see --json-schema") from None
    return StructuredOutputTool(schema_object)


def _print_warning(message: str) -> None:
    """Tell the user what no answer tells; it never mixes with the answer."""
    click.echo(f"steno: {one_line(message)}", err=True)


def _print_answer(answer: str | dict[str, Any]) -> None:
    """Print an answer, or a line of JSON; words of a model never reach a terminal raw."""
    if isinstance(answer, str):
        safe_text = clean(answer, newlines=True) if sys.stdout.isatty() else answer
        data = safe_text.encode("utf-8", "replace")
    else:
        data = escape_invisible(encode(answer))
    write_bytes(data + b"\n")
    sys.stdout.flush()
