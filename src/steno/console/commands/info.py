"""Commands that show information: help, keys, status, cost, context, tasks."""

import sys
from typing import TYPE_CHECKING, Final

from steno.console.chat_status import MODE_DESCRIPTIONS
from steno.console.commands import ConsoleCommand, description_rows, with_session
from steno.console.key_bindings import KEY_HELP
from steno.report import humanize
from steno.report.humanize import MICRO_DOLLARS_PER_DOLLAR
from steno.sanitize.terminal import StyledLine, one_line, pad

if TYPE_CHECKING:
    from steno.agent.agent_session import AgentSession
    from steno.console.chat import Chat


_BAR_WIDTH: Final = 30


async def _help(chat: "Chat", _arguments: str) -> None:
    columns = chat.screen.width - 1
    lines: list[StyledLine] = [[("  Type a prompt, or:", "")], []]
    rows = [
        ("@file", "Mention a file; tab completes the name"),
        ("!command", "Run a shell command; the model sees its output"),
        ("#text", "Add a line to memory"),
    ]
    rows += [(f"/{command.name} {command.arguments}".strip(), command.help) for command in chat.command_table.commands]
    session = chat.session
    console_names = {each.name for each in chat.command_table.commands}
    if session is not None:
        rows += [
            (f"/{name}", description)
            for name, description in session.slash_dispatcher.callable_prompts
            if name not in console_names
        ]
    lines += description_rows(rows, columns)
    chat.renderer.print_block([*lines, [], [("  ? for shortcuts", "dim")]], "help")


async def _keys(chat: "Chat", _arguments: str) -> None:
    chat.renderer.print_block(description_rows(KEY_HELP, chat.screen.width - 1), "keys")


@with_session
async def _status(chat: "Chat", session: "AgentSession", _arguments: str) -> None:
    from steno._version import __version__

    agent, state = session.agent, chat.status.state()
    context = agent.conversation.recorder.composer.context
    rows = [
        ("steno", f"{__version__}, Python {sys.version.split()[0]}"),
        ("session", context.session_id),
        ("file", agent.conversation.recorder.path),
        ("directory", context.cwd + ("" if chat.agent_setup.options.trusted else "  (not trusted)")),
        ("branch", context.git_branch or "none"),
        ("model", agent.request_config.model),
        ("mode", f"{state.mode} ({MODE_DESCRIPTIONS.get(state.mode, '')})"),
        ("sandbox setting", "on" if session.sandbox is not None else "off"),
        ("sandbox", session.command_runner.support.summary),
        ("context", f"{humanize.tokens(state.context)} of {humanize.tokens(state.window)} tokens"),
        ("cost", f"${state.cost / MICRO_DOLLARS_PER_DOLLAR:.4f}"),
        ("memory", ", ".join(part.path for part in session.memory.files) or "none"),
    ]
    _print_table(chat, rows)


def _print_table(chat: "Chat", rows: list[tuple[str, str]]) -> None:
    chat.renderer.print_block(description_rows(rows, chat.screen.width - 1, "dim"), "table")


@with_session
async def _cost(chat: "Chat", session: "AgentSession", _arguments: str) -> None:
    meter = session.agent.meter
    rows = [("total", f"${meter.total_cost / MICRO_DOLLARS_PER_DOLLAR:.4f}")]
    for model, usage in meter.usage_by_model.items():
        cached_tokens = usage["cache_read_input_tokens"]
        input_tokens = usage["input_tokens"] + usage["cache_creation_input_tokens"] + cached_tokens
        summary = f"{humanize.tokens(input_tokens)} in, {humanize.tokens(cached_tokens)} cached, "
        summary += f"{humanize.tokens(usage['output_tokens'])} out, ${usage['cost'] / MICRO_DOLLARS_PER_DOLLAR:.4f}"
        rows.append((humanize.model_name(model), summary))
    if len(rows) == 1:
        rows.append(("", "no requests yet"))
    _print_table(chat, rows)


