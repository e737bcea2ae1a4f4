"""`steno chat`: an agent over your own files, in a console or without a screen (`-p`)."""

import os
import sys
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from steno.cli.chat_flags import (
    finite,
    micro_dollars,
    refuse_unreadable,
    rules_in,
    working_folder,
)
from steno.cli.chat_work import work_for
from steno.cli.engine_options import ALLOWED, DISALLOWED, MAX_TURNS, MODEL, MODES, SETTINGS
from steno.cli.options import COLOR, JSON, options
from steno.cli.screen import Screen, harmless, write_bytes, write_json
from steno.errors import BadRequest
from steno.extras import require
from steno.format.encode import encode
from steno.safe.terminal import ColourMode, clean, one_line

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from steno.agent.headless import Output, Printer
    from steno.agent.run import Shape
    from steno.agent.start import Options
    from steno.model.wire import Block

__all__ = ["Asked", "command", "options_of"]

_THINKING: Final = ("enabled", "adaptive", "disabled")
_EFFORTS: Final = ("low", "medium", "high", "xhigh", "max")

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


class Asked(msgspec.Struct):
    """The options of one call."""

    words: tuple[str, ...] = ()
    print_only: bool = False
    output_format: "Output" = "text"
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


@click.command(
    "chat", help=_HELP, short_help="Let an agent work on your files, in a console or with -p."
)
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
@click.option(
    "--include-partial-messages", "partial", is_flag=True, help="Events as text comes in."
)
@click.option("--verbose", is_flag=True, expose_value=False, help="Nothing: it is always so.")
@click.option("--json-schema", metavar="SCHEMA", default="", help="The shape of the answer.")
@click.option("-c", "--continue", "go_on", is_flag=True, help="Go on with the newest session here.")
@click.option("-r", "--resume", metavar="SESSION", default="", help="Go on with a session.")
@click.option("--fork-session", "fork", is_flag=True, help="With the two above: in a new session.")
@click.option(
    "--rewind", metavar="ID", default="", help="With the first two: from before a prompt."
)
@click.option(
    "--rewind-files", metavar="ID", default="", help="Put the files back as they were at a prompt."
)
@click.option("--session-id", metavar="UUID", default="", help="The id of a new session.")
@MODEL
@click.option(
    "--permission-mode",
    "mode",
    type=click.Choice(MODES),
    default=None,
    help="What is allowed without asking.",
)
@click.option(
    "--dangerously-skip-permissions", "skip_permissions", is_flag=True, help="Ask about nothing."
)
@ALLOWED
@DISALLOWED
@click.option("--tools", metavar="NAMES", default=None, help="The only tools there are.")
@click.option("--add-dir", "folders", multiple=True, metavar="DIR", help="One more working folder.")
@click.option("--system-prompt", "system", metavar="WORDS", default="", help="In place of ours.")
@click.option(
    "--append-system-prompt", "more_system", metavar="WORDS", default="", help="Behind ours."
)
@SETTINGS
@click.option("--mcp-config", multiple=True, metavar="FILE|JSON", help="Servers for this run.")
@click.option("--strict-mcp-config", "strict_mcp", is_flag=True, help="Only those.")
@click.option("--agents", metavar="JSON", default="", help="Kinds of sub-agents for this run.")
@click.option(
    "--sandbox/--no-sandbox",
    "sandbox",
    default=None,
    help="Confine commands to this folder, or not, whatever the settings say.",
)
@click.option(
    "--effort", type=click.Choice(_EFFORTS), default=None, help="How hard the model tries."
)
@click.option(
    "--thinking",
    type=click.Choice(_THINKING),
    default=None,
    help="Whether it thinks first: on a budget (MAX_THINKING_TOKENS), as it sees fit, or not.",
)
@MAX_TURNS
@click.option(
    "--max-budget-usd",
    "budget",
    type=click.FloatRange(0, min_open=True),
    default=None,
    help="Dollars at most.",
)
@click.option(
    "--max-time",
    "seconds",
    type=click.FloatRange(0, min_open=True),
    default=None,
    help="Seconds at most, sub-agents included.",
)
@click.option("--demo", is_flag=True, help="A small task with real tools and a scripted model.")
@click.option(
    "--screen-reader", "reader", is_flag=True, help="In the console: whole lines, nothing moves."
)
@click.option("--trust", is_flag=True, help="Let this folder's own settings have an effect.")
@options(JSON, COLOR)
def command(**asked: Any) -> None:
    """Let an agent work on the files of this folder."""
    require("agent", "`steno chat`")
    for name in ("mode", "thinking", "effort"):
        asked[name] = asked[name] or ""
    if asked["as_json"]:
        asked["output_format"] = "json"
    sys.exit(_run(Asked(**asked)))


def _run(asked: Asked) -> int:
    if not asked.print_only and _at_a_terminal():
        from steno.cli.chat_console import open_console

        return open_console(asked)
    if asked.demo:
        from steno.cli.chat_demo import play_demo

        return play_demo(asked.color)
    if not asked.print_only:
        raise BadRequest(
            "the console needs a terminal", hint="steno chat -p PROMPT answers and leaves"
        )
    if asked.rewind_files:
        _put_back(asked)
        if not asked.words:
            return 0
    return _answer(asked)


