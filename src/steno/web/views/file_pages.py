"""Files: cached file lists and histories, directory tree, one version or a diff of two."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, Literal, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

import msgspec
from markupsafe import Markup

from steno.errors import NotFound
from steno.index.database import SessionIndex
from steno.report import humanize
from steno.report.file_history.file_versions import History, KnownLines, Version
from steno.report.file_history.history import (
    certainty_text,
    count_surviving_lines,
    diff_texts,
    event_text,
    history,
    normalized_text,
)
from steno.report.file_history.text_edits import normalize_newlines
from steno.report.file_history.touched_files import (
    TouchedFile,
    TouchedFilter,
    TouchedProject,
    list_touched_files,
    touched_paths,
    touched_projects,
)
from steno.sanitize.html import trusted_markup
from steno.web.render.code import code_block, language_of
from steno.web.render.diff import diff_table
from steno.web.state.app_state import AppState
from steno.web.urls import path_tag

_T = TypeVar("_T")
_MAX_HISTORIES: Final = 3
_MAX_LISTS: Final = 6


class FileCache:
    """Cached file lists and histories."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._batch = -1
        self._results: dict[str, OrderedDict[str, Any]] = {}

    def projects(self, index: SessionIndex) -> list[TouchedProject]:
        """Return the projects whose sessions touched files."""
        return self._get(index, "projects", "", 1, lambda: touched_projects(index.connection))

    def project_files(self, index: SessionIndex, project: str) -> list[TouchedFile]:
        """Return all files of a project, sorted by path."""
        choice = TouchedFilter(project=project, sort="path")
        return self._get(index, "project", project, _MAX_LISTS, lambda: list_touched_files(index.connection, choice))

    def path(self, index: SessionIndex, tag: str) -> str:
        """Return the path of a tag.

        Raises:
            NotFound: No session touched the file.
        """

        def tags() -> dict[str, str]:
            return {path_tag(path): path for path in dict.fromkeys(touched_paths(index.connection))}

        path = self._get(index, "tags", "", 1, tags).get(tag)
        if path is None:
            raise NotFound("no session accessed this file", hint="The file may not be indexed yet.")
        return path

    def history(self, app_state: AppState, index: SessionIndex, path: str) -> History:
        """Return the history of a file.

        Raises:
            NotFound: No session touched the file.
        """
        file_history = self._get(
            index,
            "history",
            path,
            _MAX_HISTORIES,
            lambda: history(index.connection, path, app_state.session_cache.open),
        )
        if file_history is None:
            raise NotFound("no session accessed this file")
        return file_history

    def _get(self, index: SessionIndex, kind: str, name: str, max_entries: int, make: Callable[[], _T]) -> _T:
        (batch,) = index.connection.execute("SELECT coalesce(max(id), 0) FROM batches WHERE NOT open").fetchone()
        with self._lock:
            if batch != self._batch:
                self._results.clear()
                self._batch = batch
            results = self._results.setdefault(kind, OrderedDict())
            if name in results:
                results.move_to_end(name)
                return results[name]
        result = make()
        with self._lock:
            if batch == self._batch:
                results[name] = result
                while len(results) > max_entries:
                    results.popitem(last=False)
        return result


_FILE_CACHES: Final[WeakKeyDictionary[AppState, FileCache]] = WeakKeyDictionary()


def file_cache_of(app_state: AppState) -> FileCache:
    """Return the file cache of an app state."""
    return _FILE_CACHES.setdefault(app_state, FileCache())


_MAX_FILES: Final = 400
"""Maximum files of a directory in the tree."""


class Folder(msgspec.Struct):
    """A directory with its touched files."""

    name: str
    path: str
    touches: int = 0
    folders: dict[str, "Folder"] = {}
    files: list[TouchedFile] = []


class TreeRow(msgspec.Struct, frozen=True):
    """A row of the tree."""

    depth: int
    name: str
    path: str
    touches: int
    folder: bool
    open: bool = False
    parent: str = ""
    """Path of the parent directory's row."""


def build_tree(files: Iterable[TouchedFile], project: str) -> Folder:
    """Return the files as a tree of directories, with paths relative to the project."""
    base = project.replace("\\", "/").rstrip("/")
    root = Folder("", base, 0, {}, [])
    for file in files:
        path = file.path.replace("\\", "/")
        folder = root
        touches = file.reads + file.edits + file.backups
        folder.touches += touches
        folder_path = base
        if base and path.startswith(f"{base}/"):
            relative = path[len(base) + 1 :]
        else:
            relative, folder_path = path, ""
        *folders, _ = [part for part in relative.split("/") if part] or [relative]
        for position, part in enumerate(folders):
            is_root = position == 0 and path.startswith("/") and folder_path == ""
            folder_path = f"{folder_path}/{part}" if folder_path or is_root else part
            folder = folder.folders.setdefault(
                folder_path, Folder(f"/{part}" if is_root else part, folder_path, 0, {}, [])
            )
            folder.touches += touches
        folder.files.append(file)
    return root


def tree_rows(root: Folder, chosen: str) -> Iterator[TreeRow]:
    """Yield the rows of the tree, with the directories that contain the selected path expanded."""
    yield from _rows_below(root, chosen, 0)


def _rows_below(folder: Folder, chosen: str, depth: int) -> Iterator[TreeRow]:
    parent = folder.path if depth else ""
    for child in sorted(folder.folders.values(), key=_folder_order):
        name, last = child.name, child
        # A directory that contains only one directory shares a row with it.
        while len(last.folders) == 1 and not last.files:
            last = next(iter(last.folders.values()))
            name = f"{name}/{last.name}"
        is_open = chosen == last.path or chosen.startswith(f"{last.path}/")
        yield TreeRow(depth, name, last.path, last.touches, folder=True, open=is_open, parent=parent)
        if is_open:
            yield from _rows_below(last, chosen, depth + 1)
    for file in sorted(folder.files, key=_file_order)[:_MAX_FILES]:
        name = file.path.replace("\\", "/").rpartition("/")[2]
        yield TreeRow(depth, name, file.path, file.reads + file.edits, folder=False)


