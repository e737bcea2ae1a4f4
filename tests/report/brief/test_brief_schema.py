"""The JSON form of a brief is the published one, and what is published is up to date."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from tests.published.opencontext import ContextFile, call
from tests.session.open_sessions import sessions_below

from steno.demo.recording import write_demo
from steno.report.brief import as_json, build_brief
from steno.report.brief.brief_json import encode_brief
from tools import make_brief_schema


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    schema: dict[str, Any] = json.loads(make_brief_schema.SCHEMA.read_text())
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER)


def problems(validator: Draft202012Validator, value: dict[str, Any]) -> list[str]:
    """Return what is wrong with a document as it is written."""
    written = json.loads(encode_brief(value))
    return [f"{each.json_path}: {each.message}" for each in validator.iter_errors(written)]


def test_the_schema_and_its_page_are_up_to_date() -> None:
    assert make_brief_schema.main(["--check"]) == 0


def test_every_field_of_the_schema_is_described() -> None:
    schema = make_brief_schema.make_schema()
    fields = [
        (name, field, rules)
        for name, definition in schema["$defs"].items()
        for field, rules in definition["properties"].items()
    ]
    assert len(fields) > 100
    assert [(name, field) for name, field, rules in fields if len(rules["description"]) < 6] == []
    assert [field for _, field, _ in fields if field != field.lower()] == []


def test_briefs_of_the_demo_fit_the_schema(tmp_path: Path, validator: Draft202012Validator) -> None:
    write_demo(str(tmp_path))
    briefs = [build_brief(each) for each in sessions_below(tmp_path)]
    assert len(briefs) > 10
    assert problems(validator, as_json(briefs)) == []
    assert problems(validator, as_json(briefs, 1_500)) == []


def test_odd_values_fit_the_schema_and_a_wrong_document_does_not(validator: Draft202012Validator) -> None:
    made = ContextFile().user("Go.")
    made.assistant(call("t1", "Mystery", time=5, big=9**90, none=None, many=[1, "a", {"b": 1.5}]))
    made.snapshot({"a.py": "x", "b.py": {"version": 2**70, "backupTime": 7}}, update=True)
    made.microcompact(trigger=5, preTokens=-1, tokensSaved=1e300, compactedToolIds="no")
    value = as_json(made.queue("").brief())
    assert problems(validator, value) == []
    assert value["briefs"][0]["turns"][0]["calls"][0]["input"]["time"] == 5
    value["briefs"][0]["started"] = 5
    del value["briefs"][0]["turns"][0]["texts"]
    assert len(problems(validator, value)) == 2
