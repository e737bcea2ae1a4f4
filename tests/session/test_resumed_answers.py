"""Recorded answers of what is sent on resume: by client, by block, by attachment, by session.

    python -m tests.session.test_resumed_answers

writes the files in `recorded` anew and prints what differs. Read what it prints: an answer that is
wrong is a bug to fix, not to record.
"""

import difflib
import hashlib
import json
import os
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from tests.notation import notation
from tests.session.changed_sessions import BASES, changed_sessions

from steno.errors import BadRequest
from steno.format.source import BytesSource
from steno.session.resume.api_rules import block_flaw, find_breaches, fix_block
from steno.session.resume.clients import CLIENTS, LATEST, STENO, Client, client_for
from steno.session.resume.replay import as_resumed, resumed_leaf, valid_messages
from steno.session.transcript import Transcript, load

FOLDER: Final = Path(__file__).parent / "recorded"
Json = dict[str, Any]
_ALL: Final = (*CLIENTS, STENO)
_CHANGED: Final = sum(1 for _ in changed_sessions())


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


# Clients


def _clients() -> Iterator[str]:
    for version in ("1.0.127", "1.0.128", "2.1.41", "2.1.42", "2.1.199", "2.1.325", "3", "x", ""):
        try:
            yield f"{version!r} reads like {client_for(version).version}"
        except BadRequest as error:
            yield f"{version!r}: {error} ({error.hint})"
    for client, model in product(
        (LATEST, client_for("2.1.200"), client_for("2.1.42")),
        ("", "<synthetic>", "gpt-4", "claude-opus-4-1-x", "claude-opus-4-5", "claude-opus-5-5"),
    ):
        yield f"{client.version} after {model!r} asks {client.model_for(model)!r}"


# Blocks

_ROLES: Final = ("user", "assistant", "system")
_WORDS: Final = {"type": "text", "text": "x"}
_KINDS: Final = (
    *("text", "image", "document", "tool_result", "search_result", "container_upload", "thinking"),
    *("redacted_thinking", "tool_use", "server_tool_use", "web_search_tool_result", "mcp_tool_use"),
    *("web_fetch_tool_result", "code_execution_tool_result", "bash_code_execution_tool_result"),
    *("text_editor_code_execution_tool_result", "tool_search_tool_result", "mcp_tool_result"),
    *("tool_reference", "odd", ""),
)
_FIELDS: Final[tuple[Json, ...]] = (
    {},
    {"text": "x"},
    {"text": ""},
    {"id": "c", "name": "Bash", "input": {}},
    {"id": "c", "name": "Bash", "input": '{"a": 1}'},
    {"id": "c", "name": 5, "input": None},
    {"id": ["ü-7"], "name": "Bash", "input": [1]},
    {"thinking": "x", "signature": "s"},
    {"thinking": "x", "signature": ""},
    {"data": "x"},
    {"source": {"type": "base64", "data": "aGk="}},
    {"source": {"type": "base64", "data": "a?"}},
    {"source": {"type": "text", "data": "x"}},
    {"source": {"type": "content", "content": "x"}},
    {"source": {"type": "url", "url": "https://x"}},
    {"source": {"type": "file", "file_id": "f"}},
    {"source": {"type": "url"}},
    {"source": {"type": 5}},
    {"source": 5},
    {"tool_use_id": "c", "content": "x"},
    {"tool_use_id": "c"},
    {"tool_use_id": "", "content": "x"},
    {"tool_use_id": "c", "content": 5},
    {"tool_use_id": "c", "content": [], "is_error": True},
    {"tool_use_id": "c", "content": "", "is_error": True},
    {"tool_use_id": "c", "content": "x", "is_error": True},
    {"tool_use_id": "c", "content": "x", "is_error": 1},
    {"tool_use_id": "c", "content": [_WORDS, {"type": "odd"}, 5, "y", {"type": "text", "text": ""}]},
    {"tool_use_id": "c", "content": [{"type": "tool_reference"}, {"type": "image"}]},
    {"tool_use_id": "c", "content": [{"type": "tool_reference"}, _WORDS], "is_error": True},
    {"tool_use_id": "c", "content": [{"type": "document"}, {"type": "search_result"}]},
)


