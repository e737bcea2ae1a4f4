"""Broken lines and odd ones are found; lines that only look odd are not."""

from pathlib import Path

import pytest
from tests.builders import VERSIONS, Session, session, text, tool
from tests.builders.everything import everything
from tests.check.changed_records import found, named
from tests.corpus import transcripts

from steno.check.rules.record_format import LineRules
from steno.format.encode import encode_line
from steno.format.salvage import find_flaws
from steno.format.source import DAMAGE_HINTS


def four() -> Session:
    return session("2.1.325").turn("One.", "First.").turn("Two.", "Second.")


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (four(), []),
        (four().torn_tail(), [("torn", "error")]),
        (four().glue(1), [("glued", "error")]),
        (four().splice(1, 40), [("torn", "error"), ("spliced", "error")]),
        (four().nul_run(2), [("nul-run", "error")]),
        (four().not_object(1, b"no json at all"), [("not-json", "error")]),
        (four().not_object(1), [("not-object", "warning")]),
        (four().bad_utf8(1), [("utf8", "warning")]),
        (four().lone_surrogate(1), [("surrogate", "warning")]),
        (four().deep(1), [("depth", "warning")]),
        (four().deep(1, 300), [("depth", "warning")]),
        (four().deep(1, 100), []),
        (four().duplicate_key(1), [("duplicate-key", "warning")]),
        (four().huge_int(1), [("bigint", "info")]),
        (four().bom(), [("bom", "info")]),
        (four().crlf(), [("crlf", "info")]),
        (four().no_final_newline(), [("no-newline", "info")]),
        (four().blank(1), []),
    ],
)
def test_each_damage_has_its_finding(made: Session, expected: list[tuple[str, str]]) -> None:
    assert sorted(named(made, "line")) == sorted(expected)


def test_every_damage_of_a_line_has_a_rule() -> None:
    known = {rule.id for rule in LineRules.rules}
    assert {name for name in DAMAGE_HINTS if name.startswith("line.")} <= known


def test_a_raw_control_character_and_a_number_json_lacks_are_errors() -> None:
    lines = four().lines()
    lines[1] = lines[1].replace(b"First.", b"First\x01")
    lines[2] = lines[2][:-1] + b',"x":NaN}'
    data = b"".join(each + b"\n" for each in lines)
    assert named(data, "line") == [("control", "error"), ("number", "error")]


def test_an_oversize_line_is_said_with_its_size() -> None:
    made = four().oversize(1, 9_000)
    assert named(made, "line", cap=8_000) == [("oversize", "warning")]
    assert "9,000 bytes" in found(made, "line", cap=8_000)[0].message
    assert named(made, "line", cap=9_000) == []


def test_the_line_number_and_the_span_point_at_the_damage() -> None:
    (finding,) = found(four().duplicate_key(2), "line")
    lines = four().lines()
    assert finding.location.line == 3
    assert finding.location.span.offset == len(lines[0]) + len(lines[1]) + 2
    assert finding.location.uuid == four().uuids()[2]


@pytest.mark.parametrize("digits", [str(2**53 + 2), "-" + "9" * 17])
def test_an_integer_is_too_big_beyond_what_javascript_holds(digits: str) -> None:
    line = encode_line({"type": "tag", "n": [1]}).replace(b"[1]", f"[{digits}]".encode())
    assert named(line, "line") == [("bigint", "info")]


@pytest.mark.parametrize("digits", [str(2**53), "1" * 15, '"' + "9" * 30 + '"'])
def test_a_smaller_one_and_digits_in_a_string_are_fine(digits: str) -> None:
    line = encode_line({"type": "tag", "n": [1]}).replace(b"[1]", f"[{digits}]".encode())
    assert named(line, "line") == []


def test_lines_of_another_writer_are_no_damage() -> None:
    loose = b'{ "type" : "tag", "tag": "caf\\u00e9 \\/ \\ud83d\\ude00", "n": 1e-5, "m": 2.0 }\n'
    assert named(loose, "line") == []
    assert named(loose.replace(b'"n"', b'"m"'), "line") == [("duplicate-key", "warning")]


def test_zero_bytes_are_said_once_though_a_record_follows() -> None:
    assert [each.message for each in found(four().nul_run(2, 16), "line")] == ["Zero bytes in the file: 16 bytes"]


def test_a_torn_last_line_is_not_also_a_missing_newline() -> None:
    assert named(four().torn_tail(10), "line") == [("torn", "error")]
    assert named(b"", "line") == []


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("family", ["line", "message", "time", "usage", "fields"])
def test_sound_sessions_of_every_generation_have_nothing_worse_than_infos(version: str, family: str) -> None:
    for made in everything(version):
        bad = [each for each in found(made, family) if each.severity != "info"]
        assert bad == []


def test_hostile_text_in_strings_is_no_damage() -> None:
    made = session().user('{"a":1,"a":2} [[[[ \\ud83d NaN 12345678901234567890')
    made.assistant(text('"}{"'), tool("Bash", command="\x00\x01\u2028"))
    assert named(made, "line") == []


@pytest.mark.corpus
def test_the_quick_look_never_misses_what_the_slow_one_finds(shared: Path) -> None:
    for path in transcripts(shared)[:120]:
        data = path.read_bytes()
        slow = {
            note.id
            for line in data.split(b"\n")
            if line.startswith(b"{") and line.endswith(b"}")
            for note in find_flaws(line, 0)
        }
        assert slow <= {each.id for each in found(data, "line")}
