"""Front ends of `steno chat`: the console, and the demo with and without a terminal."""

import os
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from steno.agent import events
from steno.agent.events import Event
from steno.cli.output.screen import Screen
from steno.errors import BadRequest
from steno.format.lenient_json import as_object
from steno.format.paths import SHORT_ID_LENGTH
from steno.sanitize.terminal import (
    ColourMode,
    StyledLine,
    TerminalStyler,
    clean,
    one_line,
    truncate,
    wants_colour,
    wrap,
)
from steno.store.config import read_config

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from steno.agent.config.agent_options import AgentOptions
    from steno.agent.loop import ModelClient
    from steno.cli.commands.chat import ChatOptions
    from steno.console.chat import AgentSetup, ChatConfig
    from steno.llm.testserver.scripted_responder import ScriptedResponder


_SUBJECT_FIELDS: Final = ("file_path", "notebook_path", "command", "pattern", "url", "query", "description")
_MAX_OUTPUT_LINES: Final = 6
_OUTPUT_INDENT: Final = 4


def event_lines(event: Event, columns: int) -> Iterator[StyledLine]:
    """Yield the lines for an event; most events have none."""
    match event:
        case events.PromptSubmitted(text, _):
            for line in wrap(text, columns - 2):
                yield [("│ ", "bold cyan"), (line, "bold")]
            yield []
        case events.ResponseReceived(response, _):
            for block in response.blocks:
                yield from _text_block_lines(block, columns)
        case events.ToolEnded():
            yield from _tool_result_lines(event, columns)
        case _:
            yield from _notice_lines(event, columns)


def _tool_result_lines(event: events.ToolEnded, columns: int) -> Iterator[StyledLine]:
    outcome = event.result
    mark, style = ("✗", "red") if outcome.is_error else ("✓", "green")
    head = one_line(f"{event.call.get('name')} {_call_subject(event.call.get('input'))}", columns - 14)
    yield ["  ", (mark, style), " ", head, (f"  {event.seconds:.1f} s", "dim")]
    for line in _last_output_lines(outcome.content):
        yield [" " * _OUTPUT_INDENT, (truncate(clean(line), columns - _OUTPUT_INDENT), "dim")]


def _notice_lines(event: Event, columns: int) -> Iterator[StyledLine]:
    match event:
        case events.CallDenied(call, decision):
            text = f"{call.get('name')}: {decision.reason}"
        case events.Retrying(attempt, max_attempts, delay, error):
            text = f"{error}; retrying in {delay:.0f} s ({attempt} of {max_attempts})"
        case events.Notice(notice, _):
            text = notice
        case events.Compacted(_, tokens_before, tokens_after, _):
            text = f"Compacted: {tokens_before:,} → {tokens_after:,} tokens"
        case events.Trimmed(tokens_before, tokens_after, calls):
            text = f"Removed the output of {len(calls)} tool calls: {tokens_before:,} → {tokens_after:,} tokens"
        case _:
            return
    yield [("  ! ", "yellow"), one_line(text, columns - _OUTPUT_INDENT)]


def _text_block_lines(block: dict[str, Any], columns: int) -> Iterator[StyledLine]:
    if block.get("type") == "text":
        for line in wrap(str(block.get("text", "")), columns):
            yield [line]
        yield []


def _call_subject(tool_input: Any) -> str:
    fields = as_object(tool_input) or {}
    return next((str(fields[key]) for key in _SUBJECT_FIELDS if key in fields), "")


def _last_output_lines(content: Any) -> list[str]:
    """Return the last lines of a tool result."""
    lines = content.strip().splitlines() if isinstance(content, str) else []
    return lines[-_MAX_OUTPUT_LINES:]


def run_plain_demo(color: ColourMode) -> int:
    """Run the demo task without a console; its directory and session are kept."""
    import asyncio

    from steno.agent.agent_session import build_session
    from steno.agent.config.agent_options import AgentCallbacks
    from steno.agent.writable_session import new_session
    from steno.llm.client import ApiClient
    from steno.llm.endpoint import Endpoint
    from steno.llm.testserver.server import Server

    options = _prepare_demo()
    options.mode, folder = "acceptEdits", options.cwd
    work = new_session(options.config, folder)
    screen = Screen(color)

    async def run_demo() -> None:
        async with Server(_demo_script(folder)) as server, open_api(server.url) as api:
            people = AgentCallbacks(emit=lambda event: screen.print_lines(event_lines(event, screen.width)))
            started = build_session(options, work, api, people, lambda _model, _usage: 0)
            await started.agent.run_turn(_DEMO_PROMPT)
            await started.close()

    def open_api(url: str) -> ApiClient:
        return ApiClient(Endpoint(url, api_key="none-needed"))

    asyncio.run(run_demo())
    screen.print_next_steps([f"steno show {work.conversation.recorder.path}", f"cat {folder}/temperature.py"])
    return 0