@with_session
async def _context(chat: "Chat", session: "AgentSession", _arguments: str) -> None:
    from steno.agent.slash_dispatch import context_report

    _, usage = context_report(session.agent, session.compactor.window(session.agent))
    window, columns = int(usage["raw_max_tokens"]), chat.screen.width
    lines: list[StyledLine] = [
        [
            (f"  about {humanize.tokens(usage['total_tokens'])} of {humanize.tokens(window)} tokens", "bold"),
            (f"  {usage['percentage']}%", "dim"),
        ]
    ]
    parts = [(str(category["name"]), int(category["tokens"])) for category in usage["categories"]]
    parts.append(("Free", max(window - int(usage["total_tokens"]), 0)))
    bar_width = min(_BAR_WIDTH, max(columns - 36, 0))
    for name, size in sorted(parts, key=lambda part: (part[0] == "Free", -part[1])):
        filled = max(round(size * bar_width / window), 1) if window and size and bar_width else 0
        style = "dim" if name == "Free" else "blue"
        share = f"{100 * size / window:5.1f}%"
        row: StyledLine = ["  ", pad(name, 17), f"{humanize.tokens(size):>8} ", (share, "dim"), "  "]
        lines.append([*row, ("█" * filled, style)])
    chat.renderer.print_block(lines, "context")
    chat.renderer.print_note("Estimated. Use /compact to free space, or /clear to start a new session.", "dim")


async def _todos(chat: "Chat", _arguments: str) -> None:
    lines = chat.renderer.todo_lines(chat.screen.width)
    chat.renderer.print_block(lines or [[("  No open to-do items", "dim")]], "todos")


@with_session
async def _tasks(chat: "Chat", session: "AgentSession", arguments: str) -> None:
    tasks = session.agent.executor.context.background.tasks
    action, _, task_id = arguments.partition(" ")
    if action == "stop" and task_id.strip() in tasks:
        await tasks[task_id.strip()].stop()
    lines: list[StyledLine] = []
    for task in tasks.values():
        style = {"running": "green", "failed": "red"}.get(task.status, "dim")
        description = one_line(task.description or task.command, max(chat.screen.width - 34, 10))
        lines.append(["  ", (pad(task.id, 12), "bold"), " ", (pad(task.status, 10), style), " ", description])
    body = lines or [[("  No background tasks", "dim")]]
    hint: list[StyledLine] = [[("  /tasks stop ID to stop a task", "dim")]] if lines else []
    chat.renderer.print_block([*body, *hint], "tasks")


async def _bug(chat: "Chat", _arguments: str) -> None:
    """Print details for a bug report, without any content of the session."""
    import platform

    from steno._version import __version__

    state = chat.status.state()
    rows = [
        ("steno", __version__),
        ("python", sys.version.split()[0]),
        ("system", f"{platform.system()} {platform.release()} {platform.machine()}"),
        ("terminal", f"{chat.screen.width} x {chat.screen.rows}, colour {chat.screen.paint.colour}"),
        ("model", state.model),
        ("mode", state.mode),
        ("turns", str(chat.turns)),
    ]
    _print_table(chat, rows)
    chat.renderer.print_note(
        "Copy this into your bug report. It contains no session content, and nothing was sent.", "dim"
    )


COMMANDS: Final = (
    ConsoleCommand(name="help", help="List commands", run=_help, runs_anytime=True),
    ConsoleCommand(name="keys", help="List keyboard shortcuts", run=_keys, runs_anytime=True),
    ConsoleCommand(name="status", help="Show session, directory, model and mode", run=_status, runs_anytime=True),
    ConsoleCommand(
        name="cost", help="Show token usage and cost by model", run=_cost, aliases=("usage",), runs_anytime=True
    ),
    ConsoleCommand(name="context", help="Show context usage", run=_context, runs_anytime=True),
    ConsoleCommand(name="todos", help="List to-do items", run=_todos, runs_anytime=True),
    ConsoleCommand(
        name="tasks",
        help="List and stop background tasks",
        arguments="[stop ID]",
        run=_tasks,
        aliases=("bashes",),
        runs_anytime=True,
    ),
    ConsoleCommand(name="bug", help="Print details for a bug report", run=_bug, runs_anytime=True),
)
