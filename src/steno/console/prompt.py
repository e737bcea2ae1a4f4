"""Where one types: always there, also while the engine works, with the region around it.

What a key wishes for goes to whoever talks (`Wishes`); the prompt itself knows no engine.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import TYPE_CHECKING, Any, Final, Protocol

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import Completer, Completion, DummyCompleter
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import Condition
from prompt_toolkit.layout import (
    BufferControl,
    ConditionalContainer,
    Dimension,
    FormattedTextControl,
    HSplit,
    Layout,
    VSplit,
    Window,
)
from prompt_toolkit.layout.controls import SearchBufferControl
from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput
from prompt_toolkit.styles import Style

from steno.console.dialog import Dialog, Reply
from steno.console.history import LONGEST, Remembering
from steno.console.keys import keys_for
from steno.console.pastes import Pastes
from steno.console.region import Region
from steno.safe.terminal import Line, clean, cut, one_line, width

if TYPE_CHECKING:
    from prompt_toolkit.document import Document
    from prompt_toolkit.formatted_text import StyleAndTextTuples
    from prompt_toolkit.history import History
    from prompt_toolkit.input import Input

    from steno.console.screen import Screen

__all__ = ["MARK", "Prompt", "Wishes"]

MARK: Final = "› "
"""What stands before what the user types."""
_HIDDEN: Final = "\N{REPLACEMENT CHARACTER}"
_MENU: Final = 8
_AROUND: Final = 5
"""How many rows there are around a question: what goes on, what is typed, the status."""
_TALLEST: Final = 12
_FRAME_TIME: Final = 0.04
_ESCAPE_TIME: Final = 0.05
_CHORD_TIME: Final = 0.25


class Wishes(Protocol):
    """What can be wished for by a key."""

    def is_busy(self) -> bool:
        """Whether there is something to break into."""
        ...

    def submit(self, text: str) -> None:
        """Say something."""
        ...

    def interrupt(self) -> None:
        """Break in."""
        ...

    def take_back(self) -> str:
        """Return the prompt that was queued last, which waits no longer; nothing for none."""
        ...

    def wish(self, what: str) -> None:
        """Have something done: `rewind`, `transcript`, `explorer`, `mode`, `keys`, `leave`."""
        ...


class Prompt:
    """The prompt, and the region that it stands in."""

    def __init__(
        self,
        screen: "Screen",
        wishes: Wishes,
        *,
        history: "History",
        vi: bool = False,
        terminal: "Input | None" = None,
    ) -> None:
        self.screen = screen
        self.wishes = wishes
        self.pastes = Pastes()
        self.dialog: Dialog | None = None
        self.live: Callable[[int, int], list[Line]] = lambda _columns, _rows: []
        """Returns what goes on now, in so many columns and rows."""
        self.status: Callable[[int], Line] = lambda _columns: []
        self.completer: Completer = DummyCompleter()
        self.found_at_once: Callable[[Document], list[Completion] | None] = lambda _typed: []
        """Returns what could come next; None where that has to be looked for first."""
        self.hint = ""
        self.armed = True
        """Whether keys go to the question; not while something else is being typed."""
        self.buffer = Remembering(
            completer=_Late(self),
            complete_while_typing=True,
            history=history,
            multiline=True,
            enable_history_search=False,
            tempfile_suffix=".md",
        )
        self.words = Buffer(multiline=False)
        """What is typed to a question."""
        self.search = Buffer(multiline=False)
        self._asking = asyncio.Lock()
        self.app = Region(
            layout=self._layout(),
            key_bindings=keys_for(self),
            editing_mode=EditingMode.VI if vi else EditingMode.EMACS,
            output=screen.output,
            input=terminal,
            style=Style([]),
            erase_when_done=True,
            min_redraw_interval=_FRAME_TIME,
            mouse_support=False,
        )
        self.app.ttimeoutlen = _ESCAPE_TIME
        self.app.timeoutlen = _CHORD_TIME
        # A frame may come before the signal that the window has changed.
        self.app.before_render += Region.find_again
        screen.attach(self.app)

    # Asking

    async def ask(self, dialog: Dialog) -> Reply | None:
        """Ask the user; None when they leave it. One question at a time."""
        async with self._asking:
            self.dialog = dialog
            self.words.reset()
            self.words.insert_text(dialog.initial)
            # Whoever is in the middle of a word must not answer with it.
            self.armed = not self.buffer.text or dialog.search
            self.focus()
            if self.screen.reader:
                columns, rows = self.screen.width, self.screen.rows * 4
                self.screen.print(dialog.lines(columns, rows, "", plain=True))
            self.screen.refresh()
            try:
                return await dialog.answer
            finally:
                self.dialog = None
                self.armed = True
                self.focus()
                self.screen.refresh()

    def settle(self) -> None:
        """Let keys go back to the prompt as soon as a question is answered."""
        if self.dialog is not None and self.dialog.answer.done():
            self.dialog = None
            self.armed = True
            self.focus()

    def focus(self) -> None:
        """Let keys go where they are wanted: to the question or to the prompt."""
        dialog = self.dialog
        asks = dialog is not None and self.armed and (dialog.typing or dialog.search)
        self.app.layout.focus(self.words if asks else self.buffer)

    # Typing

    def typed(self) -> str:
        """Return what was typed, with every paste in its place."""
        return self.pastes.whole(self.buffer.text)

    def send(self) -> None:
        """Take what was typed as said."""
        text = self.typed()
        if not text.strip():
            return
        if lost := self.pastes.lost(self.buffer.text):
            said = f"{lost} was not kept; enter once more sends it as it stands"
            if self.hint != said:
                self.hint = said
                return
        # What was pasted is there again with the prompt, unless it is very large.
        self.buffer.history.append_string(text if len(text) <= LONGEST else self.buffer.text)
        self.buffer.reset()
        self.pastes.forget()
        self.wishes.submit(text)

    def put(self, text: str) -> None:
        """Put something into the prompt to be edited."""
        self.buffer.text = text
        self.buffer.cursor_position = len(text)

    # The region

    def _layout(self) -> Layout:
        asks = Condition(lambda: self.dialog is not None)
        answers = Condition(self._answers_in_words)
        moves = Condition(lambda: not self.screen.reader)
        menu = Condition(self._has_menu)
        searching = SearchBufferControl(buffer=self.search)
        typing = Window(
            BufferControl(
                self.buffer,
                search_buffer_control=searching,
                preview_search=True,
                input_processors=[_Visible()],
            ),
            wrap_lines=True,
            dont_extend_height=True,
            height=Dimension(min=1, max=_TALLEST),
            get_line_prefix=self._prefix,
        )
        words = Window(
            BufferControl(self.words),
            height=1,
            get_line_prefix=lambda _number, _wraps: self.screen.fragments([[(MARK, "yellow")]]),
        )
        found = Condition(lambda: self.app.layout.is_searching)
        parts: list[Any] = [
            ConditionalContainer(_text(self._live), moves),
            ConditionalContainer(_text(self._dialog), asks),
            ConditionalContainer(words, answers),
            ConditionalContainer(typing, ~answers),
            ConditionalContainer(
                VSplit([Window(FormattedTextControl("search: "), width=8), Window(searching)]),
                found,
            ),
            ConditionalContainer(_text(self._menu), menu),
            ConditionalContainer(_text(self._status), moves),
        ]
        return Layout(HSplit(parts), focused_element=typing)

    def _prefix(self, number: int, wraps: int) -> "StyleAndTextTuples":
        mark = MARK if not number and not wraps else "  "
        return self.screen.fragments([[(mark, "bold blue")]])

    def _answers_in_words(self) -> bool:
        dialog = self.dialog
        return dialog is not None and self.armed and (dialog.typing or dialog.search)

    def _live(self) -> "StyleAndTextTuples":
        # What is asked needs its room more than what goes on.
        most = 2 if self.dialog is not None else max(self.screen.rows // 3, 3)
        return self.screen.fragments(self.live(self.screen.width - 1, most))

    def _dialog(self) -> "StyleAndTextTuples":
        dialog = self.dialog
        if dialog is None:
            return []
        columns, rows = self.screen.width, max(self.screen.rows - _AROUND, 4)
        if self.screen.reader:
            pointed = dialog.pointed(self.words.text)
            said = f"{dialog.title.rstrip('?')}? {pointed}".strip()
            return self.screen.fragments([[one_line(said, columns - 1)]])
        lines = dialog.lines(columns, rows, self.words.text)
        if not self.armed:
            lines.append([(cut("tab answers; you were typing", columns), "yellow")])
        return self.screen.fragments(lines)

    def _has_menu(self) -> bool:
        state = self.buffer.complete_state
        return self.dialog is None and state is not None and bool(state.completions)

    def _menu(self) -> "StyleAndTextTuples":
        state = self.buffer.complete_state
        if state is None:
            return []
        columns, found, at = self.screen.width - 1, state.completions, state.complete_index
        start = max(0, min((at or 0) - _MENU // 2, len(found) - _MENU))
        shown = found[start : start + _MENU]
        room = min(max(width(one_line(each.display_text)) for each in shown), columns - 3)
        lines: list[Line] = []
        for number, each in enumerate(shown, start):
            here = number == at
            name = cut(one_line(each.display_text), room)
            space = " " * (room - width(name) + 2)
            meta = cut(one_line(each.display_meta_text), max(columns - room - 5, 0))
            lines.append(
                [
                    ("▸ " if here else "  ", "blue"),
                    (name, "bold" if here else ""),
                    (f"{space}{meta}", "dim"),
                ]
            )
        more = "; there are more" if len(found) > len(shown) else ""
        lines.append([(cut(f"  tab and arrows choose{more}", columns), "dim")])
        return self.screen.fragments(lines)

    def _status(self) -> "StyleAndTextTuples":
        columns = self.screen.width - 1
        hint: list[Line] = [[(cut(f" {self.hint}", columns), "dim")]] if self.hint else []
        return self.screen.fragments([*hint, self.status(columns)])


class _Visible(Processor):
    """Shows that there is something in a paste that nobody would see, or that turns it around."""

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        """Return the line with a sign for each such letter, so that the cursor stays right."""
        fragments: StyleAndTextTuples = []
        for style, text, *_ in transformation_input.fragments:
            shown = "".join(_HIDDEN if _is_hidden(each) else each for each in text)
            fragments.append((style, shown))
        return Transformation(fragments)


def _is_hidden(letter: str) -> bool:
    return not letter.isascii() and clean(letter) != letter


class _Late(Completer):
    """Completes by whatever the prompt has by now."""

    def __init__(self, prompt: Prompt) -> None:
        self._prompt = prompt

    def get_completions(self, document: Any, complete_event: Any) -> Any:
        """Return what could come next."""
        return self._prompt.completer.get_completions(document, complete_event)

    async def get_completions_async(
        self, document: Any, complete_event: Any
    ) -> AsyncGenerator[Completion, None]:
        """Yield what could come next, as it is found."""
        async for each in self._prompt.completer.get_completions_async(document, complete_event):
            yield each


def _text(words: "Callable[[], StyleAndTextTuples]") -> Window:
    return Window(
        FormattedTextControl(words, focusable=False), dont_extend_height=True, wrap_lines=False
    )