def _blocks() -> Iterator[str]:
    """Yield, for each kind of block, the answers and which fields in which role get them."""
    for number, fields in enumerate(_FIELDS):
        yield f"# {number}: {_compact(fields)}"
    for kind in _KINDS:
        said: defaultdict[str, list[str]] = defaultdict(list)
        for (number, fields), role in product(enumerate(_FIELDS), (*_ROLES, "robot")):
            block = {"type": kind, **fields} if kind else fields
            fixed = fix_block(block, role)
            sent = "as it is" if fixed == block else _compact(fixed)
            found = find_breaches([{"role": role, "content": [block]}])
            broken = " ".join(f"{one.rule}@{one.message},{one.block}" for one in found)
            flaw = block_flaw(block, role) or "sound"
            said[f"{flaw}; {sent}; {broken}"].append(f"{role[0]}{number}")
        yield kind
        yield from (f"  {' '.join(places)}: {answer}" for answer, places in said.items())


# Sessions


class _File:
    """A session file, record by record, each hanging on the one before it."""

    def __init__(self) -> None:
        self.records: list[Json] = []

    def add(self, kind: str, **fields: Any) -> "_File":
        number = len(self.records) + 1
        record: Json = {
            "type": kind,
            "uuid": f"u{number}",
            "parentUuid": f"u{number - 1}" if number > 1 else None,
            "timestamp": f"2026-11-15T12:00:{number:02}.000Z",
            "sessionId": "s",
            **fields,
        }
        self.records.append(record)
        return self

    def user(self, content: Any, **fields: Any) -> "_File":
        return self.add("user", message={"role": "user", "content": content}, **fields)

    def answer(self, *blocks: Json, name: str = "m", **fields: Any) -> "_File":
        message: Json = {
            "id": f"{name}{len(self.records)}" if name == "m" else name,
            "role": "assistant",
            "model": fields.pop("model", "claude-opus-5-5"),
            "content": list(blocks),
        }
        return self.add("assistant", message=message, **fields)

    def attach(self, **fields: Any) -> "_File":
        return self.add("attachment", **fields)

    @property
    def data(self) -> bytes:
        return b"".join(msgspec.json.encode(record) + b"\n" for record in self.records)


def _call(name: str) -> Json:
    return {"type": "tool_use", "id": name, "name": "Bash", "input": {}}


def _result(name: str, content: Any = "ok") -> Json:
    return {"type": "tool_result", "tool_use_id": name, "content": content}


def _text(text: str) -> Json:
    return {"type": "text", "text": text}


_THOUGHT: Final = {"type": "thinking", "thinking": "hm", "signature": "s"}
_REMINDER: Final = "<system-reminder>\nremember\n</system-reminder>"
_ATTACHED: Final[dict[str, Json]] = {
    "nothing": {},
    "no object": {"attachment": 5},
    "rendered": {"attachment": {"type": "x"}, "rendered": [{"content": _REMINDER}, {"content": "b"}]},
    "rendered oddly": {"attachment": {"type": "x"}, "rendered": [5, {"content": 5}, {"content": "c"}]},
    "rendered for the system": {
        "attachment": {"type": "x"},
        "rendered": [{"content": _REMINDER}],
        "renderedRole": "system",
    },
    "rendered file": {"attachment": {"type": "file"}, "rendered": [{"content": "1"}, {"content": "2"}]},
    "rendered folder": {"attachment": {"type": "directory"}, "rendered": [{"content": "1"}]},
    "file": {
        "attachment": {
            "type": "file",
            "filename": "/ä.py",
            "content": {"type": "text", "file": {"content": "a\nb", "startLine": 7}},
        }
    },
    "file without a number": {
        "attachment": {"type": "file", "filename": "/b", "content": {"file": {"content": "a\nb"}}}
    },
    "file without content": {"attachment": {"type": "file", "filename": "/b", "content": {"file": {}}}},
    "file of nothing": {"attachment": {"type": "file", "filename": "/b", "content": "x"}},
    "file that is none": {"attachment": {"type": "file", "content": {"file": 5}}},
    "picture": {
        "attachment": {
            "type": "file",
            "filename": "/c.png",
            "content": {"type": "image", "file": {"base64": "aGk=", "type": "image/png"}},
        }
    },
    "picture without data": {
        "attachment": {"type": "file", "filename": "/c", "content": {"type": "image", "file": {}}}
    },
    "base64 that is no picture": {
        "attachment": {
            "type": "file",
            "filename": "/c",
            "content": {"type": "x", "file": {"base64": "aGk=", "content": "q"}},
        }
    },
    "queued": {"attachment": {"type": "queued_command", "prompt": "and this"}},
    "queued nothing": {"attachment": {"type": "queued_command"}},
    "snapshot": {"attachment": {"type": "prompt_snapshot"}},
}


