"""The head of a Markdown file."""

import pytest

from steno.agent.config.project_files import split_front_matter


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("key: plain words", "plain words"),
        ("key: Use this: always # a comment", "Use this: always"),
        ("key: a#b", "a#b"),
        ('key: "quoted: \\"x\\" \\n # no comment"', 'quoted: "x" \n # no comment'),
        ("key: 'it''s'", "it's"),
        ("key: true", True),
        ("key: False", False),
        ("key:", ""),
        ("key: [a, 'b, c', d]", ("a", "b, c", "d")),
        ("key:\n  - a\n  - 'b'\n  - Bash(git add:*)", ("a", "b", "Bash(git add:*)")),
        ("key:\n- a\n- b", ("a", "b")),
        ("key: |\n  one\n    two\n", "one\n  two\n"),
        ("key: >-\n  one\n  two\n\n  three", "one two\nthree"),
        ("key: one\n  two\n  three", "one two three"),
        ("key: # only a comment", ""),
    ],
)
def test_a_value_reads_as_yaml_reads_it(line: str, value: object) -> None:
    head, body = split_front_matter(f"---\n{line}\nnext: 1\n---\nbody\n")
    assert head.values["key"] == value
    assert head.text("next") == "1"
    assert body == "body\n"
    assert not head.notes


def test_a_file_without_a_head_is_all_body() -> None:
    for text in ("hello\n", "", "--- not a head\n", "----\na: b\n----\n"):
        head, body = split_front_matter(text)
        assert not head.values
        assert body == text


def test_a_head_that_never_ends_is_text_and_said_so() -> None:
    head, body = split_front_matter("---\na: b\n")
    assert body == "---\na: b\n"
    assert "closing" in head.notes[0]


def test_a_line_that_makes_no_sense_is_noted_and_the_rest_still_read() -> None:
    head, _ = split_front_matter("---\n??? what\nname: x\n---\n")
    assert head.text("name") == "x"
    assert "???" in head.notes[0]


def test_a_mapping_below_a_key_is_passed_over() -> None:
    head, _ = split_front_matter("---\nhooks:\n  PreToolUse:\n    - matcher: Bash\nname: x\n---\n")
    assert head.text("name") == "x"
    assert "matcher" not in head.values


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Read, Bash(git add:*, x), Edit", ("Read", "Bash(git add:*, x)", "Edit")),
        ("Read Bash(git add *) Edit", ("Read", "Bash(git add *)", "Edit")),
        ("[Read, Edit]", ("Read", "Edit")),
        ("Read", ("Read",)),
        ("", ()),
    ],
)
def test_a_list_of_tools_may_be_written_in_any_way(text: str, words: tuple[str, ...]) -> None:
    assert split_front_matter(f"---\ntools: {text}\n---\n")[0].items("tools") == words


def test_a_list_that_is_not_there_is_not_an_empty_one() -> None:
    assert split_front_matter("---\na: b\n---\n")[0].items("tools") is None


def test_a_flag_is_read_and_has_a_value_when_it_is_not_there() -> None:
    head, _ = split_front_matter('---\na: true\nb: "false"\nc: maybe\n---\n')
    assert head.boolean("a")
    assert not head.boolean("b", default=True)
    assert head.boolean("c", default=True)
    assert not head.boolean("d")
