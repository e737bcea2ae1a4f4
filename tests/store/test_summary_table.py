"""What a listing shows of each small transcript is exactly what is recorded."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from tests.index.transcripts import TRANSCRIPTS, Script, call, result
from tests.recorded_answers import assert_recorded, plain

from steno.format.source import BytesSource
from steno.session.session import Session
from steno.session.transcript import load
from steno.session.turns.session_facts import count_session
from steno.store import session_counts
from steno.store.discovery import discover_file
from steno.store.file_source import FileSource
from steno.store.session_counts import count_agents, count_turns
from steno.store.summary import END_SIZE, SessionSummary, project_in_listing, summarize

ANSWERS: Final = Path(__file__).with_name("answers")
_STORY: Final = "<system-reminder>keep\nit</system-reminder>\n"
NOW: Final = 1_794_744_600.0

MORE: Final[dict[str, Callable[[], Script]]] = {
    "reminder before words": lambda: Script().user(_STORY + "Real words").bot("Two"),
    "only a reminder": lambda: Script().user(_STORY).bot("Two"),
    "reminder in a block": lambda: Script().user(
        [{"type": "text", "text": _STORY}, {"type": "text", "text": "Then"}]).bot("Two"),
    "two reminders": lambda: Script().user(_STORY + _STORY + " Words ").bot("Two"),
    "reminder inside": lambda: Script().user("Words " + _STORY).bot("Two"),
    "picture alone": lambda: Script().user([{"type": "image"}]).bot("Two"),
    "document alone": lambda: Script().user([{"type": "document"}]).bot("Two"),
    "nothing in it": lambda: Script().user([]).bot("Two"),
    "blank prompt": lambda: Script().user("  ").user("Words").bot("Two"),
    **{
        f"machine: {tag}": lambda tag=tag: Script().user(f" <{tag}>x").user("Words").bot("Two")
        for tag in ("command-name", "command-message", "command-args", "local-command-stdout",
                    "bash-stdout", "task-notification", "system-reminder", "user-memory-input",
                    "teammate-message", "tick", "other")
    },
    "command with slash": lambda: Script().user("<command-name> /init </command-name>").bot("Two"),
    "command without slash": lambda: Script().user("<command-name>init</command-name>").bot("Two"),
    "shell command": lambda: Script().user("<bash-input>ls -l</bash-input>").bot("Two"),
    "two commands named": lambda: Script().user("<command-name>/a</command-name>").user(
        "<command-name>/b</command-name>").bot("Two"),
    "command far inside": lambda: Script().user(" " * 1990 + "<command-name>/a</command-name>").bot("x"),
    "exit then answer": lambda: Script().user("One").user("<command-name>/exit</command-name>").bot("x"),
    "last prompt wins": lambda: Script().user("One").bot("x").raw(
        {"type": "last-prompt", "lastPrompt": "Newer"}).raw({"type": "last-prompt", "lastPrompt": ""}),
    "titles in order": lambda: Script().user("One").bot("x").raw(
        {"type": "summary", "summary": "Sum", "leafUuid": "u2"}).raw(
        {"type": "summary", "summary": "Sum2", "leafUuid": "u1"}).raw(
        {"type": "summary", "summary": "Other", "leafUuid": "zz"}),
    "ai title over a summary": lambda: Script().user("One").bot("x").raw(
        {"type": "summary", "summary": "Sum", "leafUuid": "u2"}).raw({"type": "ai-title", "aiTitle": "A"}),
    "dialect words": lambda: Script().raw({"type": "human", "uuid": "a", "message": "Words", "cwd": "/d"}),
    "times as numbers": lambda: Script().user("One", timestamp=1_794_744_001).bot(
        "x", timestamp=1_794_744_002_000),
    "odd times": lambda: Script().user("One", timestamp="soon").bot("x", timestamp="later"),
    "entry points": lambda: Script().user("One", entrypoint="cli").bot("x", entrypoint="sdk")
        .bot("y", entrypoint=""),
    "tool answered": lambda: Script().user("One").bot(call("Bash")).user([result()]),
    "one of two answered": lambda: Script().user("One").bot(call("Bash", 1), call("Read", 2))
        .user([result(2)]),
    "plan question": lambda: Script().user("One").bot(call("ExitPlanMode")),
    "question answered": lambda: Script().user("One").bot(call("AskUserQuestion")).user([result()]),
    "refused, then answered": lambda: Script().user("One").system("api_error").bot("x"),
    "refused": lambda: Script().user("One").system("api_error"),
    "other note": lambda: Script().user("One").bot("x").system("informational"),
    "closed, then asked": lambda: Script().user("One").bot("x").raw({"type": "cost-state"}).user("Two"),
    "all aside": lambda: Script().user("One", isSidechain=True).bot("x", isSidechain=True),
    "only an interrupt": lambda: Script().user("[Request interrupted by user]"),
    "interrupt first": lambda: Script().user("[Request interrupted by user for tool use]").bot("x")
        .user("Words").bot("y"),
    "interrupt quoted": lambda: Script().user("It says [Request interrupted by user").bot("x"),
    "other session id": lambda: Script().raw({"type": "mode", "sessionId": "first"}).user(
        "One", sessionId="second").bot("x"),
}  # fmt: skip
_ALL: Final = {**TRANSCRIPTS, **MORE}


def _written(folder: Path, data: bytes) -> str:
    path = folder / "talk.jsonl"
    path.write_bytes(data)
    os.utime(path, (1e9, 1e9))
    return str(path)


def _shown(look: SessionSummary) -> dict[str, Any]:
    """Return the fields that say something."""
    fields = plain(look)
    fields.update(started=look.started, ended=look.ended, hidden=look.hidden)
    del fields[""], fields["first_time"], fields["last_time"]
    new = msgspec.structs.asdict(SessionSummary(""))
    return {k: v if not isinstance(v, str) or len(v) < 99 else f"{v[:9]}…{len(v)}"
            for k, v in fields.items() if k not in new or plain(new[k]) != v}  # fmt: skip


@pytest.mark.parametrize("number", range(3))
def test_every_transcript_is_listed_as_recorded(number: int, tmp_path: Path) -> None:
    answers: dict[str, object] = {}
    for name in list(_ALL)[number::3]:
        found = discover_file(_written(tmp_path, _ALL[name]().bytes()))
        answer = _shown(summarize(found, NOW))
        answer["shown"] = project_in_listing(found)
        answer["turns"] = count_turns(found)
        answers[name] = answer
    assert_recorded(ANSWERS / f"glance_{number}.json", answers)


def test_turns_are_counted_as_the_story_counts_them(tmp_path: Path) -> None:
    """The fast scan of a listing agrees with the page of the session, but for odd files."""
    other: dict[str, object] = {}
    for name, script in _ALL.items():
        data = script().bytes()
        told = count_session(Session(load(BytesSource(data)))).turns
        counted = count_turns(discover_file(_written(tmp_path, data)))
        if told != counted:
            other[name] = [told, counted]
    assert_recorded(ANSWERS / "turns_that_differ.json", other)


def test_status_follows_the_time_since_the_last_record(tmp_path: Path) -> None:
    answers: dict[str, object] = {}
    for name in ("two turns", "call without a result", "question", "refused", "interrupt", "exit"):
        found = discover_file(_written(tmp_path, _ALL[name]().bytes()))
        last = summarize(found, 0.0).ended
        assert last is not None
        ages = (-301, -299, 0, 299, 301, 899, 901, 1799, 1801, 86_399, 86_401)
        answers[name] = {str(age): summarize(found, last + age).status for age in ages}
    assert_recorded(ANSWERS / "glance_status.json", answers)


def _padded(head: bytes, tail: bytes, size: int) -> bytes:
    """Return a file of a size with records of no interest between its ends."""
    line = b'{"type":"progress","data":"%s"}\n' % (b"x" * 470)
    middle = line * ((size - len(head) - len(tail)) // len(line))
    rest = size - len(head) - len(tail) - len(middle)
    return head + middle + b" " * (rest - 1) + b"\n" + tail if rest else head + middle + tail


def test_of_a_long_file_both_ends_are_read_as_far_as_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """How far a glance reads, and what it sees there, for files around each limit."""
    head = Script().user("First").bot("Answer").bytes()
    tail = Script().bot("Last", model="claude-z").raw({"type": "ai-title", "aiTitle": "End"}).bytes()
    reads: list[tuple[int, int]] = []
    whole = FileSource.read

    def watched(self: FileSource, offset: int, length: int) -> bytes:
        reads.append((offset, length))
        return whole(self, offset, length)

    monkeypatch.setattr(FileSource, "read", watched)
    notes = b'{"type":"mode","mode":"plan"}\n'
    answers: dict[str, object] = {}
    cases: dict[str, bytes] = {
        "at the limit": _padded(head, tail, 2 * END_SIZE),
        "above the limit": _padded(head, tail, 2 * END_SIZE + 1),
        "long": _padded(head, tail, 9 * END_SIZE),
        "prompt late": _padded(notes, b"", 3 * END_SIZE) + head + _padded(notes, tail, 3 * END_SIZE),
        "prompt very late": _padded(notes, b"", 17 * END_SIZE) + head + _padded(notes, tail, 3 * END_SIZE),
        "no prompt": _padded(notes, b"", 40 * END_SIZE),
        "long first line": Script().user("x" * (5 * END_SIZE)).bot("a").bytes() + _padded(b"", tail, 4 * END_SIZE),
        "very long first line": Script().user("x" * (20 * END_SIZE)).bot("a").bytes() + _padded(b"", tail, 4 * END_SIZE),
        "long last line": _padded(head, b"", 2 * END_SIZE) + Script().bot("y" * (3 * END_SIZE)).bytes(),
        "very long last line": _padded(head, b"", 2 * END_SIZE) + Script().bot("y" * (20 * END_SIZE)).bytes(),
        "one line": Script().user("x" * (3 * END_SIZE)).bytes(),
        "blank end": _padded(head, tail, 4 * END_SIZE) + b"\n" * (END_SIZE + 1),
    }  # fmt: skip
    for name, data in cases.items():
        found = discover_file(_written(tmp_path, data))
        reads.clear()
        answer = _shown(summarize(found, NOW))
        answer["reads"] = [list(each) for each in reads]
        reads.clear()
        answer["shown"] = project_in_listing(found)
        answer["reads for it"] = [list(each) for each in reads]
        answer["turns"] = count_turns(found)
        answers[name] = answer
    assert_recorded(ANSWERS / "glance_long.json", answers)


def test_sub_agents_are_counted_without_those_that_only_warm_up(tmp_path: Path) -> None:
    session = discover_file(_written(tmp_path, TRANSCRIPTS["two turns"]().bytes()))
    agents: list[Any] = []
    for number, words in enumerate(("Look", "Warmup", " Warmup ", "Warmup now", "Go")):
        path = tmp_path / f"agent-{number}.jsonl"
        made = Script().user(words, isSidechain=True, agentId=f"a{number}")
        path.write_bytes(made.bot("x", isSidechain=True).bytes())
        agents.append(discover_file(str(path)))
    assert count_agents(session, agents) == 3
    assert count_agents(session, ()) == 0
    empty = tmp_path / "agent-e.jsonl"
    empty.write_bytes(b"Warmup\n")
    assert count_agents(session, [discover_file(str(empty))]) == 1
    inside = discover_file(_written(tmp_path, TRANSCRIPTS["sidechain inside"]().bytes()))
    # One inside of it, and three beside it that do more than to warm up.
    assert count_agents(inside, ()) == 4


def test_turns_of_files_written_otherwise(tmp_path: Path) -> None:
    """Spaces behind colons, chunks that end anywhere, and lines too long to be prompts."""
    data = TRANSCRIPTS["two turns"]().bytes()
    assert count_turns(discover_file(_written(tmp_path, data.replace(b'":', b'": ')))) == 2
    assert count_turns(discover_file(_written(tmp_path, data.rstrip(b"\n")))) == 2
    assert count_turns(discover_file(_written(tmp_path, b"x" * 3_000_000 + b"\n" + data))) == 2
    assert count_turns(discover_file(_written(tmp_path, data + b'"type":"user"' * 9))) == 2
    assert count_turns(discover_file(_written(tmp_path, b""))) == 0
    assert count_turns(discover_file(_written(tmp_path, b"\n" * 70_000 + data))) == 2
    many = Script()
    for number in range(400):
        many.user(f"Prompt {number} " + "x" * 9_000).bot("y")
    assert count_turns(discover_file(_written(tmp_path, many.bytes()))) == 400


def test_rewound_turns_are_left_out_of_the_count(tmp_path: Path) -> None:
    """A prompt at the parent of an earlier one takes its place, and that of all after it."""
    made = Script().user("A").bot("a").user("B").bot("b").user("C").bot("c")
    made.user("D", parentUuid="u2").bot("d").user("E").bot("e").user("F", parentUuid="u4").bot("f")
    found = discover_file(_written(tmp_path, made.bytes()))
    assert count_turns(found) == 4
    made.user("G", parentUuid="u2").bot("g")
    assert count_turns(discover_file(_written(tmp_path, made.bytes()))) == 2
    seam = Script().user("A").bot("a").system("compact_boundary").user("Sum", isCompactSummary=True)
    assert count_turns(discover_file(_written(tmp_path, seam.bytes()))) == 1
    assert count_turns(discover_file(_written(tmp_path, seam.bot("on").bytes()))) == 1
    aside = Script().user("A").bot("a").system("compact_boundary", isSidechain=True)
    assert count_turns(discover_file(_written(tmp_path, aside.bytes()))) == 1
    cut = Script().bot("tail of a turn").user("B").bot("b")
    assert count_turns(discover_file(_written(tmp_path, cut.bytes()))) == 2


def test_lines_are_found_at_their_offsets_wherever_chunks_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scan sees each line once, with its place, however the file comes in pieces."""
    data = (b"x" * 70 + b"\n") * 3 + b'{"type":"user"}\n' + b"y" * 50 + b'"type":"user"\n' + b"tail"
    having = vars(session_counts)["_lines_containing"]
    whole = list(having(BytesSource(data), [b'"type":"user"'], 0))
    assert whole == [(213, b'{"type":"user"}'), (229, b"y" * 50 + b'"type":"user"')]
    for size in (1, 7, 16, 60, 100):

        def chunks(self: BytesSource, start: int = 0, size: int = size) -> Iterator[bytes]:
            for at in range(start, self.size, size):
                yield self.read(at, min(size, self.size - at))

        monkeypatch.setattr(BytesSource, "chunks", chunks)
        assert list(having(BytesSource(data), [b'"type":"user"'], 0)) == whole, size
        assert list(having(BytesSource(data), [b'"type":"user"'], 71)) == whole, size
        both = list(having(BytesSource(data), [b'"type":"user"', b"tail"], 229))
        assert both == [*whole[1:], (len(data) - 4, b"tail")]


def test_a_file_too_large_for_a_listing_has_no_number(tmp_path: Path) -> None:
    found = discover_file(_written(tmp_path, TRANSCRIPTS["two turns"]().bytes()))
    most = 256 << 20
    assert count_turns(msgspec.structs.replace(found, size=most)) == 2
    large = msgspec.structs.replace(found, size=most + 1)
    assert count_turns(large) is None
    assert count_agents(large, ()) == 0