def _at_a_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()


def _answer(asked: Asked) -> int:
    """Let the agent answer without a screen; return the exit code."""
    import asyncio

    from steno.agent.keys import holding_keys
    from steno.agent.run import run
    from steno.agent.thinking import betas_for
    from steno.guard.environ import forget
    from steno.model.client import Api
    from steno.model.endpoint import Endpoint
    from steno.report.prices import Prices
    from steno.report.spent import spending

    piped = _piped() if asked.input_format == "text" else ""
    prompt = _prompt(asked.words, piped) if asked.input_format == "text" else ""
    endpoint = Endpoint.from_environment(os.environ)
    forget(holding_keys(os.environ))
    options = options_of(asked)
    refuse_unreadable(options)
    options.piped = piped
    options.key_source = endpoint.key_source
    work = work_for(asked, options)
    printer = _printer(asked, work.id)
    shape = _shape(asked.json_schema)
    betas = betas_for(asked.thinking, asked.effort, os.environ, asked.model)

    async def together() -> int:
        async with Api(endpoint, betas=betas, verbatim=asked.partial) as api:
            said = _prompts(prompt, asked.input_format)
            return await run(
                options, work, api, said, printer, price=spending(Prices()), shape=shape
            )

    return asyncio.run(together())


def _printer(asked: Asked, session_id: str) -> "Printer":
    from steno.agent.headless import Printer

    return Printer(
        asked.output_format,
        session_id,
        _write,
        partial=asked.partial,
        warn=_warn,
        more=asked.input_format != "text",
    )


def _put_back(asked: Asked) -> None:
    """Put files back as they were when a prompt was said, and say which."""
    from steno.agent.start import points_of

    options = options_of(asked)
    work = work_for(asked, options)
    points = points_of(work, options)
    done = points.restore(asked.rewind_files)
    work.talk.recorder.close()
    if asked.as_json:
        write_json({"done": done.done, "left": done.left})
        return
    screen = Screen(asked.color)
    for each in done.done:
        screen.lines([[f"{each.action:9}", " ", one_line(each.path)]])
    for each in done.left:
        screen.lines([[("left     ", "yellow"), " ", one_line(each.path)]])


def options_of(asked: Asked) -> "Options":
    """Return what the options of a call say of the agent."""
    from steno.agent.meter import Limits
    from steno.agent.start import Options
    from steno.guard.trust import is_trusted, trust
    from steno.store.places import config_dir

    cwd = working_folder()
    if asked.trust:
        trust(cwd)
    names = asked.tools
    return Options(
        cwd=cwd,
        config=config_dir(),
        env=dict(os.environ),
        trusted=is_trusted(cwd),
        model=asked.model,
        mode="bypassPermissions" if asked.skip_permissions else asked.mode,
        allowed=rules_in(asked.allowed),
        disallowed=rules_in(asked.disallowed),
        tools=tuple(names.replace(",", " ").split()) if names is not None else None,
        folders=asked.folders,
        limits=Limits(
            requests=asked.max_turns,
            cost=micro_dollars(asked.budget),
            seconds=finite(asked.seconds),
        ),
        system=asked.system,
        more_system=asked.more_system,
        settings=asked.settings,
        mcp_config=asked.mcp_config,
        strict_mcp=asked.strict_mcp,
        agents=asked.agents,
        sandbox=asked.sandbox,
        thinking=asked.thinking,
        effort=asked.effort,
    )


def _piped() -> str:
    """Return what is piped in."""
    return "" if sys.stdin is None or sys.stdin.isatty() else sys.stdin.read().strip("\n")


def _prompt(words: tuple[str, ...], piped: str) -> str:
    """Return the prompt: the words of the call, and what is piped in."""
    prompt = "\n\n".join(part for part in (" ".join(words), piped) if part)
    if not prompt.strip():
        raise BadRequest("there is nothing to say", hint='steno chat -p "What is in here?"')
    return prompt


async def _prompts(prompt: str, form: str) -> "AsyncIterator[str | list[Block]]":
    if form == "text":
        yield prompt
        return
    from steno.agent.run import lines_of_prompts
    from steno.cli.piped import lines_as_they_come

    async for line in lines_as_they_come(sys.stdin.fileno()):
        said = lines_of_prompts(line)
        if said is not None:
            yield said


def _shape(schema: str) -> "Shape | None":
    if not schema:
        return None
    from steno.agent.run import Shape

    try:
        shape = msgspec.json.decode(schema, type=dict[str, Any])
    except msgspec.MsgspecError:
        raise BadRequest("the schema is no JSON object", hint="see --json-schema") from None
    return Shape(shape)


def _warn(words: str) -> None:
    """Tell the user what no answer tells; it never mixes with the answer."""
    click.echo(f"steno: {one_line(words)}", err=True)


def _write(said: str | dict[str, Any]) -> None:
    """Print an answer, or a line of JSON; words of a model never reach a terminal raw."""
    if isinstance(said, str):
        shown = clean(said, newlines=True) if sys.stdout.isatty() else said
        data = shown.encode("utf-8", "replace")
    else:
        data = harmless(encode(said))
    write_bytes(data + b"\n")
    sys.stdout.flush()
