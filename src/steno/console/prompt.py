"""The prompt: history, pastes, completion, layout. The prompt also accepts input during a turn.

Key actions go to the chat (`PromptActions`); the prompt does not depend on the agent. A large paste or an image is
shown as a placeholder and sent in full. All sessions share one history: one JSON string per line in steno's directory.
"""

import asyncio
import os
import re
import subprocess
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import unquote, urlsplit

import msgspec
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, DummyCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import History
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
from steno.console.key_bindings import build_key_bindings
from steno.console.screen import RegionApplication
from steno.sanitize.terminal import StyledLine, clean, display_width, one_line, truncate
from steno.store.environment import steno_home
from steno.tools.programs import RIPGREP_FLAGS, find_ripgrep

if TYPE_CHECKING:
    from prompt_toolkit.formatted_text import StyleAndTextTuples
    from prompt_toolkit.input import Input

    from steno.console.screen import TerminalScreen


_MAX_LINES: Final = 8
_MAX_CHARACTERS: Final = 1200
_PLACEHOLDER: Final = re.compile(r"\[(?:paste|image) (\d+): [^\]\n]*\]")
IMAGE_SUFFIXES: Final = (".png", ".jpg", ".jpeg", ".gif", ".webp")


class Pastes:
    """The pastes in the current prompt."""

    def __init__(self) -> None:
        self._texts: dict[int, str] = {}

    def add(self, text: str, cwd: str = "") -> str:
        """Return the text to insert for a paste: the paste, or a placeholder for a large one."""
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        path = pasted_image_path(text, cwd)
        if path:
            return self.add_image(path)
        lines = text.rstrip("\n").count("\n") + 1
        if lines <= _MAX_LINES and len(text) <= _MAX_CHARACTERS:
            return text
        number = len(self._texts) + 1
        self._texts[number] = text
        size = f"{lines:,} lines" if lines > 1 else f"{len(text):,} characters"
        return f"[paste {number}: {size}]"

    def add_image(self, path: str) -> str:
        """Return the placeholder of an image; its path is sent with the prompt."""
        number = len(self._texts) + 1
        self._texts[number] = f'"{path}"'
        name = re.sub(r"[\[\]\n]", "_", os.path.basename(path))
        return f"[image {number}: {name}]"

    def expand(self, typed_text: str) -> str:
        """Return the typed text with every placeholder replaced by its paste."""

        def put(match: re.Match[str]) -> str:
            text = self._texts.get(int(match[1]), match[0])
            if not match[0].startswith("[image"):
                return text
            # A path must be separated from the text around it.
            space_before = typed_text[: match.start()][-1:].strip() and " "
            space_after = typed_text[match.end() :][:1].strip() and " "
            return f"{space_before}{text}{space_after}"

        return _PLACEHOLDER.sub(put, typed_text)

    def missing_placeholder(self, text: str) -> str:
        """Return the first placeholder without a paste."""
        unknown = (match for match in _PLACEHOLDER.finditer(text) if int(match[1]) not in self._texts)
        return next((found[0] for found in unknown), "")

    def clear(self) -> None:
        """Clear the pastes after the prompt was sent."""
        self._texts = {}


def pasted_image_path(text: str, cwd: str) -> str:
    """Return the path of the image if a paste is the path of one, as terminals paste a dropped file.

    Return an empty string for anything else: several lines, another kind of file, a path that does not exist.
    """
    path_text = text.strip()
    if not path_text or "\n" in path_text or len(path_text) > _MAX_CHARACTERS or '"' in path_text[1:-1]:
        return ""
    if path_text[0] in "'\"" and path_text[-1] == path_text[0]:
        path_text = path_text[1:-1]
    elif path_text.startswith("file://"):
        path_text = unquote(urlsplit(path_text).path)
    else:
        path_text = re.sub(r"\\(.)", r"\1", path_text)
    path = os.path.join(cwd, os.path.expanduser(path_text))
    return path if path.lower().endswith(IMAGE_SUFFIXES) and os.path.isfile(path) else ""


_FILE_NAME: Final = "prompts.jsonl"
_MAX_READ_BYTES: Final = 1 << 20
MAX_PROMPT_LENGTH: Final = 20_000
"""Maximum characters of a prompt in the history."""
_FILE_MODE: Final = 0o600


