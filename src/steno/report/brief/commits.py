"""Commits and pull requests, as git and gh said that they were made."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from steno.report.brief.values import Commit, Pull
from steno.report.deeds.deed import Deed
from steno.session.story.turns import Turn
from steno.session.transcript import Transcript

__all__ = ["commits", "linked_pulls", "pulls"]

_MADE: Final = re.compile(
    r"^\[(?P<branch>[^\]\n]{1,200}?)(?: \(root-commit\))? (?P<hash>[0-9a-f]{7,40})\] (?P<subject>\S.*)$",
    re.MULTILINE,
)
_SIZE: Final = re.compile(
    # Where it is another's, or amended, git says whose it is and of when first.
    r"(?:\s*(?:Author|Committer|Date): [^\n]*\n){0,3}"
    r"\s*(\d{1,9}) files? changed(?:, (\d{1,9}) insertions?\(\+\))?(?:, (\d{1,9}) deletions?\(-\))?"
)
_MESSAGE: Final = re.compile(
    r"(?:\s-[a-zA-Z]*m|\s--message)[ =]?\s*"
    r"(?:\"\$\(cat <<-?\s*['\"]?\w+['\"]?\n\s*(?P<here>[^\n]+)|\"(?P<double>[^\"\n]+)|'(?P<single>[^'\n]+))"
)
_TITLE: Final = re.compile(
    r"\s(?:--title|-t)[ =]\s*(?:\"(?P<double>[^\"\n]+)|'(?P<single>[^'\n]+))"
)
_PULL: Final = re.compile(
    r"https?://[\w.:-]+(?:/[\w.~-]+){2,6}/(?:pull|merge_requests|pullrequest|pull-requests)/\d{1,9}"
)
_REHEARSED: Final = re.compile(r"\bgit\b[^\n;&|]{0,200}\bpush\b[^\n;&|]{0,400}\s(?:--dry-run|-n)\b")
_REJECTED: Final = re.compile(r"\[(?:remote )?rejected\]|^error: failed to push", re.MULTILINE)
_HASH: Final = 12
_SUBJECT: Final = 300


def commits(deeds: Iterable[Deed]) -> tuple[Commit, ...]:
    """Return the commits that were made, in order; one that was amended counts once."""
    made: list[Commit] = []
    for deed in deeds:
        shell = deed.shell
        if shell is None or not shell.runs("git"):
            continue
        new = list(_made(deed))
        if new and made and re.search(r"\s--amend\b", deed.step.command):
            made.pop()
        made += new
        if _pushes(deed):
            made = [msgspec.structs.replace(each, pushed=True) for each in made]
    return tuple(made)


def _pushes(deed: Deed) -> bool:
    if deed.shell is None or not deed.shell.runs("git", "push") or deed.step.state != "ok":
        return False
    return not (_REHEARSED.search(deed.step.command) or _REJECTED.search(deed.printed))


def _made(deed: Deed) -> Iterator[Commit]:
    shell = deed.shell
    if shell is None or not any(
        shell.runs("git", verb) for verb in ("commit", "revert", "cherry-pick", "merge", "am")
    ):
        return
    text = deed.printed
    found = None
    for found in _MADE.finditer(text):
        size = _SIZE.match(text, found.end() + 1)
        yield Commit(
            subject=found["subject"].strip()[:_SUBJECT],
            hash=found["hash"][:_HASH],
            branch=found["branch"],
            files=_number(size, 1),
            added=_number(size, 2),
            removed=_number(size, 3),
            turn=deed.turn,
        )
    quiet = re.search(r"\s(?:-q|--quiet)\b", deed.step.command) or not text.strip()
    if found is None and shell.runs("git", "commit") and deed.step.state == "ok" and quiet:
        yield Commit(subject=_given(_MESSAGE, deed.step.command)[:_SUBJECT], turn=deed.turn)


def _number(found: re.Match[str] | None, group: int) -> int:
    return int(found[group] or 0) if found else 0


def _given(pattern: re.Pattern[str], command: str) -> str:
    found = pattern.search(command[:20_000])
    return next((each.strip() for each in found.groups() if each), "") if found else ""


def pulls(deeds: Iterable[Deed]) -> tuple[Pull, ...]:
    """Return the pull requests that were made, by the addresses that were printed."""
    found: dict[str, Pull] = {}
    for deed in deeds:
        if deed.step.state != "ok" or not _makes_pull(deed):
            continue
        urls = _PULL.findall(deed.printed)
        if urls:
            title = _given(_TITLE, deed.step.command)
            found.setdefault(urls[-1], Pull(url=urls[-1], title=title[:_SUBJECT], turn=deed.turn))
    return tuple(found.values())


def _makes_pull(deed: Deed) -> bool:
    shell = deed.shell
    if shell is None:
        return deed.step.verb.endswith(("create_pull_request", "create_merge_request"))
    return shell.runs("gh", "pr", "create") or shell.runs("glab", "mr", "create")


def linked_pulls(transcript: Transcript, turns: Iterable[Turn]) -> Iterator[Pull]:
    """Yield the pull requests that the client itself tied to the session."""
    starts = [(turn.nodes[0].index, turn.number) for turn in turns if turn.nodes]
    for node in transcript.of_type("pr-link"):
        url: Any = transcript.record(node).fields.get("prUrl")
        if isinstance(url, str) and _PULL.fullmatch(url):
            before = [number for index, number in starts if index <= node.index]
            yield Pull(url=url, turn=before[-1] if before else 0)
