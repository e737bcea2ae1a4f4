"""Commands about the configuration: sub-agents, MCP servers, hooks, rules, memory, checks."""

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
Analyze this project and write a CLAUDE.md for it: what a new contributor must know to work here and \
cannot see at a glance. Include the commands to build, test and lint, how to run a single test, the \
high-level architecture, and project conventions. Read the README, tool configuration and any existing \
CLAUDE.md, AGENTS.md or rules for other tools first. Keep it short; leave out generic development \
practices. If a CLAUDE.md exists, suggest improvements to it."""


@with_session
async def _agents(chat: "Chat", session: "AgentSession", _arguments: str) -> None:
    types = [(agent_type.name, agent_type.description) for agent_type in session.agent_tool.types]
    lines = description_rows(types, chat.screen.width - 1)
    hint: StyledLine = [("  Defined in .claude/agents and in agents/ of your config directory", "dim")]
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
    chat.renderer.print_block(
        lines or [[("  No MCP servers. Add them in .mcp.json or with --mcp-config.", "dim")]], "mcp"
    )


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
    chat.renderer.print_block(lines or [[("  No hooks", "dim")]], "hooks")


@with_session
async def _permissions(chat: "Chat", session: "AgentSession", _arguments: str) -> None:
    rules = session.settings.permissions
    lines: list[StyledLine] = []
    groups: tuple[tuple[str, tuple[LayeredRule, ...]], ...] = (
        ("deny", rules.deny),
        ("ask", rules.ask),
        ("allow", rules.allow),
        ("dirs", rules.directories),
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
    granted_note = ("  this session", "dim")
    lines += [["  ", (pad("granted", 9), "bold"), rule, granted_note] for rule in session.granted_rules.rules]
    mode: StyledLine = [("  mode ", "dim"), session.permission_mode(), (" · /mode to change", "dim")]
    chat.renderer.print_block([*(lines or [[("  No rules", "dim")]]), mode], "permissions")


@with_session
async def _memory(chat: "Chat", session: "AgentSession", _arguments: str) -> None:
    """Show the loaded memory files and open one in the editor."""
    files = session.memory.files
    if not files:
        chat.renderer.print_note("No memory files. Use /init to write a CLAUDE.md, or # to add a line.", "dim")
        return
    choices = [
        Choice(str(index), file.path, file.path, f"{file.kind}, {humanize.count(file.text.count(chr(10)) + 1, 'line')}")
        for index, file in enumerate(files[:9], 1)
    ]
    reply = await chat.prompt.ask(Dialog("Memory files", (), choices))
    if reply is not None:
        await run_program(chat, [*editor_command(), reply.value])
        chat.renderer.print_note("Changes take effect in the next session", "dim")


async def _init(chat: "Chat", arguments: str) -> None:
    await chat.run_prompt(f"{_INIT_PROMPT}\n\n{arguments}".strip())


async def _doctor(chat: "Chat", _arguments: str) -> None:
    """Run `steno check` on this session and `steno doctor` on the config directory."""
    chat.screen.print([[]])
    path = chat.session_path()
    if path:
        await run_program(chat, steno_command("check", path))
    await run_program(chat, steno_command("doctor"))


async def _explorer(chat: "Chat", _arguments: str) -> None:
    """Open this session in the explorer, which follows it live."""
    await open_explorer(chat)


COMMANDS: Final = (
    ConsoleCommand(name="agents", help="List sub-agent types", run=_agents, runs_anytime=True),
    ConsoleCommand(name="mcp", help="List MCP servers", run=_mcp, runs_anytime=True),
    ConsoleCommand(name="hooks", help="List hooks", run=_hooks, runs_anytime=True),
    ConsoleCommand(
        name="permissions", help="List permission rules and their sources", run=_permissions, runs_anytime=True
    ),
    ConsoleCommand(name="memory", help="Show and edit memory files", run=_memory),
    ConsoleCommand(name="init", help="Write a CLAUDE.md for this project", run=_init),
    ConsoleCommand(name="doctor", help="Check this session and the config directory", run=_doctor),
    ConsoleCommand(name="explorer", help="Open this session in a browser (f2)", run=_explorer, runs_anytime=True),
)
