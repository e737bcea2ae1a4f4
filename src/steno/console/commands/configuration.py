"""Commands about the configuration of a session: agents, servers, hooks, rules, memory, checks."""

from typing import TYPE_CHECKING, Final

from steno.console.commands import ConsoleCommand, description_rows, with_session
from steno.console.dialog import Choice, Dialog
from steno.console.external_programs import editor_command, open_explorer, run_program, steno_command
from steno.report import humanize
from steno.sanitize.terminal import StyledLine, one_line, pad

if TYPE_CHECKING:
    from steno.agent.agent_session import AgentSession
    from steno.agent.config.settings import LayeredRule
    from steno.console.chat import Chat


_INIT_PROMPT: Final = """\
Look at this project and write a CLAUDE.md for it: what a newcomer must know to work here and cannot \
see at a glance. Commands to build, test and lint, one test alone among them; how the parts hang \
together; rules that people keep. Read README, the configuration of tools and what is there of \
CLAUDE.md, AGENTS.md or rules of other tools first. Keep it short; leave out what anybody would do \
anyway. If there is a CLAUDE.md, propose what to make better in it."""


@with_session
async def _agents(chat: "Chat", session: "AgentSession", _arguments: str) -> None:
    types = [(agent_type.name, agent_type.description) for agent_type in session.agent_tool.types]
    lines = description_rows(types, chat.screen.width - 1)
    hint: StyledLine = [("  one file each in .claude/agents or in agents of your config folder", "dim")]
    chat.renderer.print_block([*lines, hint], "agents")


@with_session
async def _mcp(chat: "Chat", session: "AgentSession", _arguments: str) -> None:
    lines: list[StyledLine] = []
    for server in session.mcp_connections.states():
        style = {"connected": "green", "failed": "red"}.get(server.status, "dim")
        tool_text = humanize.count(len(server.tools), "tool") if server.tools else server.error
        width = max(chat.screen.width - 36, 10)
        lines.append(
            [
                "  ",
                (pad(one_line(server.name), 18), "bold"),
                " ",
                (pad(server.status, 12), style),
                " ",
                one_line(tool_text, width),
            ]
        )
    chat.renderer.print_block(lines or [[("  no servers; .mcp.json or --mcp-config names some", "dim")]], "mcp")


@with_session
async def _hooks(chat: "Chat", session: "AgentSession", _arguments: str) -> None:
    lines: list[StyledLine] = [
        [
            "  ",
            (pad(hook.event, 18), "bold"),
            " ",
            (pad(one_line(hook.matcher or "*", 16), 16), "dim"),
            " ",
            one_line(hook.command, max(chat.screen.width - 52, 10)),
            (f"  {hook.layer}", "dim"),
        ]
        for hook in session.settings.hooks
    ]
    chat.renderer.print_block(lines or [[("  no hooks", "dim")]], "hooks")


@with_session
async def _permissions(chat: "Chat", session: "AgentSession", _arguments: str) -> None:
    rules = session.settings.permissions
    lines: list[StyledLine] = []
    groups: tuple[tuple[str, tuple[LayeredRule, ...]], ...] = (
        ("never", rules.deny),
        ("asks", rules.ask),
        ("allowed", rules.allow),
        ("folders", rules.directories),
    )
    for name, group in groups:
        lines += [
            [
                "  ",
                (pad("" if index else name, 9), "bold"),
                one_line(rule.text, max(chat.screen.width - 24, 10)),
                (f"  {rule.layer}", "dim"),
            ]
            for index, rule in enumerate(group)
        ]
    granted_note = ("  since this session began", "dim")
    lines += [["  ", (pad("granted", 9), "bold"), rule, granted_note] for rule in session.granted_rules.rules]
    mode: StyledLine = [("  mode ", "dim"), session.permission_mode(), ("; /mode changes it", "dim")]
    chat.renderer.print_block([*(lines or [[("  no rules", "dim")]]), mode], "permissions")


@with_session
async def _memory(chat: "Chat", session: "AgentSession", _arguments: str) -> None:
    """Show what the model always knows, and open one of the files in the editor."""
    files = session.memory.files
    if not files:
        chat.renderer.print_note("nothing; /init writes a CLAUDE.md, #words adds to one", "dim")
        return
    choices = [
        Choice(str(index), file.path, file.path, f"{file.kind}, {humanize.count(file.text.count(chr(10)) + 1, 'line')}")
        for index, file in enumerate(files[:9], 1)
    ]
    reply = await chat.prompt.ask(Dialog("What the model always knows; enter opens one", (), choices))
    if reply is not None:
        await run_program(chat, [*editor_command(), reply.value])
        chat.renderer.print_note("what was changed counts from the next session on", "dim")


async def _init(chat: "Chat", arguments: str) -> None:
    await chat.run_prompt(f"{_INIT_PROMPT}\n\n{arguments}".strip())


async def _doctor(chat: "Chat", _arguments: str) -> None:
    """Look after this session and the config folder, as the commands of that name do."""
    chat.screen.print([[]])
    path = chat.session_path()
    if path:
        await run_program(chat, steno_command("check", path))
    await run_program(chat, steno_command("doctor"))


async def _explorer(chat: "Chat", _arguments: str) -> None:
    """Open the explorer on this session; it follows it."""
    await open_explorer(chat)


COMMANDS: Final = (
    ConsoleCommand(name="agents", help="kinds of sub-agents", run=_agents, runs_anytime=True),
    ConsoleCommand(name="mcp", help="servers and their tools", run=_mcp, runs_anytime=True),
    ConsoleCommand(name="hooks", help="hooks that run", run=_hooks, runs_anytime=True),
    ConsoleCommand(name="permissions", help="rules, and where each is written", run=_permissions, runs_anytime=True),
    ConsoleCommand(name="memory", help="what the model always knows", run=_memory),
    ConsoleCommand(name="init", help="have a CLAUDE.md written", run=_init),
    ConsoleCommand(name="doctor", help="check this session and the config folder", run=_doctor),
    ConsoleCommand(name="explorer", help="this session in a browser (f2)", run=_explorer, runs_anytime=True),
)