_UNICODE_ENCODINGS: Final = frozenset({"utf8", "utf16", "utf32"})
_DEMO_STEPS: Final = (
    (
        "The test of the temperature table fails. Find out why and fix it.",
        (
            "This is a demo: the model is scripted, the tools are real, and they work in "
            "a temporary directory. Press enter to send the first prompt."
        ),
    ),
    ("/diff", ("The agent found the bug and asked before it changed a file. Press enter to see the change.")),
    (
        "/rewind",
        "You can rewind the conversation and files to any prompt. Press enter to see the prompts; esc closes the list.",
    ),
    ("/help", "Those are the basics. Press enter for all commands, or ctrl-d twice to exit."),
)


def open_console(chat_options: "ChatOptions") -> int:
    """Open the console; return the exit code when the user exits."""
    import asyncio

    if os.environ.get("TERM") == "dumb":
        raise BadRequest(
            "the console needs a terminal with cursor movement, but TERM is dumb",
            hint="Run `steno chat -p PROMPT` to print the answer.",
        )
    from steno.console.chat import Chat
    from steno.console.screen import TerminalScreen, create_terminal_output

    config = read_config()
    theme = "" if chat_options.color != "auto" else config.theme
    colour = wants_colour(chat_options.color, os.environ, tty=True) and theme in ("", "colour")
    unicode = (sys.stdout.encoding or "").lower().replace("-", "") in _UNICODE_ENCODINGS
    paint = TerminalStyler(colour=colour, unicode=unicode)
    screen = TerminalScreen(create_terminal_output(sys.stdout), paint, reader=chat_options.reader or theme == "reader")
    settings = _demo_settings() if chat_options.demo else _console_settings(chat_options, config.model)
    settings.use_vi = config.keys == "vi"

    async def run_console() -> Chat:
        talk = Chat(screen, settings)
        await talk.run()
        return talk

    talk = asyncio.run(run_console())
    if talk.last_session_id:
        farewell = settings.exit_message.format(session=talk.last_session_id[:SHORT_ID_LENGTH])
        screen.print([[], [(farewell, "dim")]])
    return 0


def _console_settings(chat_options: "ChatOptions", model: str) -> "ChatConfig":
    from steno.console.chat import ChatConfig

    # A resumed session keeps its model.
    if not chat_options.model and not chat_options.resume and not chat_options.go_on:
        chat_options.model = model
    return ChatConfig(
        prepare=lambda: _prepare_session(chat_options),
        render_last_turns=_recent_turn_lines,
        first_prompt=" ".join(chat_options.words),
    )


def _prepare_session(chat_options: "ChatOptions") -> "AgentSetup":
    from steno.agent.child_process import variables_with_keys
    from steno.agent.config.models import beta_headers
    from steno.cli.commands.chat import agent_options, check_option_files, select_session
    from steno.console.chat import AgentSetup
    from steno.llm.client import ApiClient
    from steno.llm.endpoint import Endpoint
    from steno.permissions.program_environment import scrub_environment
    from steno.report.pricing import PriceTable, response_cost_function

    endpoint = Endpoint.from_environment(os.environ)
    scrub_environment(variables_with_keys(os.environ))
    engine_options = agent_options(chat_options)
    check_option_files(engine_options)
    betas = beta_headers(chat_options.thinking, chat_options.effort, os.environ, chat_options.model)
    return AgentSetup(
        options=engine_options,
        open_session=lambda: select_session(chat_options, engine_options),
        open_model=lambda: ApiClient(endpoint, betas=betas),
        price_response=response_cost_function(PriceTable()),
    )


def _recent_turn_lines(path: str, turns: int, columns: int) -> Iterator[StyledLine]:
    from steno.cli.output.transcript import RenderOptions, turn_lines
    from steno.session.session import Session
    from steno.session.transcript import load
    from steno.store.file_source import FileSource

    session = Session(load(FileSource(path)))
    all_turns = session.turns()
    render_options = RenderOptions(width=max(columns - 1, 40), project=os.getcwd())
    earlier = len(all_turns) - turns
    if earlier > 0:
        yield [(f"{earlier} earlier turns; ctrl-o to show all", "dim")]
    for turn in all_turns[-turns:]:
        yield []
        yield from turn_lines(session.transcript, turn, render_options)


