"""Commands about what surrounds a session: agents, servers, hooks, rules, memory, health."""

from typing import TYPE_CHECKING, Final

from steno.console.commands import Command, rows_of
from steno.console.dialog import Choice, Dialog
from steno.console.programs import editor, open_explorer, own, run_program
from steno.report import words
from steno.safe.terminal import Line, one_line, pad

if TYPE_CHECKING:
    from steno.agent.settings import Rule
    from steno.console.talk import Talk

__all__ = ["COMMANDS"]

_INIT: Final = """\
Look at this project and write a CLAUDE.md for it: what a newcomer must know to work here and cannot \
see at a glance. Commands to build, test and lint, one test alone among them; how the parts hang \
together; rules that people keep. Read README, the configuration of tools and what is there of \
CLAUDE.md, AGENTS.md or rules of other tools first. Keep it short; leave out what anybody would do \
anyway. If there is a CLAUDE.md, propose what to make better in it."""


async def _agents(talk: "Talk", arguments: str) -> None:
    del arguments
    if talk.started is None:
        return
    known = [(kind.name, kind.description) for kind in talk.started.agents.known]
    lines = rows_of(known, talk.screen.width - 1)
    where: Line = [("  one file each in .claude/agents or in agents of your config folder", "dim")]
    talk.stream.block([*lines, where], "agents")


async def _mcp(talk: "Talk", arguments: str) -> None:
    del arguments
    if talk.started is None:
        return
    lines: list[Line] = []
    for each in talk.started.servers.states():
        style = {"connected": "green", "failed": "red"}.get(each.status, "dim")
        tools = words.count(len(each.tools), "tool") if each.tools else each.error
        room = max(talk.screen.width - 36, 10)
        lines.append(
            [
                "  ",
                (pad(one_line(each.name), 18), "bold"),
                " ",
                (pad(each.status, 12), style),
                " ",
                one_line(tools, room),
            ]
        )
    talk.stream.block(
        lines or [[("  no servers; .mcp.json or --mcp-config names some", "dim")]], "mcp"
    )


async def _hooks(talk: "Talk", arguments: str) -> None:
    del arguments
    if talk.started is None:
        return
    lines: list[Line] = [
        [
            "  ",
            (pad(hook.event, 18), "bold"),
            " ",
            (pad(one_line(hook.matcher or "*", 16), 16), "dim"),
            " ",
            one_line(hook.command, max(talk.screen.width - 52, 10)),
            (f"  {hook.layer}", "dim"),
        ]
        for hook in talk.started.settings.hooks
    ]
    talk.stream.block(lines or [[("  no hooks", "dim")]], "hooks")


async def _permissions(talk: "Talk", arguments: str) -> None:
    del arguments
    started = talk.started
    if started is None:
        return
    rules = started.settings.permissions
    lines: list[Line] = []
    groups: tuple[tuple[str, tuple[Rule, ...]], ...] = (
        ("never", rules.deny),
        ("asks", rules.ask),
        ("allowed", rules.allow),
        ("folders", rules.directories),
    )
    for name, group in groups:
        lines += [
            [
                "  ",
                (pad("" if at else name, 9), "bold"),
                one_line(rule.text, max(talk.screen.width - 24, 10)),
                (f"  {rule.layer}", "dim"),
            ]
            for at, rule in enumerate(group)
        ]
    since = ("  since this session began", "dim")
    lines += [["  ", (pad("granted", 9), "bold"), rule, since] for rule in started.granted.rules]
    mode: Line = [("  mode ", "dim"), started.mode(), ("; /mode changes it", "dim")]
    talk.stream.block([*(lines or [[("  no rules", "dim")]]), mode], "permissions")


async def _memory(talk: "Talk", arguments: str) -> None:
    """Show what the model always knows, and open one of the files in the editor."""
    del arguments
    started = talk.started
    if started is None:
        return
    parts = started.memory.parts
    if not parts:
        talk.stream.note("nothing; /init writes a CLAUDE.md, #words adds to one", "dim")
        return
    choices = [
        Choice(
            str(at),
            part.path,
            part.path,
            f"{part.kind}, {words.count(part.text.count(chr(10)) + 1, 'line')}",
        )
        for at, part in enumerate(parts[:9], 1)
    ]
    reply = await talk.prompt.ask(
        Dialog("What the model always knows; enter opens one", (), choices)
    )
    if reply is not None:
        await run_program(talk, [*editor(), reply.value])
        talk.stream.note("what was changed counts from the next session on", "dim")


async def _init(talk: "Talk", arguments: str) -> None:
    await talk.say(f"{_INIT}\n\n{arguments}".strip())


async def _doctor(talk: "Talk", arguments: str) -> None:
    """Look after this session and the config folder, as the commands of that name do."""
    del arguments
    talk.screen.print([[]])
    path = talk.written()
    if path:
        await run_program(talk, own("check", path))
    await run_program(talk, own("doctor"))


async def _explorer(talk: "Talk", arguments: str) -> None:
    """Open the explorer on this session; it follows it."""
    del arguments
    await open_explorer(talk)


COMMANDS: Final = (
    Command(name="agents", help="kinds of sub-agents", run=_agents, anytime=True),
    Command(name="mcp", help="servers and their tools", run=_mcp, anytime=True),
    Command(name="hooks", help="hooks that run", run=_hooks, anytime=True),
    Command(
        name="permissions", help="rules, and where each is written", run=_permissions, anytime=True
    ),
    Command(name="memory", help="what the model always knows", run=_memory),
    Command(name="init", help="have a CLAUDE.md written", run=_init),
    Command(name="doctor", help="check this session and the config folder", run=_doctor),
    Command(name="explorer", help="this session in a browser (f2)", run=_explorer, anytime=True),
)