def _made() -> Iterator[tuple[str, bytes]]:
    """Yield small sessions that were made to differ in one thing each."""
    for name, fields in _ATTACHED.items():
        for snapshot in ("", " in a session of system turns"):
            file = _File().user("Q1").attach(**fields)
            if snapshot:
                file.attach(attachment={"type": "prompt_snapshot"})
            file.answer(_text("A1"), _call("c")).user([_result("c")]).attach(**fields)
            file.user("Q2").attach(**fields).answer(_text("A2"))
            yield f"attached {name}{snapshot}", file.data
        yield (
            f"attached {name} behind blocks in a result",
            _File().user("Q1").answer(_call("c")).user([_result("c", [_text("r")])]).attach(**fields).data,
        )
    yield from _mended()
    yield from _commanded()


def _mended() -> Iterator[tuple[str, bytes]]:
    ends: dict[str, list[list[Json]]] = {
        "words": [[_text("A1")]],
        "blank": [[_text(" ")]],
        "nothing": [[]],
        "thought": [[_THOUGHT]],
        "thought and words": [[_THOUGHT, _text("A1")]],
        "open call": [[_text("A1"), _call("c")]],
        "two open calls": [[_call("c"), _call("d")]],
        "call and thought": [[_call("c")], [_THOUGHT]],
        "two lines": [[_text("A1")], [_call("c")]],
    }
    for name, lines in ends.items():
        for behind in ("nothing", "a result", "another result", "a prompt", "a prompt and an answer"):
            file = _File().user("Q1")
            for blocks in lines:
                file.answer(*blocks, name="same")
            if behind == "a result":
                file.user([_result("c")])
            elif behind == "another result":
                file.user([_result("z")])
            elif behind != "nothing":
                file.user("Q2")
            if behind == "a prompt and an answer":
                file.answer(_text("A2"))
            yield f"{name} with {behind} behind", file.data
    twice = _File().user("Q").answer(_call("c")).user([_result("c"), _result("c", "again")])
    yield "one call with two results", twice.answer(_call("c")).user([_result("c", "third")]).data
    first = _File().answer(_text("A0")).user("Q1").answer(_text("A1"))
    yield "an answer first", first.data
    yield "a result first", _File().user([_result("z")]).answer(_text("A1")).data
    late = _File().user("Q").answer(_call("c"), name="m1").answer(_call("d"), name="m1")
    yield "results after words", late.user([_text("w"), _result("d"), _result("c")]).data
    error = _File().user("Q").answer(_text("API Error"), isApiErrorMessage=True, model="<synthetic>")
    yield "an error in place of an answer", error.user("Q2").data
    models = _File().user("Q").answer(_THOUGHT, _text("A"), model="claude-sonnet-4-5")
    yield "two models", models.user("Q2").answer(_THOUGHT, _text("B")).data
    nameless = _File().user("Q").add("assistant", message={"content": [_text("A")]})
    yield "nameless", nameless.add("assistant", message={"content": [_text("B")]}).user("Q2").data


def _commanded() -> Iterator[tuple[str, bytes]]:
    for text in (
        *("Caveat: x", "<local-command-stdout>x</local-command-stdout>", "<command-name>/x", "caveat"),
        *("<bash-input>ls</bash-input>", "<bash-stdout>a</bash-stdout>", "x <command-name>"),
    ):
        file = _File().user("Q1").answer(_text("A1")).user(text)
        yield f"command {text} at the end", file.data
        yield f"command {text}", file.user("Q2").data
    for fields in ({}, {"isDisplayOnly": True}, {"content": ""}, {"content": 5}):
        local: Json = {"subtype": "local_command", "content": "/cost", **fields}
        file = _File().user("Q1").answer(_text("A1")).add("system", **local).user("Q2")
        yield f"local command {_compact(fields)}", file.data
    odd: dict[str, Any] = {
        "no content": None,
        "a number": 5,
        "one block": _text("w"),
        "odd blocks": [5, {}, {"type": 5}, {"type": "tool_use"}, {"type": "tool_result"}, _text("w")],
        "odd result": [_result("c", [5, {"type": "odd"}, _text("w"), {}])],
        "result of nothing": [_result("c", None)],
    }
    for name, content in odd.items():
        file = _File().user("Q1").answer(_text("A1"), _call("c")).user(content).answer(_text("A2"))
        yield f"content: {name}", file.data


def _answers(data: bytes) -> Iterator[str]:
    """Yield what each client sends, clients that send the same together."""
    transcript = load(BytesSource(data))
    said: defaultdict[str, list[str]] = defaultdict(list)
    for client in _ALL:
        said[_answer(transcript, client)].append(client.version)
    for answer, versions in said.items():
        yield f"  {' '.join(versions)}: {answer}"
    valid = valid_messages(transcript)
    if valid != as_resumed(transcript, STENO):
        yield f"  valid: {_told(valid)}"