def _demo_settings() -> "ChatConfig":
    from steno.console.chat import ChatConfig

    farewell = "Set ANTHROPIC_API_KEY and run `steno chat` in your project."
    return ChatConfig(
        prepare=_prepare_demo_session,
        render_last_turns=_recent_turn_lines,
        tour_steps=_DEMO_STEPS,
        exit_message=farewell,
    )


def _prepare_demo_session() -> "AgentSetup":
    """Set up a small project in a temporary directory, with a scripted model."""
    from steno.agent.writable_session import new_session
    from steno.console.chat import AgentSetup

    engine_options = _prepare_demo()
    folder = engine_options.cwd

    def model() -> "AbstractAsyncContextManager[ModelClient]":
        return _open_scripted_model(_demo_script(folder), os.path.dirname(folder))

    return AgentSetup(
        options=engine_options,
        open_session=lambda: new_session(engine_options.config, folder),
        open_model=model,
        price_response=lambda _model, _usage: 0,
    )


@asynccontextmanager
async def _open_scripted_model(responder: Any, folder: str) -> "AsyncGenerator[ModelClient]":
    import shutil

    from steno.llm.client import ApiClient
    from steno.llm.endpoint import Endpoint
    from steno.llm.testserver.server import Server

    async with Server(responder) as server, ApiClient(Endpoint(server.url, api_key="none-needed")) as api:
        try:
            yield api
        finally:
            # Demo sessions cannot be resumed.
            shutil.rmtree(folder, ignore_errors=True)


_DEMO_PROMPT: Final = "The test of the temperature table fails. Find out why and fix it."
_MODULE_SOURCE: Final = '''\
"""Temperature conversions."""


def to_fahrenheit(celsius: float) -> float:
    """Return the same temperature in degrees Fahrenheit."""
    return celsius * 5 / 9 + 32
'''
_TEST_SOURCE: Final = """\
import unittest

from temperature import to_fahrenheit


class Table(unittest.TestCase):
    def test_known_points(self) -> None:
        for celsius, fahrenheit in ((0, 32), (100, 212), (-40, -40)):
            self.assertEqual(to_fahrenheit(celsius), fahrenheit)


if __name__ == "__main__":
    unittest.main()
"""


def _prepare_demo() -> "AgentOptions":
    """Create a directory with a project and a config directory; return the agent options for it."""
    import tempfile

    from steno.agent.config.agent_options import AgentOptions

    demo_folder = tempfile.mkdtemp(prefix="steno-demo-")
    folder, config = os.path.join(demo_folder, "project"), os.path.join(demo_folder, "config")
    os.mkdir(folder)
    _write_project(folder)
    options = AgentOptions(cwd=folder, config=config, env=dict(os.environ))
    options.allowed = (f"Bash({sys.executable} -m unittest:*)",)
    return options


def _write_project(folder: str) -> None:
    for name, content in (("temperature.py", _MODULE_SOURCE), ("test_temperature.py", _TEST_SOURCE)):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(content)


def _demo_script(folder: str) -> "ScriptedResponder":
    """Return the scripted responses of the model; the tools are real."""
    from steno.llm.testserver.responders import text, thinking, tool
    from steno.llm.testserver.scripted_responder import ScriptedResponder

    path = os.path.join(folder, "temperature.py")
    test_command = f"{sys.executable} -m unittest -q"
    return (
        ScriptedResponder()
        .on(
            "temperature table",
            [
                text("I will run the test and read the code."),
                tool("Bash", command=test_command, description="Run the tests"),
                tool("Read", file_path=path),
                tool("Grep", pattern="to_fahrenheit", output_mode="files_with_matches"),
            ],
        )
        .then(
            [
                thinking("One degree Celsius is 9/5 of a degree Fahrenheit. The fraction is inverted."),
                text("The fraction is inverted: it should be 9 / 5."),
                tool("Edit", file_path=path, old_string="celsius * 5 / 9 + 32", new_string="celsius * 9 / 5 + 32"),
            ]
        )
        .then(tool("Bash", command=test_command, description="Run the tests again"))
        .then(
            "Fixed: `to_fahrenheit` multiplied by 5/9 instead of 9/5. The test passes now; no other file was changed."
        )
    )
