"""`steno check --secrets`: where secrets are, and never what they are."""

import json

import pytest
from tests.builders import Session, session, tool
from tests.cli.conftest import Steno
from tests.conftest import WriteConfig

_KEY = "ghp_" + "4f9b2c8d1e7a6f5b3c0d9e8f7a6b5c4d3e2f"
_WORD = "hunter2" + "xk9"


def talk() -> Session:
    return session(seed="one").turn("Hello.", "Hi.").turn(f"Use {_KEY} please.", f"{_KEY} it is; password: {_WORD}")


def test_secrets_are_listed_by_family_and_place_and_never_shown(steno: Steno, config: WriteConfig) -> None:
    config(talk(), session(seed="two").turn("Clean.", "Yes."))
    ran = steno("check", "--secrets")
    assert ran.code == 1
    assert "github-token" in ran.out
    assert "ghp_…, 40 bytes" in ran.out
    assert "turn 2" in ran.out
    assert "password" in ran.out
    assert ran.lines[-1].startswith("3 secrets in 1 of 2 files: 2 github-token, 1 password")
    assert _KEY not in ran.out + ran.err
    assert _KEY[4:12] not in ran.out + ran.err
    assert _WORD not in ran.out + ran.err


def test_json_has_every_finding_and_equal_secrets_have_equal_hashes(steno: Steno, config: WriteConfig) -> None:
    config(talk())
    ran = steno("check", "--secrets", "--json")
    assert ran.code == 1
    told = json.loads(ran.out)
    assert (told["files"], told["secrets"]) == (1, 3)
    assert told["families"] == {"github-token": 2, "password": 1}
    first, second, third = told["findings"]
    assert first["hash"] == second["hash"] != third["hash"]
    assert (first["prefix"], first["length"], third["prefix"]) == ("ghp_", len(_KEY), "")
    assert {each["turn"] for each in told["findings"]} == {2}
    assert first["line"] < second["line"]
    assert first["byte"] < second["byte"]
    assert told["problems"] == []
    again = json.loads(steno("check", "--secrets", "--json").out)
    # Whoever sees two lists cannot tell which secrets are in both.
    assert again["findings"][0]["hash"] != first["hash"]


def test_the_tool_is_named_whose_result_holds_a_secret(steno: Steno, config: WriteConfig) -> None:
    made = session(seed="tool").user("Look.").assistant(tool("Bash", command="cat .env"))
    config(made.result(f"TOKEN={_KEY}").assistant("Seen.").done())
    findings = json.loads(steno("check", "--secrets", "--json").out)["findings"]
    assert findings
    assert {each["tool"] for each in findings} == {"Bash"}


def test_nothing_found_is_one_line_and_no_failure(steno: Steno, config: WriteConfig) -> None:
    config(session(seed="two").turn("Clean.", "Yes, at /home/ada and to ada@lovelace.org."))
    ran = steno("check", "--secrets")
    assert (ran.code, ran.lines) == (0, ["1 file, no secrets found"])


def test_one_session_can_be_named(steno: Steno, config: WriteConfig) -> None:
    made = talk()
    config(made, session(seed="two").turn("Clean.", "Yes."))
    assert steno("check", "--secrets", made.session_id).code == 1
    assert steno("check", "--secrets", session(seed="two").session_id).code == 0


@pytest.mark.parametrize("other", [["--rules"], ["--sarif"], ["--all"], ["--explain", "x"], ["--silence", "line.*"]])
def test_what_would_be_ignored_is_refused(steno: Steno, other: list[str]) -> None:
    ran = steno("check", "--secrets", *other)
    assert ran.code == 2
    assert "--secrets" in ran.err