def _answer(transcript: Transcript, client: Client) -> str:
    leaf = resumed_leaf(transcript, client)
    place = leaf.uuid[-4:] if leaf is not None and leaf.uuid else "nowhere"
    prompted = as_resumed(transcript, client, prompt="GO")
    return f"{_told(as_resumed(transcript, client))} <- {place} {_digest(prompted)}"


def _told(messages: list[Json] | None) -> str:
    if messages is None:
        return "refused"
    told = " | ".join(notation(messages)).replace("\n", "⏎")
    return f"{told} #{_digest(messages)}"


def _digest(messages: object) -> str:
    """Return a short name of the whole answer, of which the rest is a summary."""
    return hashlib.sha256(_compact(messages).encode("utf-8", "surrogatepass")).hexdigest()[:8]


def _sessions(named: Iterable[tuple[str, bytes]]) -> Iterator[str]:
    for name, data in named:
        yield name
        yield from _answers(data)


def _changed(at: int = 0, most: int | None = None) -> Iterator[str]:
    """Yield the answers that differ from those of the session without a change."""
    sessions = list(changed_sessions())
    bases = {name: data for name, data in sessions if name in BASES}
    before: dict[str, set[str]] = {}
    for name, data in sessions[at : None if most is None else at + most]:
        base = name.partition(",")[0]
        if base not in before:
            before[base] = set(_answers(bases[base]))
        yield name
        yield from (each for each in _answers(data) if name == base or each not in before[base])


def _random(shared: Path) -> Iterator[tuple[str, bytes]]:
    """Yield sessions that were drawn, of which the newest client's answer is known."""
    lines = (shared / "corpus" / "resume-fuzz" / "2.1.325.jsonl").read_bytes().splitlines()
    for line in lines[::4]:
        case = json.loads(line)
        yield case["name"], case["before"].encode()


def _differs(name: str, lines: Iterable[str]) -> list[str]:
    path = FOLDER / f"{name}.txt"
    recorded = path.read_text().splitlines() if path.exists() else []
    return list(difflib.unified_diff(recorded, list(lines), name, name, lineterm="", n=1))


@pytest.mark.parametrize("name", ["clients", "blocks"])
def test_the_habits_and_the_rules_are_those_that_were_recorded(name: str) -> None:
    assert not _differs(name, {"clients": _clients, "blocks": _blocks}[name]())


def _wrong(table: str, lines: Iterable[str]) -> list[str]:
    """Return the sessions of which something else is recorded."""
    recorded = _sections((FOLDER / f"{table}.txt").read_text().splitlines())
    return [name for name, told in _sections(lines).items() if recorded.get(name) != told]


def _sections(lines: Iterable[str]) -> dict[str, list[str]]:
    made: dict[str, list[str]] = {}
    name = ""
    for line in lines:
        if line.startswith("  "):
            made[name].append(line)
        else:
            name = line
            made[name] = []
    return made


@pytest.mark.parametrize("part", range(6))
def test_what_is_sent_of_small_sessions_is_what_was_recorded(part: int) -> None:
    assert _wrong("sessions", _sessions(list(_made())[part::6])) == []


@pytest.mark.parametrize("at", range(0, _CHANGED, 25))
def test_what_is_sent_of_sessions_with_one_thing_changed_is_what_was_recorded(at: int) -> None:
    assert _wrong("changed", _changed(at, 25)) == []


def test_whatever_is_changed_what_is_sent_can_be_sent() -> None:
    for name, data in (*_made(), *changed_sessions()):
        assert find_breaches(valid_messages(load(BytesSource(data)))) == [], name


@pytest.mark.corpus
@pytest.mark.parametrize("part", range(5))
def test_what_every_client_sends_of_drawn_sessions_is_what_was_recorded(shared: Path, part: int) -> None:
    assert _wrong("drawn", _sessions(list(_random(shared))[part::5])) == []


def main() -> None:
    """Write every file, and print what differs."""
    shared = Path(os.environ.get("STENO_SHARED", FOLDER.parents[2].parent / "shared"))
    tables = {
        "clients": _clients(),
        "blocks": _blocks(),
        "sessions": _sessions(_made()),
        "changed": _changed(),
        "drawn": _sessions(_random(shared)),
    }
    for name, lines in tables.items():
        made = list(lines)
        sys.stdout.writelines(f"{line}\n" for line in _differs(name, made))
        (FOLDER / f"{name}.txt").write_text("".join(f"{line}\n" for line in made))


if __name__ == "__main__":
    main()
