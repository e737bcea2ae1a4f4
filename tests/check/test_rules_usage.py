"""Token figures that mislead are said, once, and only where they do."""

from typing import Any

import pytest
from tests.builders import session, text, tool
from tests.check.changed_records import changed, found, named


def of_version(version: str) -> bytes:
    """Return a session without any stop reason that says it is of a version."""
    made = session("2.1.42").turn("One.", "First.").turn("Two.", "Second.")

    def change(records: list[dict[str, Any]]) -> None:
        for record in records:
            record["version"] = version

    return changed(made, change)


@pytest.mark.parametrize("version", ["2.1.0", "2.1.29", "2.1.52"])
def test_the_versions_that_wrote_placeholders_are_said_once(version: str) -> None:
    assert named(of_version(version), "usage") == [("placeholder", "info")]


@pytest.mark.parametrize("version", ["2.0.76", "2.1.325", "1.0.128"])
def test_other_versions_wrote_the_final_figure(version: str) -> None:
    assert named(session(version).turn("One.", "First."), "usage") == []


def test_the_versions_around_them_are_right() -> None:
    assert named(of_version("2.0.999"), "usage") == []
    assert named(of_version("2.1.53"), "usage") == []


def figures(*outputs: int) -> bytes:
    """Return a session whose one response has these figures, line by line."""
    blocks = [text("a"), text("b"), tool("Read", file_path="/a")]
    made = session().user("One.").assistant(*blocks)

    def change(records: list[dict[str, Any]]) -> None:
        lines = [record for record in records if record["type"] == "assistant"]
        for record, output in zip(lines, outputs, strict=True):
            record["message"]["usage"] = {"input_tokens": 5, "output_tokens": output}

    return changed(made, change)


def test_figures_that_grow_or_stay_are_fine() -> None:
    assert named(figures(4, 4, 215), "usage") == []


def test_figures_that_fall_are_said_once_per_response() -> None:
    (finding,) = found(figures(215, 4, 3), "usage")
    assert (finding.id, finding.severity) == ("usage.conflict", "info")
    assert "decreases from 215 to 4" in finding.message


@pytest.mark.parametrize("usage", [None, 7, [], {"output_tokens": "many"}])
def test_odd_figures_are_no_conflict(usage: Any) -> None:
    made = session().user("One.").assistant("a", "b")
    data = changed(made, lambda records: records[1]["message"].update(usage=usage))
    assert named(data, "usage") == []
