"""SARIF: what the schema demands, and that every place can be found again."""

import os
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes, urlsplit

import pytest
from tests.builders import session
from tests.conftest import WriteConfig

from steno.check.checkup import RULES
from steno.check.file_reports import FileReport, check_files, file_uri, find_all_files, sarif_log
from steno.store.discovery import Problem

LEVELS = {"none", "note", "warning", "error"}


def reports(config: WriteConfig) -> list[FileReport]:
    broken = session(seed="x").turn("One.", "First.").turn("Two.", "Second.").nul_run(2).torn_tail()
    return list(check_files(find_all_files(str(config(broken)), []), problems=[]))


def run_of(log: dict[str, Any]) -> dict[str, Any]:
    (run,) = log["runs"]
    return run


def test_the_log_is_what_the_schema_demands(config: WriteConfig) -> None:
    log = sarif_log(reports(config), [Problem("denied", "/x y", "no")])
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-schema-2.1.0.json")
    run = run_of(log)
    driver = run["tool"]["driver"]
    assert driver["name"] == "steno"
    for rule in driver["rules"]:
        assert rule["shortDescription"]["text"]
        assert rule["fullDescription"]["text"]
        assert rule["help"]["text"]
        assert rule["defaultConfiguration"]["level"] in LEVELS
    assert run["results"]
    for result in run["results"]:
        check_result(result, driver["rules"])
    (invocation,) = run["invocations"]
    assert invocation["executionSuccessful"] is False
    for notice in invocation["toolExecutionNotifications"]:
        assert notice["level"] in LEVELS
        assert notice["message"]["text"] == "no"


def check_result(result: dict[str, Any], rules: list[dict[str, Any]]) -> None:
    assert set(result) <= {*("ruleId", "ruleIndex", "level", "message", "locations", "partialFingerprints")}
    assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    assert result["level"] in LEVELS
    assert result["message"]["text"]
    (location,) = result["locations"]
    place = location["physicalLocation"]
    region = place["region"]
    assert region["startLine"] >= 1
    assert region["byteOffset"] >= 0
    assert region["byteLength"] >= 0
    assert all(isinstance(value, int) for value in region.values())
    assert urlsplit(place["artifactLocation"]["uri"]).scheme == "file"


def test_every_rule_is_described_once() -> None:
    rules = run_of(sarif_log([]))["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == list(RULES)


def test_nothing_found_is_an_empty_list_of_results() -> None:
    run = run_of(sarif_log([]))
    assert run["results"] == []
    assert run["invocations"][0]["executionSuccessful"] is True


def test_the_bytes_of_a_region_are_those_of_the_damage(config: WriteConfig) -> None:
    (report,) = made = reports(config)
    data = Path(report.path).read_bytes()
    (nul,) = (
        result["locations"][0]["physicalLocation"]
        for result in run_of(sarif_log(made))["results"]
        if result["ruleId"] == "line.nul-run"
    )
    region = nul["region"]
    found = data[region["byteOffset"] : region["byteOffset"] + region["byteLength"]]
    assert b"\0" in found
    assert data.count(b"\n", 0, region["byteOffset"]) + 1 == region["startLine"]
    assert unquote_to_bytes(urlsplit(nul["artifactLocation"]["uri"]).path) == os.fsencode(report.path)


def test_files_below_the_base_are_named_relative_to_it(config: WriteConfig) -> None:
    made = reports(config)
    base = os.environ["CLAUDE_CONFIG_DIR"]
    run = run_of(sarif_log(made, base=base))
    root = run["originalUriBaseIds"]["%SRCROOT%"]["uri"]
    assert root.startswith("file:///")
    assert root.endswith("/")
    place = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert place["uriBaseId"] == "%SRCROOT%"
    assert place["uri"].startswith("projects/")
    assert root + place["uri"] == file_uri(made[0].path)


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("/srv/a b.jsonl", "file:///srv/a%20b.jsonl"),
        ("/srv/50%#?.jsonl", "file:///srv/50%25%23%3F.jsonl"),
        ("/srv/\x1b[31m\n.jsonl", "file:///srv/%1B%5B31m%0A.jsonl"),
        ("/srv/é.jsonl", "file:///srv/%C3%A9.jsonl"),
        ("/srv/\udcff.jsonl", "file:///srv/%FF.jsonl"),
        ("/srv/back\\slash", "file:///srv/back%5Cslash"),
        ("C:\\Data\\a b", "file:///C:/Data/a%20b"),
        ("\\\\server\\share\\x", "file://server/share/x"),
    ],
)
def test_a_path_becomes_a_uri_byte_by_byte(path: str, uri: str) -> None:
    assert file_uri(path) == uri
