"""The keys of the prompt. Those of editing are the library's, for emacs and for vi."""

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

__all__ = ["HELP", "keys_for"]

HELP: Final = (
    ("enter", "send; while it works: say it at the next chance"),
    ("ctrl-j, alt-enter, \\ enter", "a new line"),
    ("esc", "break in; esc esc: go back to an earlier prompt"),
    ("up", "what was typed before; while it works: take a queued prompt back"),
    ("ctrl-r", "search what was typed before, in all sessions"),
    ("tab", "complete /commands and @files"),
    ("shift-tab", "another mode: asks, edits freely, plans only"),
    ("ctrl-o", "the whole transcript, with everything that tools said"),
    ("ctrl-g", "write the prompt in your editor"),
    ("ctrl-x p", "show a paste in full"),
    ("ctrl-v", "paste the picture that is in the clipboard"),
    ("f2", "open the explorer on this session"),
    ("ctrl-c, ctrl-d", "clear the line; twice on an empty one: leave"),
)
_ANSWERS: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789?")
_PAGE: Final = 8
_WISHES: Final = (("s-tab", "mode"), ("c-o", "transcript"), ("f2", "explorer"))


def keys_for(prompt: "Prompt") -> KeyBindings:
    """Return the keys."""
    bindings = KeyBindings()
    for part in (_Typing(prompt), _Wishing(prompt), _Answering(prompt)):
        for keys, when, do in part.table():
            bindings.add(*keys, filter=when, eager=keys == ("escape",) and part.at_once)(do)
    return bindings


_Row = tuple[tuple[str, ...], Any, Callable[[KeyPressEvent], None]]


class _Part:
    """Some keys: which, when, and what they do."""

    at_once = False
    """Whether Esc does not wait for what might follow it."""

    def __init__(self, prompt: "Prompt") -> None:
        self.prompt = prompt
        self.free = Condition(lambda: prompt.dialog is None)
        self.busy = Condition(prompt.wishes.is_busy)
        self.empty = Condition(lambda: not prompt.buffer.text)

    def table(self) -> list[_Row]:
        raise NotImplementedError


class _Typing(_Part):
    """What edits the prompt."""

    def table(self) -> list[_Row]:
        prompt = self.prompt
        here = has_focus(prompt.buffer)
        typing = here & Condition(lambda: prompt.dialog is None or not prompt.armed)
        return [
            (("enter",), typing, self.enter),
            (("escape", "enter"), typing, self.new_line),
            (("c-j",), typing, self.new_line),
            ((Keys.BracketedPaste,), typing, self.paste),
            (("c-x", "p"), typing, self.expand),
            (("c-g",), typing, self.edit),
            (("c-x", "c-e"), typing, self.edit),
            (("tab",), typing & self.free, self.complete),
            (("up",), typing & self.empty & self.busy, self.take_back),
        ]

    def enter(self, _event: KeyPressEvent) -> None:
        buffer = self.prompt.buffer
        chosen = buffer.complete_state.current_completion if buffer.complete_state else None
        if chosen is not None and chosen.text.startswith("@"):
            # A name was chosen in the list; what to do with the file is yet to be said.
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
        self.prompt.buffer.insert_text(self.prompt.pastes.take(event.data, os.getcwd()))

    def expand(self, _event: KeyPressEvent) -> None:
        self.prompt.put(self.prompt.typed())

    def edit(self, _event: KeyPressEvent) -> None:
        self.prompt.put(self.prompt.typed())
        self.prompt.buffer.open_in_editor()

    def complete(self, _event: KeyPressEvent) -> None:
        buffer = self.prompt.buffer
        state = buffer.complete_state
        if state is not None and state.complete_index is not None:
            buffer.complete_next()
            return
        # The menu may be behind what was typed, and the next key may be there already.
        found = self.prompt.found_at_once(buffer.document)
        if found is None:
            buffer.start_completion(select_first=True)
        elif len(found) == 1:
            buffer.apply_completion(found[0])
        elif found:
            buffer.complete_state = CompletionState(buffer.document, found)
            buffer.go_to_completion(0)

    def take_back(self, event: KeyPressEvent) -> None:
        text = self.prompt.wishes.take_back()
        if text:
            self.prompt.put(text)
        else:
            event.current_buffer.auto_up()


