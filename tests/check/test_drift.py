"""Drift: what files contain that the catalogue does not know, and silence where there is none."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.builders import VERSIONS, session, text, thinking, tool
from tests.builders.everything import everything
from tests.check.drift_records import corpus, lines, seen, watch

from steno.check.drift import MAX_OBSERVATIONS
from steno.format.catalogue import catalogue, load_catalogue

Change = Callable[[dict[str, Any]], object]
GONE = object()
# The builder leaves out one field that the newest client writes.
NOT_BUILT = {("MISSING_FIELD", "worktree-state", "worktreeSession.preEnterOriginalCwd")}

# What the hand-written sessions of the corpus have that no client writes, and lack that all write.
WRITTEN_BY_HAND = {
    "UNKNOWN_TYPE": {"attachment/zzz_attach": "", "zzz-msg": "", "zzz-unknown": ""},
    "NEW_BLOCK": {"block zzz_block": ""},
    "NEW_FIELD": {
        "assistant/text": "producer zzz",
        "assistant/tool_use": "producer zzz",
        "user/prompt": "isMeta producer toolUseResult zzz",
        "user/tool_result": "isMeta producer zzz",
    },
    "TYPE_MISMATCH": {
        "assistant/api_error": "message.stop_sequence",
        "assistant/text": "cwd gitBranch sessionId timestamp version",
        "assistant/tool_use": "cwd gitBranch sessionId timestamp version",
        "user/prompt": "cwd gitBranch sessionId timestamp version",
        "user/tool_result": "cwd gitBranch sessionId timestamp version",
    },
    "MISSING_FIELD": {
        "assistant/api_error": "message.container message.context_management",
        "assistant/text": "cwd message message.id message.model message.stop_reason parentUuid "
        "sessionId timestamp userType uuid",
        "assistant/tool_use": "cwd message.id message.model message.stop_reason parentUuid "
        "sessionId timestamp userType uuid",
        "block thinking": "signature",
        "system/compact_boundary": "compactMetadata content cwd isSidechain level "
        "logicalParentUuid sessionId userType version",
        "untyped": "type",
        "user/prompt": "cwd isSidechain message message.content message.role parentUuid "
        "sessionId timestamp userType uuid version",
        "user/tool_result": "cwd message.role parentUuid sessionId sourceToolAssistantUUID timestamp userType uuid",
    },
}


def talk(version: str = "2.1.325") -> list[dict[str, Any]]:
    """Return a prompt, a call, its result, and an answer."""
    made = session(version).user("Which port?")
    made = made.assistant(tool("Bash", command="cat port")).result("8080")
    return made.assistant(thinking("Short."), text("It is 8080.")).records()


def is_transcript(name: str) -> bool:
    return name.startswith("projects/") and name.endswith(".jsonl")


def changed(at: int, change: Change, version: str = "2.1.325") -> bytes:
    """Return the same with one record changed."""
    records = talk(version)
    change(records[at])
    return lines(records)


@pytest.mark.parametrize("version", VERSIONS)
def test_sessions_as_the_client_writes_them_do_not_drift(version: str) -> None:
    files = [file for made in everything(version) for file in made.files().items()]
    observer = watch(lines(talk(version)), *(data for name, data in files if is_transcript(name)))
    assert seen(observer.drifts()) <= NOT_BUILT
    assert observer.records > 200


@pytest.mark.corpus
@pytest.mark.parametrize("folder", ["real-client", "public"])
def test_the_corpus_of_real_sessions_does_not_drift(shared: Path, folder: str) -> None:
    observer = watch(*corpus(shared, folder))
    assert observer.records > 4000
    assert observer.drifts() == []


@pytest.mark.corpus
def test_what_was_invented_in_the_cases_written_by_hand_is_named_and_nothing_else(shared: Path) -> None:
    told: dict[str, dict[str, str]] = {}
    for code, kind, path in sorted(seen(watch(*corpus(shared, "resume-cases")).drifts())):
        before = told.setdefault(code, {}).get(kind, "")
        told[code][kind] = f"{before} {path}".strip()
    assert told == WRITTEN_BY_HAND


@pytest.mark.corpus
def test_an_old_catalogue_names_what_the_new_client_brought(shared: Path) -> None:
    facts = catalogue().as_of("2.1.42")
    found = seen(watch(*corpus(shared, "real-client/2.1.325"), facts=facts).drifts())
    assert {
        ("UNKNOWN_TYPE", "api-request", ""),
        ("UNKNOWN_TYPE", "last-prompt", ""),
        ("UNKNOWN_TYPE", "attachment/prompt_snapshot", ""),
        ("UNKNOWN_TYPE", "system/informational", ""),
        ("NEW_BLOCK", "block tool_reference", ""),
        ("NEW_TOOL", "tool Agent", ""),
        ("NEW_FIELD", "user/prompt", "promptSource"),
        ("NEW_FIELD", "assistant/text", "apiBlockIndex"),
        ("NEW_FIELD", "assistant/text", "message.stop_details"),
        ("NEW_FIELD", "usage", "output_tokens_details"),
        ("NEW_FIELD", "tool Bash", "result.persistedOutputPath"),
        ("NEW_FIELD", "file-history-snapshot", "snapshot.trackedFileBackups{}.realParentDir"),
        ("NEW_FIELD", "system/stop_hook_summary", "hookInfos[].durationMs"),
    } <= found
    assert watch(*corpus(shared, "real-client/2.1.42"), facts=facts).drifts() == []


@pytest.mark.parametrize(
    ("at", "path", "value", "expected"),
    [
        (0, "zzz", 1, ("NEW_FIELD", "user/prompt", "zzz")),
        (0, "cwd", 5, ("TYPE_MISMATCH", "user/prompt", "cwd")),
        (0, "userType", GONE, ("MISSING_FIELD", "user/prompt", "userType")),
        (0, "type", "novel", ("UNKNOWN_TYPE", "novel", "")),
        (0, "type", GONE, ("MISSING_FIELD", "untyped", "type")),
        (0, "userType", "internal", ("NEW_VALUE", "user/prompt", "userType=internal")),
        (0, "message.content", ["bare"], ("TYPE_MISMATCH", "user/prompt", "message.content[]")),
        (1, "message.mood", "calm", ("NEW_FIELD", "assistant/tool_use", "message.mood")),
        (1, "message.usage.tea", 2, ("NEW_FIELD", "usage", "tea")),
        (1, "message.content.0.zzz", {}, ("NEW_FIELD", "block tool_use", "zzz")),
        (1, "message.content.0.input.zzz", "sh", ("NEW_FIELD", "tool Bash", "input.zzz")),
        (1, "message.content.0.name", "Brew", ("NEW_TOOL", "tool Brew", "")),
        (2, "toolUseResult.weather", "fair", ("NEW_FIELD", "tool Bash", "result.weather")),
        (2, "toolUseResult", [], ("TYPE_MISMATCH", "tool Bash", "result")),
        (-1, "message.content.0.type", "hologram", ("NEW_BLOCK", "block hologram", "")),
    ],
)
def test_one_change_is_one_difference(at: int, path: str, value: Any, expected: tuple[str, str, str]) -> None:
    records = talk()
    *above, last = path.split(".")
    here: Any = records[at]
    for name in above:
        here = here[int(name)] if isinstance(here, list) else here[name]
    if value is GONE:
        del here[last]
    else:
        here[last] = value
    assert seen(watch(lines(records)).drifts()) == {expected}


def test_a_call_that_the_client_refused_says_nothing_about_the_client() -> None:
    def refuse(given: str, is_error: object) -> bytes:
        records = talk()
        records[1]["message"]["content"][0].update(json.loads(given))
        records[2]["message"]["content"][0]["is_error"] = is_error
        records[2]["toolUseResult"] = "Error: no such thing"
        return lines(records)

    for given in ('{"name": "NoSuchTool"}', '{"input": {"command": "ls", "zzz": 1}}'):
        assert watch(refuse(given, is_error=True)).drifts() == []
        assert len(watch(refuse(given, is_error=False)).drifts()) == 1


def test_a_call_without_an_answer_is_counted_at_the_end_of_the_file() -> None:
    records = talk()[:2]
    records[1]["message"]["content"][0]["name"] = "Brew"
    assert seen(watch(lines(records)).drifts()) == {("NEW_TOOL", "tool Brew", "")}


def test_everything_is_counted_per_client_version() -> None:
    def add(record: dict[str, Any]) -> None:
        record["zzz"] = 1

    files = [changed(0, add, version) for version in ("2.1.42", "2.1.325", "2.1.325")]
    (drift,) = watch(*files).drifts()
    assert (drift.count, drift.versions) == (3, {"2.1.42": 1, "2.1.325": 2})
    (later,) = watch(*files, since="2.1.200").drifts()
    assert later.versions == {"2.1.325": 2}
    assert watch(*files, since="2.2").records == 0


def test_records_without_a_version_count_for_their_neighbours() -> None:
    odd = {"type": "novel", "sessionId": "s"}
    for records in ([odd, *talk()], [*talk(), odd]):
        (drift,) = watch(lines(records)).drifts()
        assert drift.versions == {"2.1.325": 1}
    (drift,) = watch(lines([odd])).drifts()
    assert drift.versions == {"unknown": 1}


def test_a_field_that_newer_clients_no_longer_write_is_missing() -> None:
    records = talk()
    for record in records:
        record["version"] = "2.9.0"
    del records[0]["message"]["role"]
    (drift,) = watch(lines(records)).drifts()
    assert (drift.code, drift.path, drift.versions) == ("MISSING_FIELD", "message.role", {"2.9.0": 1})


def test_no_word_of_a_session_reaches_the_report() -> None:
    words = "hunter2 Ördög \u202e passphrase"

    def hide(record: dict[str, Any]) -> None:
        record[words] = {words: words, "list": [{words: [words]}]}
        record["zzz"] = words
        record["userType"] = words
        record["version"] = words

    data = changed(0, hide) + lines([{"type": words}, {"type": "system", "subtype": words}])
    observer = watch(data)
    told = repr(observer.drifts()) + repr(observer.tallies.keys()) + repr(observer.versions)
    assert len(observer.drifts()) >= 4
    for word in ("hunter", "Ördög", "passphrase", "\u202e"):
        assert word not in told


def test_free_names_do_not_fill_the_memory() -> None:
    files = [
        lines([{"type": f"novel-{n}-{m}", "uuid": "u"} for m in range(100)]) for n in range(MAX_OBSERVATIONS // 100 + 2)
    ]
    names = lines([dict(talk()[0], **{f"zzz{n}": n}) for n in range(200)])
    observer = watch(names, *files)
    assert len(observer.tallies) == MAX_OBSERVATIONS
    assert observer.left_out > 0
    fields = [drift for drift in observer.drifts() if drift.code == "NEW_FIELD"]
    assert len(fields) == 65
    assert next(d.count for d in fields if d.path == "*") == 136


def test_damaged_and_odd_records_are_no_trouble() -> None:
    odd = [
        b'{"type":"user","message":' + b"[" * 3000 + b"]" * 3000 + b"}\n",
        b'{"type":"user","message":{"content":[{"type":5},null,[]]},"version":7}\n',
        b'{"type":"assistant","message":{"content":{"type":"text"},"usage":[]}}\n',
        b'{"type":"\xff","n":' + b"9" * 5000 + b"}\n",
        b'{"type":"attachment","attachment":[]}\n[]\n{"torn\n',
    ]
    assert watch(*odd, b"".join(odd)).drifts()


def test_a_catalogue_survives_being_written_and_cut() -> None:
    facts = catalogue()
    assert load_catalogue(facts.dump()) == facts
    old = facts.as_of("2.1.42")
    assert load_catalogue(old.dump()) == old
    assert old.newest == "2.1.42"
    assert old.kind("last-prompt") is None
    assert old.tool("Agent") is None
    assert old.block("tool_reference") is None
    assert facts.as_of("9.9.9") == facts
