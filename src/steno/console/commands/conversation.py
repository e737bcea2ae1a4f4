"""Commands about the conversation: clear, compact, model, mode, theme, exit."""

import asyncio
import os
from typing import TYPE_CHECKING, Final

import msgspec

from steno.console.chat_status import MODE_DESCRIPTIONS
from steno.console.commands import ConsoleCommand, with_session
from steno.console.dialog import Choice, Dialog
from steno.errors import BadRequest, StenoError
from steno.format.paths import SHORT_ID_LENGTH
from steno.report import humanize

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
    chat.renderer.print_note(
        f"New session. /resume {previous_id[:SHORT_ID_LENGTH]} returns to the previous one.", "dim"
    )


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
            f"Model (now {humanize.model_name(current_model)})", (), choices, text_hint="enter another name"
        )
        reply = await chat.prompt.ask(dialog)
        if reply is None:
            return
        requested = (reply.text if reply.value == "words" else reply.value).strip()
    name = resolve_model(requested)
    if not name:
        raise BadRequest("model name is empty", hint="Example: /model sonnet")
    agent = session.agent
    agent.request_config = msgspec.structs.replace(agent.request_config, model=name)
    chat.agent_setup.options.model = requested
    chat.renderer.print_note(f"Model: {name}{await _save_preference('model', requested)}", "dim")


@with_session
async def _mode(chat: "Chat", session: "AgentSession", arguments: str) -> None:
    requested = arguments.strip()
    allowed = [mode for mode in MODE_DESCRIPTIONS if mode != "bypassPermissions" or _may_bypass(chat)]
    if not requested:
        keys = {"default": "d", "acceptEdits": "e", "plan": "p", "dontAsk": "n", "bypassPermissions": "b"}
        choices = [Choice(keys[mode], mode, mode, MODE_DESCRIPTIONS[mode]) for mode in allowed]
        reply = await chat.prompt.ask(Dialog(f"Permission mode (now {session.permission_mode()})", (), choices))
        if reply is None:
            return
        requested = reply.value
    if requested not in allowed:
        raise BadRequest(f"unknown mode {requested!r}", hint=f"Modes: {', '.join(allowed)}")
    chat.set_mode(requested)
    chat.renderer.print_note(f"Mode: {requested} ({MODE_DESCRIPTIONS[requested]})", "dim")


def _may_bypass(chat: "Chat") -> bool:
    """Return whether steno was started in bypassPermissions mode."""
    return chat.agent_setup.options.mode == "bypassPermissions"


async def _save_preference(key: str, value: str) -> str:
    """Save a preference; return a note if that fails."""
    from steno.store.config import set_config

    try:
        await asyncio.to_thread(set_config, "console", key, value)
    except StenoError as error:
        return f" (not saved: {error})"
    return ""


async def _vim(chat: "Chat", _arguments: str) -> None:
    from prompt_toolkit.enums import EditingMode

    app = chat.prompt.app
    use_vi = app.editing_mode != EditingMode.VI
    app.editing_mode = EditingMode.VI if use_vi else EditingMode.EMACS
    keys = "vi" if use_vi else "emacs"
    chat.renderer.print_note(f"Keys: {keys}{await _save_preference('keys', keys)}", "dim")


async def _theme(chat: "Chat", arguments: str) -> None:
    """Choose colours, no colours, or the screen reader mode."""
    screen = chat.screen
    themes = {
        "colour": "colours of your terminal",
        "plain": "no colours",
        "reader": "for screen readers: plain lines, no animation",
    }
    requested = arguments.strip()
    if not requested:
        choices = [Choice(name[0], name, name, description) for name, description in themes.items()]
        reply = await chat.prompt.ask(Dialog("Theme", (), choices))
        if reply is None:
            return
        requested = reply.value
    if requested not in themes:
        raise BadRequest(f"unknown theme {requested!r}", hint=f"Themes: {', '.join(themes)}")
    screen.paint.colour = requested == "colour"
    screen.is_screen_reader = requested == "reader"
    chat.renderer.print_note(f"Theme: {requested}{await _save_preference('theme', requested)}", "dim")


async def _paste(chat: "Chat", _arguments: str) -> None:
    from steno.console.external_programs import save_clipboard_image

    path = await save_clipboard_image(os.environ)
    chat.prompt.buffer.insert_text(chat.prompt.pastes.add_image(path))
    chat.screen.refresh()


async def _exit(chat: "Chat", _arguments: str) -> None:
    chat.exit()


COMMANDS: Final = (
    ConsoleCommand(name="clear", help="Start a new session", run=_clear, aliases=("new", "reset")),
    ConsoleCommand(
        name="compact", help="Replace the conversation with a summary", arguments="[INSTRUCTIONS]", run=_compact
    ),
    ConsoleCommand(name="model", help="Switch the model", arguments="[NAME]", run=_model),
    ConsoleCommand(name="mode", help="Switch the permission mode", arguments="[MODE]", run=_mode),
    ConsoleCommand(name="paste", help="Paste the image in the clipboard", run=_paste, runs_anytime=True),
    ConsoleCommand(name="vim", help="Switch between vi and Emacs keys", run=_vim, runs_anytime=True),
    ConsoleCommand(
        name="theme", help="Switch the theme: colours, plain, screen reader", arguments="[THEME]", run=_theme
    ),
    ConsoleCommand(name="exit", help="Exit", run=_exit, aliases=("quit",), runs_anytime=True),
)
