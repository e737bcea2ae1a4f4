"""`steno mcp`: what it says of itself; the server has tests of its own."""

from tests.cli.conftest import Steno


def test_the_tools_are_told(steno: Steno) -> None:
    ran = steno("mcp", "--tools")
    assert ran.code == 0
    assert ran.lines[0] == "search"
    assert "Session ID" in ran.out


def test_the_tools_are_told_to_programs(steno: Steno) -> None:
    told = steno("mcp", "--tools", "--json").json
    assert [each["name"] for each in told] == ["search", "brief", "show", "files", "usage"]
    assert told[0]["input_schema"]["required"] == ["query"]


def test_json_says_nothing_about_serving(steno: Steno) -> None:
    assert steno("mcp", "--json").code == 2
