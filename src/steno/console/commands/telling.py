"""Commands that tell how things stand: help, keys, status, cost, context, what runs."""

import sys
from typing import TYPE_CHECKING, Final

from steno.console.commands import Command, rows_of
from steno.console.keys import HELP
from steno.console.status import MODES
from steno.report import words
from steno.safe.terminal import Line, one_line, pad

if TYPE_CHECKING:
    from steno.console.talk import Talk

__all__ = ["COMMANDS"]

_MICRO: Final = 1_000_000
_BAR: Final = 30


async def _help(talk: "Talk", arguments: str) -> None:
    del arguments
    columns = talk.screen.width - 1
    lines: list[Line] = [[("  Say what you want done, in your own words. Besides:", "")], []]
    rows = [
        ("@file", "names a file; tab completes it"),
        ("!command", "runs a command yourself; the model reads what it printed"),
        ("#words", "keeps something that the model should always know"),
    ]
    rows += [(f"/{each.name} {each.takes}".strip(), each.help) for each in talk.table.commands]
    started = talk.started
    own = {each.name for each in talk.table.commands}
    if started is not None:
        rows += [(f"/{name}", about) for name, about in started.slash.offers if name not in own]
    lines += rows_of(rows, columns)
    talk.stream.block([*lines, [], [("  ? shows the keys", "dim")]], "help")


async def _keys(talk: "Talk", arguments: str) -> None:
    del arguments
    talk.stream.block(rows_of(HELP, talk.screen.width - 1), "keys")


async def _status(talk: "Talk", arguments: str) -> None:
    del arguments
    started = talk.started
    if started is None:
        return
    from steno._version import __version__

    agent, state = started.agent, talk.face.state()
    place = agent.talk.recorder.compose.place
    rows = [
        ("steno", f"{__version__}, Python {sys.version.split()[0]}"),
        ("session", place.session_id),
        ("file", agent.talk.recorder.path),
        ("folder", place.cwd + ("" if talk.ready.options.trusted else "  (not trusted)")),
        ("branch", place.git_branch or "no git here"),
        ("model", agent.course.model),
        ("mode", f"{state.mode}: {MODES.get(state.mode, '')}"),
        ("sandbox", "on" if started.confined is not None else "off"),
        ("confinement", started.runner.support.summary),
        ("context", f"{words.tokens(state.context)} of {words.tokens(state.window)} tokens"),
        ("spent", f"${state.cost / _MICRO:.4f}"),
        ("memory", ", ".join(part.path for part in started.memory.parts) or "none"),
    ]
    _table(talk, rows)


def _table(talk: "Talk", rows: list[tuple[str, str]]) -> None:
    talk.stream.block(rows_of(rows, talk.screen.width - 1, "dim"), "table")


async def _cost(talk: "Talk", arguments: str) -> None:
    del arguments
    started = talk.started
    if started is None:
        return
    meter = started.agent.meter
    rows = [("total", f"${meter.spent / _MICRO:.4f}")]
    for model, used in meter.models.items():
        cached = used["cache_read_input_tokens"]
        taken = used["input_tokens"] + used["cache_creation_input_tokens"] + cached
        said = f"{words.tokens(taken)} in, {words.tokens(cached)} of it cached, "
        said += f"{words.tokens(used['output_tokens'])} out, ${used['cost'] / _MICRO:.4f}"
        rows.append((words.model_name(model), said))
    if len(rows) == 1:
        rows.append(("", "nothing was asked yet"))
    _table(talk, rows)


async def _context(talk: "Talk", arguments: str) -> None:
    del arguments
    started = talk.started
    if started is None:
        return
    from steno.agent.accounts import context_of

    _, usage = context_of(started.agent, started.compactor.window(started.agent))
    window, columns = int(usage["raw_max_tokens"]), talk.screen.width
    lines: list[Line] = [
        [
            (
                f"  about {words.tokens(usage['total_tokens'])} of {words.tokens(window)} tokens",
                "bold",
            ),
            (f"  {usage['percentage']}%", "dim"),
        ]
    ]
    parts = [(str(each["name"]), int(each["tokens"])) for each in usage["categories"]]
    parts.append(("Free", max(window - int(usage["total_tokens"]), 0)))
    bar = min(_BAR, max(columns - 36, 0))
    for name, size in sorted(parts, key=lambda part: (part[0] == "Free", -part[1])):
        full = max(round(size * bar / window), 1) if window and size and bar else 0
        style = "dim" if name == "Free" else "blue"
        share = f"{100 * size / window:5.1f}%"
        row: Line = ["  ", pad(name, 17), f"{words.tokens(size):>8} ", (share, "dim"), "  "]
        lines.append([*row, ("█" * full, style)])
    talk.stream.block(lines, "context")
    talk.stream.note("estimated; /compact makes room, /clear begins anew", "dim")


async def _todos(talk: "Talk", arguments: str) -> None:
    del arguments
    lines = talk.stream.todo_lines(talk.screen.width)
    talk.stream.block(lines or [[("  nothing is left to do", "dim")]], "todos")


async def _tasks(talk: "Talk", arguments: str) -> None:
    started = talk.started
    if started is None:
        return
    tasks = started.agent.caller.context.background.tasks
    word, _, name = arguments.partition(" ")
    if word == "stop" and name.strip() in tasks:
        await tasks[name.strip()].stop()
    lines: list[Line] = []
    for task in tasks.values():
        style = {"running": "green", "failed": "red"}.get(task.status, "dim")
        about = one_line(task.description or task.command, max(talk.screen.width - 34, 10))
        lines.append(
            ["  ", (pad(task.id, 12), "bold"), " ", (pad(task.status, 10), style), " ", about]
        )
    told = lines or [[("  nothing runs in the background", "dim")]]
    hint: list[Line] = [[("  /tasks stop ID ends one", "dim")]] if lines else []
    talk.stream.block([*told, *hint], "tasks")


async def _bug(talk: "Talk", arguments: str) -> None:
    """Tell what a report needs, without a word of what was said."""
    del arguments
    import platform

    from steno._version import __version__

    state = talk.face.state()
    rows = [
        ("steno", __version__),
        ("python", sys.version.split()[0]),
        ("system", f"{platform.system()} {platform.release()} {platform.machine()}"),
        (
            "terminal",
            f"{talk.screen.width} x {talk.screen.rows}, colour {talk.screen.paint.colour}",
        ),
        ("model", state.model),
        ("mode", state.mode),
        ("turns", str(talk.turns)),
    ]
    _table(talk, rows)
    talk.stream.note(
        "copy this beside what happened; nothing of the session is in it, and nothing was sent",
        "dim",
    )


COMMANDS: Final = (
    Command(name="help", help="what can be typed here", run=_help, anytime=True),
    Command(name="keys", help="the keys", run=_keys, anytime=True),
    Command(name="status", help="this session, its folder, model, mode", run=_status, anytime=True),
    Command(
        name="cost", help="what was spent, by model", run=_cost, aliases=("usage",), anytime=True
    ),
    Command(name="context", help="where the tokens went", run=_context, anytime=True),
    Command(name="todos", help="the list of things to do", run=_todos, anytime=True),
    Command(
        name="tasks",
        help="what runs in the background",
        takes="[stop ID]",
        run=_tasks,
        aliases=("bashes",),
        anytime=True,
    ),
    Command(name="bug", help="what to put into a report", run=_bug, anytime=True),
)