class PromptHistory(History):
    """Prompts of all sessions, newest first; only the last megabyte of the file is read."""

    def __init__(self, path: str = "") -> None:
        super().__init__()
        self.path = path or os.path.join(steno_home(), _FILE_NAME)

    def load_history_strings(self) -> Iterable[str]:
        """Yield prompts, newest first."""
        try:
            with open(self.path, "rb") as file:
                file.seek(max(os.fstat(file.fileno()).st_size - _MAX_READ_BYTES, 0))
                lines = file.read().split(b"\n")
        except OSError:
            return
        last = ""
        for line in reversed(lines):
            try:
                text = msgspec.json.decode(line, type=str)
            except msgspec.MsgspecError:
                continue
            if text and text != last:
                last = text
                yield text

    def store_string(self, string: str) -> None:
        """Append a prompt to the file; ignore errors, as the prompt is also kept in memory."""
        if len(string) > MAX_PROMPT_LENGTH or not string.strip():
            return
        line = msgspec.json.encode(string.encode("utf-8", "replace").decode()) + b"\n"
        try:
            os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
            file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, _FILE_MODE)
        except OSError:
            return
        try:
            os.write(file, line)
        except OSError:
            return
        finally:
            os.close(file)


class HistoryBuffer(Buffer):
    """The input buffer; loads the history once, not again for every prompt."""

    def reset(self, document: Document | None = None, append_to_history: Any = None) -> None:
        """Reset the buffer, keeping the loaded history."""
        # prompt_toolkit calls this before its own attributes exist.
        loading = getattr(self, "_load_history_task", None)
        super().reset(document, bool(append_to_history))
        if loading is None or not loading.done() or loading.cancelled():
            return
        history_lines = self.history.get_strings()
        self._working_lines = deque([*history_lines, *self._working_lines])
        self.working_index = len(history_lines)
        self.cursor_position = document.cursor_position if document is not None else 0
        self._load_history_task = loading


PROMPT_MARK: Final = "› "
"""The mark before the input."""
_FILE_MENTION: Final = re.compile(r"(?:^|(?<=\s))@([^\s@]*)$")
_COMMAND_NAME: Final = re.compile(r"/([\w:.-]*)$")
_SCATTERED_RANK: Final = 3
"""Rank of names that contain the characters, but not next to each other."""
_MAX_MATCHES: Final = 40
_MAX_FILES: Final = 100_000
_LIST_TIMEOUT: Final = 5
_CACHE_SECONDS: Final = 10.0


