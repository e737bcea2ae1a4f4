"""Fields that a resume needs are missed loudly, those that others may want quietly."""

from typing import Any

import pytest
from tests.builders import VERSIONS, Session, session, tool
from tests.builders.everything import everything
from tests.check.changed_records import changed, found, named

Records = list[dict[str, Any]]


def two(version: str = "2.1.325") -> Session:
    return session(version).turn("One.", "First.").turn("Two.", "Second.")


def without(name: str, at: int = 2) -> bytes:
    return changed(two(), lambda records: records[at].pop(name))


@pytest.mark.parametrize("version", VERSIONS)
def test_what_a_client_writes_is_all_in_the_catalogue(version: str) -> None:
    for made in everything(version):
        assert named(made, "fields") == []


@pytest.mark.parametrize(
    ("name", "rule"), [("type", "no-type"), ("uuid", "no-uuid"), ("parentUuid", "no-parent"), ("message", "no-message")]
)
def test_a_message_without_what_a_resume_needs_is_an_error(name: str, rule: str) -> None:
    assert named(without(name), "fields") == [(rule, "error")]


def test_a_record_without_type_that_was_no_message_is_an_info() -> None:
    made = two().side({"note": "mine"})
    assert named(made, "fields") == [("no-type", "info")]


def test_the_first_message_needs_no_parent() -> None:
    assert named(without("parentUuid", 0), "fields") == []


def test_the_lack_in_a_sub_agents_message_is_an_info() -> None:
    def flag(records: Records) -> None:
        records[2]["isSidechain"] = True
        del records[2]["uuid"]

    assert named(changed(two(), flag), "fields") == [("no-uuid", "info")]


@pytest.mark.parametrize("dialect", ["spec-000", "spec-004"])
def test_a_dialect_is_said_once(dialect: str) -> None:
    made = session(dialect=dialect).turn("One.", "First.").turn("Two.", "Second.")
    (finding,) = found(made, "fields")
    assert (finding.id, finding.severity) == ("fields.dialect", "info")
    assert finding.message.endswith(dialect)


def test_a_dialect_is_judged_by_its_own_description() -> None:
    made = session(dialect="spec-000").turn("One.", "First.")
    data = changed(made, lambda records: records[1].pop("sessionId"))
    assert [each.message for each in found(data, "dialect")] == ["Required field missing: sessionId"]


def test_a_number_for_a_time_makes_no_dialect() -> None:
    data = changed(two(), lambda records: records[2].update(timestamp=1794723881510))
    assert named(data, "fields") == []


def test_a_field_that_was_always_there_is_missed_once_per_kind() -> None:
    def drop(records: Records) -> None:
        for record in records:
            record.pop("cwd")

    assert sorted(each.message for each in found(changed(two(), drop), "fields")) == [
        "assistant/text without cwd",
        "user/prompt without cwd",
    ]


@pytest.mark.parametrize(
    ("version", "messages"), [("2.1.325", ["user/tool_result without sourceToolAssistantUUID"]), ("2.0.76", [])]
)
def test_a_field_is_only_missed_in_versions_that_wrote_it(version: str, messages: list[str]) -> None:
    made = session("2.1.42").user("One.").assistant(tool("Read", file_path="/a")).result("x")

    def drop(records: Records) -> None:
        for record in records:
            record["version"] = version
            record.pop("sourceToolAssistantUUID", None)

    said = [each.message for each in found(changed(made, drop), "fields")]
    assert [each for each in said if "sourceTool" in each] == messages


def test_without_any_version_only_what_all_versions_wrote_is_missed() -> None:
    bare = {"type": "user", "uuid": "u", "parentUuid": None, "timestamp": "2026-11-15T05:00:00.000Z"}

    def strip(records: Records) -> None:
        records[:] = [{**bare, "message": {"role": "user", "content": "One."}}]

    assert sorted(each.message for each in found(changed(two(), strip), "fields")) == [
        "user/prompt without cwd",
        "user/prompt without isSidechain",
        "user/prompt without sessionId",
        "user/prompt without userType",
        "user/prompt without version",
    ]


def test_a_value_of_another_type_is_an_info() -> None:
    data = changed(two(), lambda records: records[1].update(cwd=7))
    (finding,) = found(data, "fields")
    assert (finding.id, finding.severity) == ("fields.type", "info")
    assert finding.message == "cwd of assistant/text is num, not str"


def test_unknown_kinds_and_fields_are_nobodys_business() -> None:
    made = two().side({"type": "of-tomorrow", "x": 1})
    assert named(changed(made, lambda records: records[1].update(extra=1)), "fields") == []


def test_a_file_of_ever_new_shapes_is_read_to_the_end() -> None:
    lines = b"".join(b'{"type":"tag","k%d":1}\n' % number for number in range(10_050))
    assert ("no-type", "info") in named(lines + b'{"a":1}\n', "fields")
