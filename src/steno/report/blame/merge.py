"""What sessions wrote and what git knows → where each line comes from."""

from collections.abc import Sequence
from typing import Final

import msgspec

from steno.report.blame.values import Blamed, Origin
from steno.report.blame.weave import BEFORE, NOBODY, common
from steno.report.files.values import Version
from steno.store.git import Commit, Row

__all__ = ["Chain", "committed", "merge"]

_SECOND: Final = 1000


class Chain(msgspec.Struct, frozen=True):
    """What is known by one name of the file: its versions, and a mark for each line of now."""

    path: str
    versions: Sequence[Version]
    marks: Sequence[int]


def committed(rows: Sequence[Row], lines: Sequence[str]) -> list[Commit | None]:
    """Return for each line of now the commit that has it; None for what is not committed."""
    found: list[Commit | None] = [None] * len(lines)
    for one, other in common([row.text.removesuffix("\r") for row in rows], lines):
        found[other] = rows[one].commit
    return found


def merge(
    lines: Sequence[str],
    chains: Sequence[Chain],
    commits: Sequence[Commit | None],
    wanted: range,
) -> tuple[list[Blamed], list[Origin]]:
    """Return the lines at some places, and where they come from, with how many are of each."""
    places: dict[tuple[str, str, str, str], int] = {}
    origins: list[Origin] = []
    counts: list[int] = []
    blamed: list[Blamed] = []
    for at in wanted:
        origin = _origin(at, chains, commits[at])
        version, commit = origin.version, origin.commit
        key = (
            origin.kind,
            origin.path,
            version.name if version is not None else "",
            commit.hash if commit is not None else "",
        )
        if key not in places:
            places[key] = len(origins)
            origins.append(origin)
            counts.append(0)
        counts[places[key]] += 1
        blamed.append(Blamed(at + 1, lines[at], places[key]))
    told = [
        msgspec.structs.replace(origin, lines=count)
        for origin, count in zip(origins, counts, strict=True)
    ]
    return blamed, told


def _origin(at: int, chains: Sequence[Chain], commit: Commit | None) -> Origin:
    rest: Origin | None = None
    for chain in chains:
        mark = chain.marks[at]
        version = chain.versions[mark] if mark >= 0 else None
        if version is not None and version.verb in ("write", "edit"):
            if not _was_there(version, commit):
                return Origin(kind="session", version=version, path=chain.path, commit=commit)
        elif rest is None:
            rest = _found(chain, mark)
    if commit is not None:
        return Origin(kind="commit", commit=commit)
    return rest or Origin(kind="unknown")


def _found(chain: Chain, mark: int) -> Origin | None:
    """Return what is known of a line that no call of a session wrote."""
    if mark == BEFORE:
        return Origin(kind="before", version=chain.versions[0], path=chain.path)
    end = len(chain.versions) if mark == NOBODY else mark
    last = chain.versions[end - 1] if end else None
    suspect = last if last is not None and last.verb == "command" and not last.settled else None
    if mark != NOBODY:
        found = chain.versions[mark]
        return Origin(kind="outside", version=found, path=chain.path, suspect=suspect)
    return Origin(kind="unknown", path=chain.path, suspect=suspect) if suspect else None


def _was_there(version: Version, commit: Commit | None) -> bool:
    """Whether a line was committed before a session wrote it that did not say what was before."""
    if commit is None or version.before is not None or version.time is None:
        return False
    return (commit.time + 1) * _SECOND < version.time