class PromptCompleter(Completer):
    """Completes slash commands and file names."""

    def __init__(self, get_commands: Callable[[], list[tuple[str, str]]], get_cwd: Callable[[], str]) -> None:
        self._get_commands = get_commands
        self._get_cwd = get_cwd
        self._file_cache: tuple[str, float, list[str]] = ("", 0.0, [])

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Return the completions before the cursor."""
        del complete_event
        before = document.text_before_cursor
        command = _COMMAND_NAME.fullmatch(before)
        if command is not None:
            return self._complete_commands(command[1])
        file = _FILE_MENTION.search(before)
        if file is None:
            return []
        return [
            Completion(f"@{path}", -len(file[1]) - 1, display=path) for path in fuzzy_match(file[1], self._list_files())
        ]

    def complete_now(self, document: Document) -> list[Completion] | None:
        """Return the completions, or None if the file list must be loaded first."""
        if _FILE_MENTION.search(document.text_before_cursor) and not self._is_cache_fresh():
            return None
        return list(self.get_completions(document, CompleteEvent(completion_requested=True)))

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        """Yield the completions; file names are searched in a thread so that typing does not block."""
        if _FILE_MENTION.search(document.text_before_cursor):
            completions = await asyncio.to_thread(self.get_completions, document, complete_event)
        else:
            completions = self.get_completions(document, complete_event)
        for completion in completions:
            yield completion

    def _complete_commands(self, typed: str) -> Iterable[Completion]:
        names = dict(self._get_commands())
        prefix_matches = [name for name in names if name.startswith(typed)]
        fuzzy_matches = (
            [name for name in fuzzy_match(typed, list(names)) if name not in prefix_matches] if typed else []
        )
        for name in (*sorted(prefix_matches), *fuzzy_matches):
            yield Completion(f"/{name}", -len(typed) - 1, display_meta=names[name])

    def _is_cache_fresh(self) -> bool:
        cached_cwd, cached_at, _ = self._file_cache
        return cached_cwd == self._get_cwd() and time.monotonic() - cached_at < _CACHE_SECONDS

    def _list_files(self) -> list[str]:
        """Return the files below the working directory that git does not ignore."""
        if self._is_cache_fresh():
            return self._file_cache[2]
        cwd = self._get_cwd()
        program = find_ripgrep(cwd)
        files = _list_with_ripgrep(program, cwd) if program else _walk_files(cwd)
        self._file_cache = (cwd, time.monotonic(), files)
        return files


def _list_with_ripgrep(program: str, cwd: str) -> list[str]:
    try:
        finished = subprocess.run(
            [program, *RIPGREP_FLAGS, "--files", "--null"],
            cwd=cwd,
            capture_output=True,
            timeout=_LIST_TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return []
    names = finished.stdout.split(b"\0")[:_MAX_FILES]
    return sorted(name.decode("utf-8", "replace") for name in names if name)


def _walk_files(cwd: str) -> list[str]:
    paths: list[str] = []
    for folder, folders, files in os.walk(cwd):
        folders[:] = sorted(name for name in folders if name != ".git")
        paths += [os.path.relpath(os.path.join(folder, name), cwd) for name in files]
        if len(paths) > _MAX_FILES:
            break
    return sorted(paths)


def fuzzy_match(typed: str, names: list[str]) -> list[str]:
    """Return the names that contain the typed characters in order, best match first.

    >>> fuzzy_match("scr", ["docs/scripts.md", "src/screen.py", "src/core.rs"])
    ['src/screen.py', 'docs/scripts.md', 'src/core.rs']
    """
    if not typed:
        return sorted(names, key=lambda name: (name.count("/"), name))[:_MAX_MATCHES]
    pattern = re.compile(".*?".join(map(re.escape, typed.lower())))
    ranked: list[tuple[tuple[int, int, int, str], str]] = []
    for name in names:
        lowered = name.lower()
        match = pattern.search(lowered)
        if match is None:
            continue
        base = lowered.rpartition("/")[2]
        position = base.find(typed.lower())
        rank = 0 if position == 0 else 1 if position > 0 else 2 if typed.lower() in lowered else _SCATTERED_RANK
        # The distance between the characters only matters for scattered matches.
        spread = match.end() - match.start() if rank == _SCATTERED_RANK else 0
        ranked.append(((rank, spread, len(name), name), name))
    return [name for _, name in sorted(ranked)[:_MAX_MATCHES]]


_HIDDEN_CHARACTER: Final = "\N{REPLACEMENT CHARACTER}"
_MENU_ROWS: Final = 8
_ROWS_AROUND_DIALOG: Final = 5
"""Rows that a dialog leaves for the live view, the input and the status line."""
_MAX_INPUT_ROWS: Final = 12
_MIN_REDRAW_SECONDS: Final = 0.04
_ESCAPE_SECONDS: Final = 0.05
_CHORD_SECONDS: Final = 0.25


class PromptActions(Protocol):
    """Actions that keys can trigger."""

    def is_busy(self) -> bool:
        """Whether a turn or command is running."""
        ...

    def submit(self, text: str) -> None:
        """Submit a prompt."""
        ...

    def interrupt(self) -> None:
        """Interrupt the running action."""
        ...

    def unqueue(self) -> str:
        """Remove the last queued prompt and return it; empty if none is queued."""
        ...

    def perform(self, action: str) -> None:
        """Perform an action: `rewind`, `transcript`, `explorer`, `mode`, `keys`, `leave`."""
        ...


class Prompt:
    """The prompt and the region around it."""

    def __init__(
        self,
        screen: "TerminalScreen",
        actions: PromptActions,
        *,
        history: "History",
        vi: bool = False,
        terminal: "Input | None" = None,
    ) -> None:
        self.screen = screen
        self.actions = actions
        self.pastes = Pastes()
        self.dialog: Dialog | None = None
        self.live_lines: Callable[[int, int], list[StyledLine]] = lambda _columns, _rows: []
        """Returns the live view for a number of columns and rows."""
        self.status_line: Callable[[int], StyledLine] = lambda _columns: []
        self.completer: Completer = DummyCompleter()
        self.complete_now: Callable[[Document], list[Completion] | None] = lambda _typed: []
        """Returns completions, or None if they must be loaded first."""
        self.hint = ""
        self.dialog_has_keys = True
        """Whether the dialog receives keys; False while the user is typing a prompt."""
        self.buffer = HistoryBuffer(
            completer=_DeferredCompleter(self),
            complete_while_typing=True,
            history=history,
            multiline=True,
            enable_history_search=False,
            tempfile_suffix=".md",
        )
        self.answer_buffer = Buffer(multiline=False)
        """The text typed as an answer to a dialog."""
        self.search_buffer = Buffer(multiline=False)
        self._dialog_lock = asyncio.Lock()
        self.app = RegionApplication(
            layout=self._layout(),
            key_bindings=build_key_bindings(self),
            editing_mode=EditingMode.VI if vi else EditingMode.EMACS,
            output=screen.output,
            input=terminal,
            style=Style([]),
            erase_when_done=True,
            min_redraw_interval=_MIN_REDRAW_SECONDS,
            mouse_support=False,
        )
        self.app.ttimeoutlen = _ESCAPE_SECONDS
        self.app.timeoutlen = _CHORD_SECONDS
        # A frame can be drawn before the resize signal arrives.
        self.app.before_render += RegionApplication.erase_reflowed
        screen.attach(self.app)

    # Dialogs

    async def ask(self, dialog: Dialog) -> Reply | None:
        """Show a dialog and return the reply; None if it is dismissed. Dialogs are shown one at a time."""
        async with self._dialog_lock:
            self.dialog = dialog
            self.answer_buffer.reset()
            self.answer_buffer.insert_text(dialog.initial)
            # Keys meant for the prompt must not answer the dialog.
            self.dialog_has_keys = not self.buffer.text or dialog.is_search
            self.focus()
            if self.screen.is_screen_reader:
                columns, rows = self.screen.width, self.screen.rows * 4
                self.screen.print(dialog.lines(columns, rows, "", plain=True))
            self.screen.refresh()
            try:
                return await dialog.answer
            finally:
                self.dialog = None
                self.dialog_has_keys = True
                self.focus()
                self.screen.refresh()

    def close_answered_dialog(self) -> None:
        """Return the focus to the prompt once the dialog is answered."""
        if self.dialog is not None and self.dialog.answer.done():
            self.dialog = None
            self.dialog_has_keys = True
            self.focus()

    def focus(self) -> None:
        """Focus the dialog or the prompt, whichever receives keys."""
        dialog = self.dialog
        dialog_takes_text = dialog is not None and self.dialog_has_keys and (dialog.is_typing or dialog.is_search)
        self.app.layout.focus(self.answer_buffer if dialog_takes_text else self.buffer)

    # Input

    def full_text(self) -> str:
        """Return the typed text with every paste expanded."""
        return self.pastes.expand(self.buffer.text)

    def send(self) -> None:
        """Submit the typed text."""
        text = self.full_text()
        if not text.strip():
            return
        if missing := self.pastes.missing_placeholder(self.buffer.text):
            warning = f"The content of {missing} is lost. Press enter again to send the placeholder."
            if self.hint != warning:
                self.hint = warning
                return
        # The history keeps the expanded text unless it is very large.
        self.buffer.history.append_string(text if len(text) <= MAX_PROMPT_LENGTH else self.buffer.text)
        self.buffer.reset()
        self.pastes.clear()
        self.actions.submit(text)

    def set_text(self, text: str) -> None:
        """Replace the text of the prompt."""
        self.buffer.text = text
        self.buffer.cursor_position = len(text)

    # Region

    def _layout(self) -> Layout:
        has_dialog = Condition(lambda: self.dialog is not None)
        is_answering = Condition(self._is_answering_in_text)
        is_animated = Condition(lambda: not self.screen.is_screen_reader)
        has_menu = Condition(self._has_menu)
        search_control = SearchBufferControl(buffer=self.search_buffer)
        input_window = Window(
            BufferControl(
                self.buffer,
                search_buffer_control=search_control,
                preview_search=True,
                input_processors=[_HiddenCharacterProcessor()],
            ),
            wrap_lines=True,
            dont_extend_height=True,
            height=Dimension(min=1, max=_MAX_INPUT_ROWS),
            get_line_prefix=self._prefix,
        )
        answer_window = Window(
            BufferControl(self.answer_buffer),
            height=1,
            get_line_prefix=lambda _number, _wraps: self.screen.fragments([[(PROMPT_MARK, "yellow")]]),
        )
        is_searching = Condition(lambda: self.app.layout.is_searching)
        parts: list[Any] = [
            ConditionalContainer(_text_window(self._live_fragments), is_animated),
            ConditionalContainer(_text_window(self._dialog_fragments), has_dialog),
            ConditionalContainer(answer_window, is_answering),
            ConditionalContainer(input_window, ~is_answering),
            ConditionalContainer(
                VSplit([Window(FormattedTextControl("search: "), width=8), Window(search_control)]), is_searching
            ),
            ConditionalContainer(_text_window(self._menu_fragments), has_menu),
            ConditionalContainer(_text_window(self._status_fragments), is_animated),
        ]
        return Layout(HSplit(parts), focused_element=input_window)

    def _prefix(self, number: int, wraps: int) -> "StyleAndTextTuples":
        mark = PROMPT_MARK if not number and not wraps else "  "
        return self.screen.fragments([[(mark, "bold blue")]])

    def _is_answering_in_text(self) -> bool:
        dialog = self.dialog
        return dialog is not None and self.dialog_has_keys and (dialog.is_typing or dialog.is_search)

    def _live_fragments(self) -> "StyleAndTextTuples":
        # A dialog needs more rows than the live view.
        max_rows = 2 if self.dialog is not None else max(self.screen.rows // 3, 3)
        return self.screen.fragments(self.live_lines(self.screen.width - 1, max_rows))

    def _dialog_fragments(self) -> "StyleAndTextTuples":
        dialog = self.dialog
        if dialog is None:
            return []
        columns, rows = self.screen.width, max(self.screen.rows - _ROWS_AROUND_DIALOG, 4)
        if self.screen.is_screen_reader:
            current_text = dialog.current_text(self.answer_buffer.text)
            summary = f"{dialog.title.rstrip('?')}? {current_text}".strip()
            return self.screen.fragments([[one_line(summary, columns - 1)]])
        lines = dialog.lines(columns, rows, self.answer_buffer.text)
        if not self.dialog_has_keys:
            lines.append([(truncate("tab to answer the dialog", columns), "yellow")])
        return self.screen.fragments(lines)

    def _has_menu(self) -> bool:
        state = self.buffer.complete_state
        return self.dialog is None and state is not None and bool(state.completions)

    def _menu_fragments(self) -> "StyleAndTextTuples":
        state = self.buffer.complete_state
        if state is None:
            return []
        columns, completions, selected_index = (self.screen.width - 1, state.completions, state.complete_index)
        start = max(0, min((selected_index or 0) - _MENU_ROWS // 2, len(completions) - _MENU_ROWS))
        visible = completions[start : start + _MENU_ROWS]
        name_width = min(max(display_width(one_line(completion.display_text)) for completion in visible), columns - 3)
        lines: list[StyledLine] = []
        for number, each in enumerate(visible, start):
            is_current = number == selected_index
            name = truncate(one_line(each.display_text), name_width)
            space = " " * (name_width - display_width(name) + 2)
            meta = truncate(one_line(each.display_meta_text), max(columns - name_width - 5, 0))
            lines.append(
                [
                    ("▸ " if is_current else "  ", "blue"),
                    (name, "bold" if is_current else ""),
                    (f"{space}{meta}", "dim"),
                ]
            )
        more_hint = " · more below" if len(completions) > len(visible) else ""
        lines.append([(truncate(f"  tab and arrows to select{more_hint}", columns), "dim")])
        return self.screen.fragments(lines)

    def _status_fragments(self) -> "StyleAndTextTuples":
        columns = self.screen.width - 1
        hint: list[StyledLine] = [[(truncate(f" {self.hint}", columns), "dim")]] if self.hint else []
        return self.screen.fragments([*hint, self.status_line(columns)])


class _HiddenCharacterProcessor(Processor):
    """Shows invisible and bidirectional control characters of a paste."""

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        """Replace each such character with one visible character, which keeps the cursor position correct."""
        fragments: StyleAndTextTuples = []
        for style, text, *_ in transformation_input.fragments:
            visible = "".join(_HIDDEN_CHARACTER if _is_hidden_character(character) else character for character in text)
            fragments.append((style, visible))
        return Transformation(fragments)


def _is_hidden_character(character: str) -> bool:
    return not character.isascii() and clean(character) != character


class _DeferredCompleter(Completer):
    """Delegates to the completer that the prompt currently has."""

    def __init__(self, prompt: Prompt) -> None:
        self._prompt = prompt

    def get_completions(self, document: Any, complete_event: Any) -> Any:
        """Return the completions."""
        return self._prompt.completer.get_completions(document, complete_event)

    async def get_completions_async(self, document: Any, complete_event: Any) -> AsyncGenerator[Completion, None]:
        """Yield the completions."""
        async for completion in self._prompt.completer.get_completions_async(document, complete_event):
            yield completion


def _text_window(get_fragments: "Callable[[], StyleAndTextTuples]") -> Window:
    return Window(FormattedTextControl(get_fragments, focusable=False), dont_extend_height=True, wrap_lines=False)
