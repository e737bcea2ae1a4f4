"""Learning: the patch makes the catalogue silent, and says nothing but names, types, versions."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.builders import session, text, tool
from tests.check.drift_records import corpus, lines, watch

from steno.check.drift import apply_merge_patch, propose_patch
from steno.format.catalogue import Catalogue, catalogue, load_catalogue


def learned(facts: Catalogue, patch: dict[str, Any]) -> Catalogue:
    return load_catalogue(json.dumps(apply_merge_patch(json.loads(facts.dump()), patch)).encode())


def novel() -> bytes:
    """Return a session of a client that steno has not met."""
    made = session().user("Which port?").assistant(tool("Brew", minutes=3)).result("tea")
    records = made.assistant(text("It is 8080.")).records()
    for record in records:
        record.update(version="2.9.1", mood={"level": 3, "why": ["calm"]})
    records[0]["userType"] = "internal"
    records[0]["cwd"] = None
    del records[0]["message"]["role"]
    records[2]["toolUseResult"] = {"cups": [{"hot": True}]}
    records[3]["message"]["content"].append({"type": "hologram", "data": "x"})
    records.append({"type": "novel", "sessionId": "s", "free keys!": {"a b": 1}, "n": 1})
    records.append({**records[0], "type": "system", "subtype": "tide", "high": 1.5})
    return lines(records)


@pytest.mark.corpus
@pytest.mark.parametrize(
    ("folder", "version"), [("real-client/2.1.325", "2.1.42"), ("real-client", "2.0.76"), ("public", "1.0.17")]
)
def test_what_was_cut_away_is_learned_again(shared: Path, folder: str, version: str) -> None:
    old = catalogue().as_of(version)
    files = corpus(shared, folder)
    observer = watch(*files, facts=old)
    assert len(observer.drifts()) > 50
    again = watch(*files, facts=learned(old, propose_patch(observer)))
    assert again.drifts() == []
    assert propose_patch(again) == {}


def test_where_nothing_drifts_there_is_nothing_to_learn() -> None:
    made = session().user("Which port?").assistant(text("8080")).records()
    assert propose_patch(watch(lines(made))) == {}


def test_a_new_client_is_learned() -> None:
    observer = watch(novel())
    patch = propose_patch(observer)
    facts = learned(catalogue(), patch)
    left = {(drift.code, drift.kind, drift.path) for drift in watch(novel(), facts=facts).drifts()}
    # A name that is no name may be a free key, so it is not learned.
    assert left == {("NEW_FIELD", "novel", '"xxxx xxxx!"')}
    assert facts.newest == "2.9.1"
    assert facts.envelopes["claude"]["mood"].sub.keys() == {"level", "why"}
    assert "mood" not in facts.records["claude"]["user/prompt"].fields
    brew = facts.tool("Brew")
    assert brew is not None
    assert brew.input["minutes"].types == ("num",)
    assert brew.result["cups"].items["hot"].types == ("bool",)
    assert facts.blocks["hologram"].fields.keys() == {"type", "data"}
    assert facts.enums["userType"] == (*catalogue().enums["userType"], "internal")
    assert facts.envelopes["claude"]["cwd"].types == ("str", "null")
    tide = facts.kind("system/tide")
    assert tide is not None
    assert (tide.family, tide.seen) == ("graph", ("2.9.1",))
    assert tide.fields["high"].versions == ("2.9.1", "2.9.1")
    assert "uuid" not in tide.fields


def test_what_newer_clients_still_write_stays_due() -> None:
    facts = learned(catalogue(), propose_patch(watch(novel())))
    prompt = facts.kind("assistant/text")
    assert prompt is not None
    assert facts.fields(prompt)["uuid"].versions[-1] == "2.9.1"
    assert "2.9.1" in prompt.seen
    records = [json.loads(line) for line in novel().splitlines()][3:4]
    del records[0]["userType"]
    (drift,) = watch(lines(records), facts=facts).drifts()
    assert (drift.code, drift.path) == ("MISSING_FIELD", "userType")


def test_no_word_of_a_session_reaches_the_patch() -> None:
    patch = json.dumps(propose_patch(watch(novel())))
    for word in ("8080", "calm", "tea", "port", "free keys", "a b"):
        assert f'"{word}' not in patch


@pytest.mark.parametrize(
    ("document", "patch", "expected"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "foo"}, "bar", "bar"),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_a_merge_patch_is_applied_as_the_standard_says(document: Any, patch: Any, expected: Any) -> None:
    assert apply_merge_patch(document, patch) == expected