def files_inside(files: Iterable[TouchedFile], folder: str) -> list[TouchedFile]:
    """Return the files below a directory."""
    start = f"{folder}/"
    return [file for file in files if file.path.replace("\\", "/").startswith(start)]


def folder_paths(root: Folder) -> Iterator[str]:
    """Yield the path of every directory of a tree."""
    stack = [root]
    while stack:
        folder = stack.pop()
        yield folder.path
        stack.extend(folder.folders.values())


def _folder_order(folder: Folder) -> str:
    return folder.name.lower()


def _file_order(file: TouchedFile) -> str:
    return file.path.lower()


View: TypeAlias = Literal["diff", "before", "after"]
_MAX_LINES: Final = 5_000


class FilePanel(msgspec.Struct, frozen=True, kw_only=True):
    """One version of a file, or a diff of two versions."""

    body: Markup
    view: View
    views: tuple[View, ...]
    """Available views."""
    provenance: str
    """Note on the certainty of the content; may be empty."""
    added: int = 0
    removed: int = 0
    surviving_lines: tuple[int, int] | None = None
    """Added lines that are still in the last version, and all added lines."""
    hidden_lines: int = 0
    """Number of lines that are not shown."""


def version_panel(history: History, version: Version, view: str, *, full: bool) -> FilePanel:
    """Return the diff of a version, or the file before or after it."""
    earlier = history.version_before(version)
    old = None if version.before is None else normalize_newlines(version.before)
    new = _version_text(version)
    views: list[View] = []
    if version.changes and old is not None and new is not None:
        views.append("diff")
    if version.changes and (old or earlier is not None):
        views.append("before")
    views.append("after")
    view_by_name: dict[str, View] = {view_name: view_name for view_name in views}
    chosen = view_by_name.get(view, views[0])
    language = language_of(history.path)
    more = 0
    if chosen == "diff" and old is not None and new is not None:
        body = _diff_html(old, new, language)
    else:
        displayed = version
        if chosen == "before":
            displayed = earlier if old is None else msgspec.structs.replace(version, text=old)
        body, more = _full_text_html(displayed, language, full=full)
    return FilePanel(
        body=body,
        view=chosen,
        views=tuple(views),
        provenance=certainty_text(version),
        added=version.added,
        removed=version.removed,
        surviving_lines=_surviving_lines(history, version, old, new),
        hidden_lines=more,
    )


def diff_panel(history: History, a: Version, b: Version) -> FilePanel:
    """Return the diff of two versions."""
    old, new = _version_text(a), _version_text(b)
    if old is None or new is None:
        unknown = [event_text(each) for each, text in ((a, old), (b, new)) if text is None]
        body = _note_html(f"Full content unknown: {', '.join(unknown).lower()}.")
        return FilePanel(body=body, view="diff", views=("diff",), provenance="")
    stretches = diff_texts(old, new, 0)
    lines = [line[:1] for stretch in stretches for line in stretch.lines]
    return FilePanel(
        body=_diff_html(old, new, language_of(history.path)),
        view="diff",
        views=("diff",),
        provenance="",
        added=lines.count("+"),
        removed=lines.count("-"),
    )


def _version_text(version: Version | None) -> str | None:
    return None if version is None else normalized_text(version)


def _surviving_lines(history: History, version: Version, old: str | None, new: str | None) -> tuple[int, int] | None:
    last = next(
        (_version_text(candidate) for candidate in reversed(history.versions) if candidate.text is not None), None
    )
    if last is None or old is None or new is None or version.verb not in ("edit", "write"):
        return None
    counted = count_surviving_lines(old, new, last)
    return counted if counted[1] else None


def _diff_html(old: str, new: str, language: str) -> Markup:
    stretches = diff_texts(old, new)
    if not stretches:
        return _note_html("No differences")
    return trusted_markup(diff_table(stretches, language))


def _full_text_html(version: Version | None, language: str, *, full: bool) -> tuple[Markup, int]:
    text = _version_text(version)
    if version is None or (text is None and not version.pieces):
        words_ = version.note if version is not None and version.note else ""
        return _note_html(words_ or "Content of this version not recorded"), 0
    if text is None:
        return Markup("").join(_partial_text_html(version.pieces, version.total, language)), 0
    if not text:
        return _note_html("Empty file"), 0
    lines = text.split("\n")
    if full or len(lines) <= _MAX_LINES:
        return trusted_markup(code_block(text, language, start=1)), 0
    first_lines = code_block("\n".join(lines[:_MAX_LINES]), language, start=1)
    return trusted_markup(first_lines), len(lines) - _MAX_LINES


def _partial_text_html(known_pieces: Sequence[KnownLines], total: int | None, language: str) -> Iterator[Markup]:
    """Yield the known parts of a file and the sizes of the gaps between them."""
    next_line = 1
    for piece in known_pieces:
        if piece.start > next_line:
            yield _gap_html(piece.start - next_line)
        yield trusted_markup(code_block("\n".join(piece.lines), language, start=piece.start))
        next_line = piece.start + len(piece.lines)
    if total is None:
        yield _note_html("Number of further lines unknown")
    elif next_line <= total:
        yield _gap_html(total - next_line + 1)


def _gap_html(line_count: int) -> Markup:
    return Markup('<p class="unknown-lines">{} unknown</p>').format(humanize.count(line_count, "line"))


def _note_html(text: str) -> Markup:
    return Markup('<p class="nothing">{}</p>').format(text)
