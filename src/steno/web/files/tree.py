"""Paths → folders, with one way down them open."""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from steno.report.files.touched import Touched

__all__ = ["Branch", "Folder", "folders_in", "inside", "rows_of", "tree_of"]

_MOST: Final = 400
"""Rows; of a folder with more files only so many are shown in the tree."""


class Folder(msgspec.Struct):
    """A folder with what was touched in it."""

    name: str
    path: str
    touches: int = 0
    folders: dict[str, "Folder"] = {}
    files: list[Touched] = []


class Branch(msgspec.Struct, frozen=True):
    """A row of the tree."""

    depth: int
    name: str
    path: str
    touches: int
    folder: bool
    open: bool = False
    above: str = ""
    """The folder whose row it stands below."""


def tree_of(files: Iterable[Touched], project: str) -> Folder:
    """Return the files as folders; those below the project are named from there on."""
    base = project.replace("\\", "/").rstrip("/")
    root = Folder("", base, 0, {}, [])
    for file in files:
        way = file.path.replace("\\", "/")
        here = root
        number = file.reads + file.edits + file.backups
        here.touches += number
        at = base
        if base and way.startswith(f"{base}/"):
            rest = way[len(base) + 1 :]
        else:
            rest, at = way, ""
        *folders, _ = [part for part in rest.split("/") if part] or [rest]
        for place, part in enumerate(folders):
            top = place == 0 and way.startswith("/") and at == ""
            at = f"{at}/{part}" if at or top else part
            here = here.folders.setdefault(at, Folder(f"/{part}" if top else part, at, 0, {}, []))
            here.touches += number
        here.files.append(file)
    return root


def rows_of(root: Folder, chosen: str) -> Iterator[Branch]:
    """Yield the rows of the tree: the folders on the way to what is chosen are open."""
    yield from _below(root, chosen, 0)


def _below(folder: Folder, chosen: str, depth: int) -> Iterator[Branch]:
    above = folder.path if depth else ""
    for each in sorted(folder.folders.values(), key=_name):
        name, last = each.name, each
        # A folder with nothing but one folder in it is one row with that.
        while len(last.folders) == 1 and not last.files:
            last = next(iter(last.folders.values()))
            name = f"{name}/{last.name}"
        opened = chosen == last.path or chosen.startswith(f"{last.path}/")
        yield Branch(depth, name, last.path, last.touches, folder=True, open=opened, above=above)
        if opened:
            yield from _below(last, chosen, depth + 1)
    for file in sorted(folder.files, key=_path)[:_MOST]:
        name = file.path.replace("\\", "/").rpartition("/")[2]
        yield Branch(depth, name, file.path, file.reads + file.edits, folder=False)


def inside(files: Iterable[Touched], folder: str) -> list[Touched]:
    """Return the files below a folder."""
    start = f"{folder}/"
    return [file for file in files if file.path.replace("\\", "/").startswith(start)]


def folders_in(root: Folder) -> Iterator[str]:
    """Yield the path of every folder of a tree."""
    stack = [root]
    while stack:
        folder = stack.pop()
        yield folder.path
        stack.extend(folder.folders.values())


def _name(folder: Folder) -> str:
    return folder.name.lower()


def _path(file: Touched) -> str:
    return file.path.lower()
