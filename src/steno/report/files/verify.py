"""Whether files are rebuilt as clients recorded them, and what cannot be rebuilt.

Clients keep more of a change than it takes to carry it out: the whole file before it, the patch,
and later reads. Here all of that is held against what was rebuilt without looking at it.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from steno.errors import Unreadable
from steno.format.tool_catalogue import EDITING_TOOLS
from steno.report.files.rebuild import rebuild
from steno.report.files.recorded import touches_in
from steno.report.files.said import Said, said_by
from steno.report.files.texts import fits, same
from steno.report.files.values import Touch, Version
from steno.session.transcript import load
from steno.store.discover import Discovery
from steno.store.read import FileSource

if TYPE_CHECKING:
    from steno.store.found import Found

__all__ = ["Trial", "Wrong", "verify", "verify_below"]

_RECORDED: Final = frozenset(
    ("originalFile", "structuredPatch", "originalFileContents", "original_file")
)


class Wrong(msgspec.Struct, frozen=True):
    """A change that was rebuilt otherwise than the client recorded it."""

    path: str
    session: str
    offset: int
    tool: str
    why: str


class Trial(msgspec.Struct, kw_only=True):
    """How rebuilding went, over as many files as were tried."""

    transcripts: int = 0
    unreadable: int = 0
    files: int = 0
    changes: int = 0
    rebuilt: int = 0
    """Changes whose whole file is known after them."""
    befores: int = 0
    """Held against the whole file before, as recorded."""
    patches: int = 0
    """Held against the recorded patch."""
    chained: int = 0
    """Rebuilt once more from the calls alone, and held against the records of what came next."""
    gaps: int = 0
    """Times that something else than a session changed a file in between."""
    unknown: dict[str, int] = {}
    """Changes that cannot be rebuilt, by tool and reason."""
    wrong: list[Wrong] = []


def verify_below(
    roots: Iterable[str],
    planned: Callable[[int], Callable[[int], None]] = lambda _: lambda _: None,
) -> Trial:
    """Try every transcript below some folders, each by itself; `planned` hears how far it is."""
    found: dict[str, Found] = {}
    for root in roots:
        found |= {each.path: each for each in Discovery(root).transcripts()}
    step = planned(sum(each.size for each in found.values()))
    trial = Trial()
    for each in found.values():
        try:
            with FileSource(each.path) as source:
                chains = touches_in(load(source))
        except Unreadable:
            trial.unreadable += 1
        else:
            trial.transcripts += 1
            for path, touches in chains.items():
                verify(path, touches, trial)
        step(each.size)
    return trial


def verify(path: str, touches: Sequence[Touch], trial: Trial) -> None:
    """Try the touches of one file, in the order they happened."""
    made = [touch for touch in touches if touch.tool in EDITING_TOOLS]
    if not made:
        return
    versions = rebuild(touches)
    trial.files += 1
    trial.changes += len(made)
    trial.gaps += sum(each.verb == "outside" for each in versions)
    for touch, version in zip(made, _changes(versions), strict=True):
        said = said_by(touch)
        if version.text is None:
            reason = f"{touch.tool}: {version.note}"
            trial.unknown[reason] = trial.unknown.get(reason, 0) + 1
            continue
        trial.rebuilt += 1
        why = _held(version, version.text, said, trial)
        if why:
            trial.wrong.append(_wrong(path, touch, why))
    _chain(path, touches, versions, trial)


def _changes(versions: Iterable[Version]) -> list[Version]:
    return [each for each in versions if each.verb in ("write", "edit")]


def _held(version: Version, text: str, said: Said, trial: Trial) -> str:
    """Return what is wrong with a version beside what its own touch recorded."""
    if said.before is None:
        return ""
    trial.befores += 1
    if version.before is None or not same(version.before, said.before):
        return "the file before it is not the recorded one"
    if said.patch:
        trial.patches += 1
        if not fits(said.patch, said.before, text):
            return "the recorded patch does not lead to it"
    return ""


def _chain(path: str, touches: Sequence[Touch], versions: Sequence[Version], trial: Trial) -> None:
    """Rebuild without a word of what was before, up to where something else changed the file."""
    end = next((at for at, each in enumerate(versions) if each.verb == "outside"), None)
    sure = _changes(versions[:end])
    made = [touch for touch in touches if touch.tool in EDITING_TOOLS][: len(sure)]
    bare = _changes(rebuild(_bare(touch) for touch in touches))
    later = [said_by(touch).before for touch in made[1:]]
    for touch, version, again, recorded in zip(made, sure, bare, [*later, None], strict=False):
        if again.text is None or version.text is None:
            continue
        trial.chained += 1
        if not same(again.text, version.text if recorded is None else recorded):
            trial.wrong.append(_wrong(path, touch, "the calls alone lead elsewhere"))


def _bare(touch: Touch) -> Touch:
    """Return a touch as clients note it that keep nothing of the file before."""
    left = {name: value for name, value in touch.result.items() if name not in _RECORDED}
    return msgspec.structs.replace(touch, result=left)


def _wrong(path: str, touch: Touch, why: str) -> Wrong:
    return Wrong(path, touch.session, touch.offset, touch.tool, why)