class _Wishing(_Part):
    """What is wished for besides."""

    def table(self) -> list[_Row]:
        free, busy, empty = self.free, self.busy, self.empty
        leaves_mode = vi_mode & vi_insert_mode & ~empty
        here = has_focus(self.prompt.buffer)
        always = Condition(lambda: True)
        return [
            (("escape",), free & busy & ~leaves_mode, self.interrupt),
            (("escape", "escape"), free & ~busy, self.go_back),
            *(((key,), free, self.wish(what)) for key, what in _WISHES),
            (("c-v",), free & here & (~vi_mode | vi_insert_mode), self.wish("paste")),
            (("?",), free & empty & here, self.wish("keys")),
            (("c-d",), free & empty, self.wish("leave")),
            (("c-c",), always, self.cancel),
            (("c-l",), always, self.redraw),
            (("c-z",), always, lambda event: event.app.suspend_to_background()),
        ]

    def wish(self, what: str) -> Callable[[KeyPressEvent], None]:
        return lambda _event: self.prompt.wishes.wish(what)

    def interrupt(self, _event: KeyPressEvent) -> None:
        self.prompt.wishes.interrupt()

    def go_back(self, _event: KeyPressEvent) -> None:
        if self.prompt.buffer.text:
            self.prompt.buffer.reset()
        else:
            self.prompt.wishes.wish("rewind")

    def cancel(self, _event: KeyPressEvent) -> None:
        prompt = self.prompt
        if prompt.dialog is not None:
            prompt.dialog.reply(None)
            prompt.settle()
        elif prompt.buffer.text:
            prompt.buffer.reset()
            prompt.pastes.forget()
        elif prompt.wishes.is_busy():
            prompt.wishes.interrupt()
        else:
            prompt.wishes.wish("leave")

    def redraw(self, event: KeyPressEvent) -> None:
        # Nothing is cleared: what was printed stays where it is.
        event.app.renderer.erase(leave_alternate_screen=False)


class _Answering(_Part):
    """What answers a question."""

    at_once = True

    def table(self) -> list[_Row]:
        prompt = self.prompt
        asks = Condition(lambda: prompt.dialog is not None)
        heard = asks & Condition(lambda: prompt.armed)
        types = heard & Condition(lambda: prompt.dialog is not None and prompt.dialog.typing)
        picks = heard & ~types
        letters = picks & Condition(lambda: prompt.dialog is not None and not prompt.dialog.search)
        return [
            (("tab",), asks, self.turn),
            (("enter",), picks, self.choose),
            (("enter",), types, self.say),
            (("up",), picks, self.move(-1)),
            (("down",), picks, self.move(1)),
            (("pageup",), picks, self.move(-_PAGE)),
            (("pagedown",), picks, self.move(_PAGE)),
            (("escape",), heard, self.leave),
            ((" ",), letters, self.tick),
            ((Keys.Any,), letters, self.letter),
        ]

    @property
    def dialog(self) -> "Dialog":
        """The question; keys come here only where there is one."""
        if self.prompt.dialog is None:
            raise LookupError("nothing is asked")
        return self.prompt.dialog

    def turn(self, _event: KeyPressEvent) -> None:
        """Let keys go to the question, or type an answer in words."""
        if not self.prompt.armed:
            self.prompt.armed = True
        elif self.dialog.words:
            self.dialog.typing = not self.dialog.typing or not self.dialog.choices
        self.prompt.focus()

    def choose(self, _event: KeyPressEvent) -> None:
        self.dialog.choose(self.prompt.words.text)
        self.prompt.settle()

    def say(self, _event: KeyPressEvent) -> None:
        self.dialog.say(self.prompt.words.text)
        self.prompt.settle()

    def move(self, by: int) -> Callable[[KeyPressEvent], None]:
        return lambda _event: self.dialog.move(by, self.prompt.words.text)

    def leave(self, _event: KeyPressEvent) -> None:
        dialog = self.dialog
        if dialog.typing and dialog.choices:
            dialog.typing = False
            self.prompt.focus()
        else:
            dialog.reply(None)
            self.prompt.settle()

    def tick(self, _event: KeyPressEvent) -> None:
        if self.dialog.many:
            self.dialog.tick()

    def letter(self, event: KeyPressEvent) -> None:
        # Any other letter is swallowed: it was not meant for a prompt that nobody looks at.
        if event.data in _ANSWERS:
            self.dialog.key(event.data)
            self.prompt.settle()
