"""Short names: long enough to be the only one, and safe to type."""

from steno.report.session_references import SessionReferences, json_encodable, shell_argument

ONE = "/x/abcd1111-0000-4000-8000-000000000000.jsonl"
TWO = "/x/abcd1122-0000-4000-8000-000000000000.jsonl"
FAR = "/x/ffff1122-0000-4000-8000-000000000000.jsonl"


def test_a_name_is_as_long_as_it_must_be() -> None:
    names = SessionReferences([ONE, TWO, FAR])
    assert [names.argument_for(path) for path in (ONE, TWO, FAR)] == ["abcd111", "abcd112", "ffff"]


def test_a_file_with_a_namesake_goes_by_its_path() -> None:
    copy = ONE.replace("/x/", "/y/")
    assert SessionReferences([ONE, copy]).argument_for(copy) == copy


def test_a_file_nobody_lists_goes_by_its_path() -> None:
    assert SessionReferences([TWO]).argument_for(ONE) == ONE


def test_a_name_that_would_be_an_option_goes_by_its_path() -> None:
    assert SessionReferences(["/x/--help.jsonl"]).argument_for("/x/--help.jsonl") == "/x/--help.jsonl"


def test_arguments_are_quoted_or_not_offered() -> None:
    assert shell_argument("a b") == "'a b'"
    assert shell_argument("-x") == "./-x"
    assert shell_argument("a\x1b[2J") is None
    assert shell_argument("a\nb") is None
    assert shell_argument("a\udcff") is None


def test_whatever_quotes_a_name_can_be_written_as_json() -> None:
    said = json_encodable({"a": ["b\udcff", {"c": ("é", 1, None)}], "d": "\ud83d!"})
    assert said == {"a": ["b\ufffd", {"c": ["é", 1, None]}], "d": "\ufffd!"}
