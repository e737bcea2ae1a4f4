"""Commands about the conversation: clear, compact, model, mode, theme, exit."""

import asyncio
import os
from typing import TYPE_CHECKING, Final

import msgspec

from steno.console.chat_status import MODE_DESCRIPTIONS
from steno.console.commands import ConsoleCommand, with_session
from steno.console.dialog import Choice, Dialog
from steno.errors import BadRequest, StenoError
from steno.report import humanize
from steno.report.humanize import SHORT_ID_LENGTH

if TYPE_CHECKING:
    from steno.agent.agent_session import AgentSession
    from steno.console.chat import Chat


_MODEL_CHOICES: Final = (("o", "opus"), ("s", "sonnet"), ("h", "haiku"))


async def _clear(chat: "Chat", _arguments: str) -> None:
    from steno.agent.writable_session import new_session

    session = chat.session
    if session is None:
        return
    previous_id = session.agent.conversation.recorder.session_id
    options = chat.agent_setup.options
    await chat.enter_session(new_session(options.config, options.cwd), "clear")
    if chat.session is not None:
        await chat.session.slash_dispatcher.record_clear()
    chat.renderer.print_note(f"a new session; /resume {previous_id[:SHORT_ID_LENGTH]} goes back", "dim")


@with_session
async def _compact(chat: "Chat", session: "AgentSession", arguments: str) -> None:
    chat.renderer.begin_turn()
    await session.submit(f"/compact {arguments}".strip())


@with_session
async def _model(chat: "Chat", session: "AgentSession", arguments: str) -> None:
    from steno.agent.config.models import resolve_model

    current_model = session.agent.request_config.model
    requested = arguments.strip()
    if not requested:
        choices = [Choice(key, name, name, resolve_model(name)) for key, name in _MODEL_CHOICES]
        dialog = Dialog(
            f"Model, now {humanize.model_name(current_model)}", (), choices, text_hint="another one by its name"
        )
        reply = await chat.prompt.ask(dialog)
        if reply is None:
            return
        requested = (reply.text if reply.value == "words" else reply.value).strip()
    name = resolve_model(requested)
    if not name:
        raise BadRequest("there is no model without a name", hint="such as /model sonnet")
    agent = session.agent
    agent.request_config = msgspec.structs.replace(agent.request_config, model=name)
    chat.agent_setup.options.model = requested
    chat.renderer.print_note(f"{name} from now on{await _save_preference('model', requested)}", "dim")


@with_session
async def _mode(chat: "Chat", session: "AgentSession", arguments: str) -> None:
    requested = arguments.strip()
    allowed = [mode for mode in MODE_DESCRIPTIONS if mode != "bypassPermissions" or _may_bypass(chat)]
    if not requested:
        keys = {"default": "d", "acceptEdits": "e", "plan": "p", "dontAsk": "n", "bypassPermissions": "b"}
        choices = [Choice(keys[mode], mode, mode, MODE_DESCRIPTIONS[mode]) for mode in allowed]
        reply = await chat.prompt.ask(Dialog(f"Mode, now {session.permission_mode()}", (), choices))
        if reply is None:
            return
        requested = reply.value
    if requested not in allowed:
        raise BadRequest(f"there is no mode {requested!r} here", hint=f"one of {', '.join(allowed)}")
    chat.set_mode(requested)
    chat.renderer.print_note(f"{requested}: {MODE_DESCRIPTIONS[requested]}", "dim")


def _may_bypass(chat: "Chat") -> bool:
    """Whether nothing has to be asked about: only where the program was started so."""
    return chat.agent_setup.options.mode == "bypassPermissions"


async def _save_preference(key: str, value: str) -> str:
    """Keep a choice for the next time; return a word on it where that cannot be done."""
    from steno.store.config import set_config

    try:
        await asyncio.to_thread(set_config, "console", key, value)
    except StenoError as error:
        return f"; until you leave, for {error}"
    return ""


async def _vim(chat: "Chat", _arguments: str) -> None:
    from prompt_toolkit.enums import EditingMode

    app = chat.prompt.app
    use_vi = app.editing_mode != EditingMode.VI
    app.editing_mode = EditingMode.VI if use_vi else EditingMode.EMACS
    keys = "vi" if use_vi else "emacs"
    chat.renderer.print_note(f"{keys} keys{await _save_preference('keys', keys)}", "dim")


async def _theme(chat: "Chat", arguments: str) -> None:
    """Choose how it looks; which colours there are is the terminal's own affair."""
    screen = chat.screen
    themes = {"colour": "the colours of your terminal", "plain": "no colours", "reader": "plain lines, nothing moves"}
    requested = arguments.strip()
    if not requested:
        choices = [Choice(name[0], name, name, description) for name, description in themes.items()]
        reply = await chat.prompt.ask(Dialog("Look", (), choices))
        if reply is None:
            return
        requested = reply.value
    if requested not in themes:
        raise BadRequest(f"there is no look {requested!r}", hint=f"one of {', '.join(themes)}")
    screen.paint.colour = requested == "colour"
    screen.is_screen_reader = requested == "reader"
    chat.renderer.print_note(f"{requested}: {themes[requested]}{await _save_preference('theme', requested)}", "dim")


async def _paste(chat: "Chat", _arguments: str) -> None:
    from steno.console.external_programs import save_clipboard_image

    path = await save_clipboard_image(os.environ)
    chat.prompt.buffer.insert_text(chat.prompt.pastes.add_image(path))
    chat.screen.refresh()


async def _exit(chat: "Chat", _arguments: str) -> None:
    chat.exit()


COMMANDS: Final = (
    ConsoleCommand(name="clear", help="begin a new session", run=_clear, aliases=("new", "reset")),
    ConsoleCommand(
        name="compact", help="a summary in place of the conversation", arguments="[what matters]", run=_compact
    ),
    ConsoleCommand(name="model", help="ask another model", arguments="[NAME]", run=_model),
    ConsoleCommand(name="mode", help="what is allowed without asking", arguments="[MODE]", run=_mode),
    ConsoleCommand(name="paste", help="the clipboard's picture into the prompt", run=_paste, runs_anytime=True),
    ConsoleCommand(name="vim", help="vi keys, or emacs keys again", run=_vim, runs_anytime=True),
    ConsoleCommand(name="theme", help="colours, none, or for a screen reader", arguments="[LOOK]", run=_theme),
    ConsoleCommand(name="exit", help="leave", run=_exit, aliases=("quit",), runs_anytime=True),
)
