"""Key bindings of the prompt. Editing keys come from prompt_toolkit, in Emacs or vi style."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from prompt_toolkit.buffer import CompletionState
from prompt_toolkit.filters import Condition, has_focus, vi_insert_mode, vi_mode
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

if TYPE_CHECKING:
    from steno.console.dialog import Dialog
    from steno.console.prompt import Prompt


KEY_HELP: Final = (
    ("enter", "send the prompt, or queue it during a turn"),
    ("ctrl-j, alt-enter, \\ enter", "insert a new line"),
    ("esc", "interrupt; esc esc: rewind to an earlier prompt"),
    ("up", "previous prompt; during a turn: edit the last queued prompt"),
    ("ctrl-r", "search the prompts of all sessions"),
    ("tab", "complete /commands and @files"),
    ("shift-tab", "switch mode: default, accept edits, plan"),
    ("ctrl-o", "show the transcript with all tool results"),
    ("ctrl-g", "edit the prompt in your editor"),
    ("ctrl-x p", "expand a paste"),
    ("ctrl-v", "paste the image in the clipboard"),
    ("f2", "open the explorer on this session"),
    ("ctrl-c, ctrl-d", "clear the prompt; twice when empty: exit"),
)
_ANSWER_KEYS: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789?")
_PAGE_ROWS: Final = 8
_ACTION_KEYS: Final = (("s-tab", "mode"), ("c-o", "transcript"), ("f2", "explorer"))


def build_key_bindings(prompt: "Prompt") -> KeyBindings:
    """Return the key bindings of the prompt."""
    key_bindings = KeyBindings()
    for group in (_EditingKeys(prompt), _ActionKeys(prompt), _DialogKeys(prompt)):
        for keys, condition, handler in group.bindings():
            key_bindings.add(*keys, filter=condition, eager=keys == ("escape",) and group.is_eager)(handler)
    return key_bindings


_Binding = tuple[tuple[str, ...], Any, Callable[[KeyPressEvent], None]]


class _KeyGroup:
    is_eager = False
    """Whether Esc acts at once, without waiting for a second key."""

    def __init__(self, prompt: "Prompt") -> None:
        self.prompt = prompt
        self.no_dialog = Condition(lambda: prompt.dialog is None)
        self.is_busy = Condition(prompt.actions.is_busy)
        self.is_empty = Condition(lambda: not prompt.buffer.text)

    def bindings(self) -> list[_Binding]:
        raise NotImplementedError


class _EditingKeys(_KeyGroup):
    def bindings(self) -> list[_Binding]:
        prompt = self.prompt
        has_prompt_focus = has_focus(prompt.buffer)
        typing = has_prompt_focus & Condition(lambda: prompt.dialog is None or not prompt.dialog_has_keys)
        return [
            (("enter",), typing, self.enter),
            (("escape", "enter"), typing, self.new_line),
            (("c-j",), typing, self.new_line),
            ((Keys.BracketedPaste,), typing, self.paste),
            (("c-x", "p"), typing, self.expand),
            (("c-g",), typing, self.edit),
            (("c-x", "c-e"), typing, self.edit),
            (("tab",), typing & self.no_dialog, self.complete),
            (("up",), typing & self.is_empty & self.is_busy, self.take_back),
        ]

    def enter(self, _event: KeyPressEvent) -> None:
        buffer = self.prompt.buffer
        chosen = buffer.complete_state.current_completion if buffer.complete_state else None
        if chosen is not None and chosen.text.startswith("@"):
            # Enter accepts the completion of a file name; the rest of the prompt is still to be typed.
            buffer.complete_state = None
            buffer.insert_text(" ")
        elif buffer.document.text_before_cursor.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        else:
            self.prompt.send()

    def new_line(self, _event: KeyPressEvent) -> None:
        self.prompt.buffer.insert_text("\n")

    def paste(self, event: KeyPressEvent) -> None:
        self.prompt.buffer.insert_text(self.prompt.pastes.add(event.data, os.getcwd()))

    def expand(self, _event: KeyPressEvent) -> None:
        self.prompt.set_text(self.prompt.full_text())

    def edit(self, _event: KeyPressEvent) -> None:
        self.prompt.set_text(self.prompt.full_text())
        self.prompt.buffer.open_in_editor()

    def complete(self, _event: KeyPressEvent) -> None:
        buffer = self.prompt.buffer
        state = buffer.complete_state
        if state is not None and state.complete_index is not None:
            buffer.complete_next()
            return
        # The menu may lag behind the typed text, and the next key may already be in the buffer.
        completions = self.prompt.complete_now(buffer.document)
        if completions is None:
            buffer.start_completion(select_first=True)
        elif len(completions) == 1:
            buffer.apply_completion(completions[0])
        elif completions:
            buffer.complete_state = CompletionState(buffer.document, completions)
            buffer.go_to_completion(0)

    def take_back(self, event: KeyPressEvent) -> None:
        text = self.prompt.actions.unqueue()
        if text:
            self.prompt.set_text(text)
        else:
            event.current_buffer.auto_up()


class _ActionKeys(_KeyGroup):
    def bindings(self) -> list[_Binding]:
        no_dialog, is_busy, is_empty = self.no_dialog, self.is_busy, self.is_empty
        leaves_insert_mode = vi_mode & vi_insert_mode & ~is_empty
        has_prompt_focus = has_focus(self.prompt.buffer)
        always = Condition(lambda: True)
        return [
            (("escape",), no_dialog & is_busy & ~leaves_insert_mode, self.interrupt),
            (("escape", "escape"), no_dialog & ~is_busy, self.go_back),
            *(((key,), no_dialog, self.action(action_name)) for key, action_name in _ACTION_KEYS),
            (("c-v",), no_dialog & has_prompt_focus & (~vi_mode | vi_insert_mode), self.action("paste")),
            (("?",), no_dialog & is_empty & has_prompt_focus, self.action("keys")),
            (("c-d",), no_dialog & is_empty, self.action("leave")),
            (("c-c",), always, self.cancel),
            (("c-l",), always, self.redraw),
            (("c-z",), always, lambda event: event.app.suspend_to_background()),
        ]

    def action(self, action_name: str) -> Callable[[KeyPressEvent], None]:
        return lambda _event: self.prompt.actions.perform(action_name)

    def interrupt(self, _event: KeyPressEvent) -> None:
        self.prompt.actions.interrupt()

    def go_back(self, _event: KeyPressEvent) -> None:
        if self.prompt.buffer.text:
            self.prompt.buffer.reset()
        else:
            self.prompt.actions.perform("rewind")

    def cancel(self, _event: KeyPressEvent) -> None:
        prompt = self.prompt
        if prompt.dialog is not None:
            prompt.dialog.reply(None)
            prompt.close_answered_dialog()
        elif prompt.buffer.text:
            prompt.buffer.reset()
            prompt.pastes.clear()
        elif prompt.actions.is_busy():
            prompt.actions.interrupt()
        else:
            prompt.actions.perform("leave")

    def redraw(self, event: KeyPressEvent) -> None:
        # Redraw only the region; the printed lines stay on the screen.
        event.app.renderer.erase(leave_alternate_screen=False)


class _DialogKeys(_KeyGroup):
    is_eager = True

    def bindings(self) -> list[_Binding]:
        prompt = self.prompt
        has_dialog = Condition(lambda: prompt.dialog is not None)
        accepts_keys = has_dialog & Condition(lambda: prompt.dialog_has_keys)
        is_typing = accepts_keys & Condition(lambda: prompt.dialog is not None and prompt.dialog.is_typing)
        is_choosing = accepts_keys & ~is_typing
        takes_letters = is_choosing & Condition(lambda: prompt.dialog is not None and not prompt.dialog.is_search)
        return [
            (("tab",), has_dialog, self.switch_focus),
            (("enter",), is_choosing, self.confirm),
            (("enter",), is_typing, self.reply_text),
            (("up",), is_choosing, self.move(-1)),
            (("down",), is_choosing, self.move(1)),
            (("pageup",), is_choosing, self.move(-_PAGE_ROWS)),
            (("pagedown",), is_choosing, self.move(_PAGE_ROWS)),
            (("escape",), accepts_keys, self.cancel),
            ((" ",), takes_letters, self.toggle),
            ((Keys.Any,), takes_letters, self.press_key),
        ]

    @property
    def dialog(self) -> "Dialog":
        """The open dialog; these bindings are only active while there is one."""
        if self.prompt.dialog is None:
            raise LookupError("no dialog is open")
        return self.prompt.dialog

    def switch_focus(self, _event: KeyPressEvent) -> None:
        """Move the focus to the dialog, or switch between its choices and typing an answer."""
        if not self.prompt.dialog_has_keys:
            self.prompt.dialog_has_keys = True
        elif self.dialog.text_hint:
            self.dialog.is_typing = not self.dialog.is_typing or not self.dialog.choices
        self.prompt.focus()

    def confirm(self, _event: KeyPressEvent) -> None:
        self.dialog.confirm(self.prompt.answer_buffer.text)
        self.prompt.close_answered_dialog()

    def reply_text(self, _event: KeyPressEvent) -> None:
        self.dialog.reply_text(self.prompt.answer_buffer.text)
        self.prompt.close_answered_dialog()

    def move(self, offset: int) -> Callable[[KeyPressEvent], None]:
        return lambda _event: self.dialog.move(offset, self.prompt.answer_buffer.text)

    def cancel(self, _event: KeyPressEvent) -> None:
        dialog = self.dialog
        if dialog.is_typing and dialog.choices:
            dialog.is_typing = False
            self.prompt.focus()
        else:
            dialog.reply(None)
            self.prompt.close_answered_dialog()

    def toggle(self, _event: KeyPressEvent) -> None:
        if self.dialog.is_multiple:
            self.dialog.toggle()

    def press_key(self, event: KeyPressEvent) -> None:
        # Other characters are dropped: they were not meant for the prompt below the dialog.
        if event.data in _ANSWER_KEYS:
            self.dialog.press_key(event.data)
            self.prompt.close_answered_dialog()
