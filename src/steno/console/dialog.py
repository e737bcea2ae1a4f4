"""Dialogs: text, choices by key, free text, or a searchable list.

reply = await prompt.ask(Dialog("Permission", body, choices=(Choice("y", "Yes", "once"),)))
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

import msgspec

from steno.sanitize.terminal import StyledLine, StyledText, clean, display_width, one_line, pad, truncate, wrap

Body: TypeAlias = Sequence[StyledLine] | Callable[[int], Sequence[StyledLine]]
"""Lines to show, or a function that lays them out for a width in columns."""
_LIST_ROWS: Final = 8
_PREVIEW_ROWS: Final = 6
_MAX_FRAME_WIDTH: Final = 110
_MIN_DETAIL_WIDTH: Final = 24
_SHOW_ALL_KEY: Final = "d"


class Choice(msgspec.Struct, frozen=True):
    """One choice of a dialog."""

    key: str
    """The key that selects it; empty if it is selected with the arrow keys."""
    label: str
    value: str
    detail: str = ""


class Reply(msgspec.Struct, frozen=True):
    """The answer of the user."""

    value: str
    text: str = ""
    """Text typed as the answer."""
    values: tuple[str, ...] = ()
    """All selected values, if several can be selected."""


class Dialog:
    """One question to the user."""

    def __init__(
        self,
        title: str,
        body: Body = (),
        choices: Sequence[Choice] = (),
        *,
        text_hint: str = "",
        is_framed: bool = False,
        is_search: bool = False,
    ) -> None:
        """Create a dialog; `text_hint` describes what typing an answer does, as in "tab to …"."""
        self.title = title
        self.body = body
        self.choices = tuple(choices)
        self.text_hint = text_hint
        self.is_framed = is_framed
        self.is_search = is_search
        self.is_multiple = False
        """Whether several choices can be selected."""
        self.preview: Callable[[str], list[StyledLine]] | None = None
        """Returns preview lines for the value of the current choice."""
        self.show_all_value = ""
        """The reply value that prints the whole body when it does not fit."""
        self.index = 0
        self.selected: set[str] = set()
        self.is_typing = not choices and bool(text_hint)
        self.initial = ""
        """Initial text of the input, which the user can edit."""
        self.answer: asyncio.Future[Reply | None] = asyncio.get_running_loop().create_future()

    # Selection

    def visible_choices(self, typed: str) -> list[Choice]:
        """Return the choices that match the search text."""
        if not self.is_search or not typed.strip():
            return list(self.choices)
        query_words = typed.lower().split()
        return [
            choice
            for choice in self.choices
            if all(word in f"{choice.label} {choice.detail}".lower() for word in query_words)
        ]

    def move(self, offset: int, typed: str) -> None:
        """Move the selection by `offset` rows."""
        last_index = len(self.visible_choices(typed)) - 1
        self.index = max(0, min(self.index + offset, last_index))

    def press_key(self, key: str) -> bool:
        """Select the choice bound to a key; return whether the key is bound."""
        for number, choice in enumerate(self.choices):
            if choice.key and choice.key == key:
                self.index = number
                if self.is_multiple:
                    self.toggle()
                else:
                    self.confirm("")
                return True
        if key == _SHOW_ALL_KEY and self.show_all_value:
            self.reply(Reply(self.show_all_value))
        return False

    def current_text(self, typed: str) -> str:
        """Return the current choice as text for a screen reader."""
        visible = self.visible_choices(typed)
        if self.is_typing or not visible:
            return ""
        choice = visible[min(self.index, len(visible) - 1)]
        selection_text = (
            ("selected, " if choice.value in self.selected else "not selected, ") if self.is_multiple else ""
        )
        return f"{selection_text}{choice.label}"

    def toggle(self) -> None:
        """Select or deselect the current choice."""
        self.selected ^= {self.choices[self.index].value}

    def confirm(self, typed: str) -> None:
        """Answer with the selected choices."""
        visible = self.visible_choices(typed)
        if not visible:
            return
        choice = visible[min(self.index, len(visible) - 1)]
        values = tuple(item.value for item in self.choices if item.value in self.selected)
        self.reply(Reply(choice.value, values=values or (choice.value,)))

    def reply_text(self, text: str) -> None:
        """Answer with text."""
        self.reply(Reply("words", text))

    def reply(self, reply: Reply | None) -> None:
        """Set the answer; None means dismissed."""
        if not self.answer.done():
            self.answer.set_result(reply)

    # Drawing

    def lines(self, columns: int, rows: int, typed: str, *, plain: bool = False) -> list[StyledLine]:
        """Return the dialog as at most `rows` lines; `plain` omits the frame."""
        is_framed = self.is_framed and not plain
        inner_width = min(columns - 1, _MAX_FRAME_WIDTH) - 4 if is_framed else columns - 2
        choice_lines = list(self._choice_lines(inner_width, typed))
        body = list(self.body(inner_width) if callable(self.body) else self.body)
        room = max(rows - len(choice_lines) - (3 if is_framed else 2), 1)
        if len(body) > room:
            hidden_count = len(body) - room + 1
            key_hint = f" · {_SHOW_ALL_KEY} to show all" if self.show_all_value else ""
            more: StyledLine = [(f"… {hidden_count} more lines{key_hint}", "dim")]
            body = [*body[: room - 1], more]
        if is_framed:
            return _frame_lines(self.title, [*body, [], *choice_lines], inner_width)
        head: StyledLine = [(one_line(self.title, columns), "bold")]
        return [head, *body, *choice_lines]

    def _choice_lines(self, columns: int, typed: str) -> Iterator[StyledLine]:
        if self.is_typing:
            yield from _dim_lines(self._typing_hint(), columns)
            return
        if self.is_search:
            yield from self._list_lines(columns, typed)
            return
        if any(choice.detail for choice in self.choices) or self.is_multiple:
            yield from self._row_lines(columns)
        else:
            yield from self._key_lines(columns)

    def _typing_hint(self) -> str:
        return f"enter to {self.text_hint} · esc to go back" if self.choices else self.text_hint

    def _key_lines(self, columns: int) -> Iterator[StyledLine]:
        """Yield the choices side by side, as many per line as fit."""
        line: StyledLine = []
        used = 0
        for number, choice in enumerate(self.choices):
            first, *rest = wrap(clean(choice.label), columns - 5)
            room = display_width(first) + len(choice.key) + 6
            if line and (rest or used + room > columns):
                yield line
                line, used = [], 0
            style = "bold" if number == self.index else ""
            line += [(f" {choice.key} ", "reverse"), " ", (first, style), "   "]
            used += room
            for part in rest:
                yield line
                line, used = [" " * (len(choice.key) + 3), (part, style)], columns
        yield line
        if self.text_hint:
            yield from _dim_lines(f"tab to {self.text_hint} · esc to cancel", columns)

    def _row_lines(self, columns: int) -> Iterator[StyledLine]:
        """Yield the choices one per line, each with its detail."""
        prefix_width = 2 + (2 if self.is_multiple else 0) + max(len(choice.key) for choice in self.choices) + 3
        label_width = min(max(display_width(one_line(each.label)) for each in self.choices), columns - prefix_width)
        detail_width = columns - prefix_width - label_width - 2
        for number, each in enumerate(self.choices):
            is_current = number == self.index
            check_mark = ("✓ " if each.value in self.selected else "◻ ") if self.is_multiple else ""
            key: StyledLine = [(f" {each.key} ", "reverse"), " "] if each.key else []
            label = (pad(one_line(each.label, label_width), label_width), "bold" if is_current else "")
            detail_lines = wrap(one_line(each.detail), detail_width) if detail_width >= _MIN_DETAIL_WIDTH else [""]
            mark = ("▸ " if is_current else "  ", "blue")
            yield [mark, check_mark, *key, label, (f"  {detail_lines[0]}", "dim")]
            space = " " * (prefix_width + label_width + 2)
            if detail_width < _MIN_DETAIL_WIDTH and each.detail:
                # Too narrow for two columns: put the detail below the label.
                space, detail_lines = (" " * prefix_width, ["", *wrap(one_line(each.detail), columns - prefix_width)])
            yield from ([space, (part, "dim")] for part in detail_lines[1:])
        key_hint = "space to select · enter to submit" if self.is_multiple else "enter to select"
        typing_hint = f" · tab to {self.text_hint}" if self.text_hint else ""
        yield from _dim_lines(f"{key_hint}{typing_hint} · esc to cancel", columns)

    def _list_lines(self, columns: int, typed: str) -> Iterator[StyledLine]:
        """Yield the rows of a long list around the current one."""
        visible = self.visible_choices(typed)
        self.index = max(0, min(self.index, len(visible) - 1))
        start = max(0, min(self.index - _LIST_ROWS // 2, len(visible) - _LIST_ROWS))
        for number, choice in enumerate(visible[start : start + _LIST_ROWS], start):
            is_current = number == self.index
            detail = one_line(choice.detail, columns // 3)
            label = one_line(choice.label, columns - 5 - display_width(detail))
            space = " " * max(columns - 2 - display_width(label) - display_width(detail), 2)
            yield [
                ("▸ " if is_current else "  ", "blue"),
                (label, "bold" if is_current else ""),
                (f"{space}{detail}", "dim"),
            ]
        count_text = f"{len(visible)} of {len(self.choices)}" if typed else f"{len(self.choices)} total"
        yield from _dim_lines(f"{count_text} · type to search · enter to select · esc to cancel", columns)
        if self.preview is not None and visible:
            yield from self.preview(visible[self.index].value)[:_PREVIEW_ROWS]


def _dim_lines(text: str, columns: int) -> Iterator[StyledLine]:
    for line in wrap(text, columns):
        yield [(line, "dim")]


def _frame_lines(title: str, lines: list[StyledLine], inner_width: int) -> list[StyledLine]:
    top_border = f"┌ {title} " + "─" * max(inner_width - display_width(title) - 1, 0) + "─┐"
    framed: list[StyledLine] = [[(top_border, "yellow")]]
    for line in lines:
        fitted, used = _fit_line(line, inner_width)
        padding: StyledText = " " * (inner_width - used)
        framed.append([("│ ", "yellow"), *fitted, padding, (" │", "yellow")])
    framed.append([("└" + "─" * (inner_width + 2) + "┘", "yellow")])
    return framed


def _fit_line(line: StyledLine, columns: int) -> tuple[StyledLine, int]:
    """Return a line cut to `columns`, and its width."""
    fitted: StyledLine = []
    used = 0
    for bit in line:
        text, style = bit if isinstance(bit, tuple) else (bit, "")
        text = truncate(text, columns - used)
        fitted.append((text, style))
        used += display_width(text)
    return fitted, used
