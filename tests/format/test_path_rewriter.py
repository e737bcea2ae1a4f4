"""Paths of a project in JSON: those change, and not a byte else."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.corpus import transcripts

from steno.format.path_rewriter import TEXT_FIELDS, PathRewriter

OLD, NEW = "/home/ada/work", "/srv/ünï code/w"
PATHS = PathRewriter([(OLD, NEW)])


def turned(line: str, paths: PathRewriter = PATHS) -> str:
    return paths.rewrite(line.encode())[0].decode()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"cwd":"/home/ada/work"}', '{"cwd":"/srv/ünï code/w"}'),
        ('{ "cwd" : "/home/ada/work/a b" }', '{ "cwd" : "/srv/ünï code/w/a b" }'),
        ('{"filenames":["/home/ada/work/a","x"]}', '{"filenames":["/srv/ünï code/w/a","x"]}'),
        ('{"kept":{"/home/ada/work/a":1}}', '{"kept":{"/srv/ünï code/w/a":1}}'),
        (r'{"cwd":"\/home\/ada\/work\/a"}', r'{"cwd":"\/srv\/ünï code\/w\/a"}'),
    ],
)
def test_a_path_of_the_project_is_rewritten(before: str, after: str) -> None:
    assert turned(before) == after


@pytest.mark.parametrize(
    "line",
    [
        '{"cwd":"/home/ada/workshop"}',
        '{"cwd":"/home/ada"}',
        '{"text":"/home/ada/work/a"}',
        '{"command":"/home/ada/work/run.sh --all"}',
        '{"content":"/home/ada/work/a.py"}',
        '{"message":{"content":[{"type":"text","text":"/home/ada/work"}]}}',
        '{"lines":["/home/ada/work/a"]}',
        '{"attachment":{"snapshot":{"workingDirectory":"/home/ada/work"}}}',
        '{"path":"/home/ada/work/a\\n/home/ada/work/b"}',
        '{"text":"he said \\"/home/ada/work\\" to me"}',
        '{"type":"api-request-blob","message":{"input":{"file_path":"/home/ada/work/a"}}}',
    ],
)
def test_everything_else_stays(line: str) -> None:
    assert turned(line) == line


def test_the_clients_note_of_a_saved_output_follows_its_folder() -> None:
    folder = "/home/ada/.claude/projects/-home-ada-work"
    paths = PathRewriter([(OLD, NEW), (folder, "/home/ada/.claude/projects/-srv")])
    note = f"<persisted-output>\\nOutput too large (9KB). Full output saved to: {folder}/x/y.txt\\n\\n"
    line = f'{{"content":"{note}Preview of {folder}/x"}}'
    after = turned(line, paths)
    assert "saved to: /home/ada/.claude/projects/-srv/x/y.txt" in after
    assert f"Preview of {folder}/x" in after
    assert turned(after, paths.inverse()) == line


def test_the_deepest_folder_wins_and_one_may_stay() -> None:
    paths = PathRewriter([("/a", "/z"), ("/a/b", "/y"), ("/a/stay", "/a/stay")])
    line = '{"p":["/a/c","/a/b/c","/a/stay/c","/a","/a/bc"]}'
    assert turned(line, paths) == '{"p":["/z/c","/y/c","/a/stay/c","/z","/z/bc"]}'
    assert paths.rewrite_path("/a/b/c") == "/y/c"


def test_paths_of_another_system_are_turned() -> None:
    paths = PathRewriter([("C:\\Users\\ada\\w", "/srv/w")])
    line = r'{"cwd":"C:\\Users\\ada\\w","file":"C:\\Users\\ada\\w\\src\\a.py"}'
    assert turned(line, paths) == '{"cwd":"/srv/w","file":"/srv/w/src/a.py"}'


def test_ascii_spelling_is_known() -> None:
    paths = PathRewriter([("/h/ü", "/h/ö")])
    line = r'{"cwd":"/h/\u00fc/x"}'
    assert turned(line, paths) == r'{"cwd":"/h/\u00f6/x"}'
    assert turned(turned(line, paths), paths.inverse()) == line


def test_lists_of_many_are_read_once() -> None:
    many = json.dumps({"filenames": [f"{OLD}/{n}" for n in range(20_000)]})
    assert PATHS.rewrite(many.encode())[1] == 20_000


strings = st.sampled_from([OLD, f"{OLD}/a.py", f"{OLD}x", f"in {OLD}", "", '"', "\\", "é", "\n"])
names = st.sampled_from(["cwd", "text", "content", "file_path", "x", f"{OLD}/k", *sorted(TEXT_FIELDS)[:3]])
values = st.recursive(
    strings | st.integers(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4),
    max_leaves=12,
)


def expected(value: Any, owner: str = "") -> Any:
    if isinstance(value, dict):
        return {PATHS.rewrite_path(key): expected(item, key) for key, item in value.items()}
    if isinstance(value, list):
        return [expected(item, owner) for item in value]
    return PATHS.rewrite_path(value) if isinstance(value, str) and owner not in TEXT_FIELDS else value


@given(st.dictionaries(names, values, max_size=4), st.sampled_from([None, 1]), st.booleans())
def test_the_same_as_walking_the_value(value: Any, indent: int | None, plain: Any) -> None:
    before = json.dumps(value, ensure_ascii=plain, indent=indent).encode()
    after, _ = PATHS.rewrite(before)
    assert json.loads(after) == expected(value)
    assert PATHS.inverse().rewrite(after)[0] == before


@pytest.mark.corpus
def test_there_and_back_is_the_same_on_every_real_file(shared: Path) -> None:
    looked = 0
    for path in transcripts(shared):
        data = path.read_bytes()
        cwds = set(re.findall(rb'"cwd":"(/[^"\\]{3,})"', data))
        for cwd in sorted(cwds)[:3]:
            paths = PathRewriter([(cwd.decode(), "/elsewhere/very far/ünd so")])
            for line in data.split(b"\n"):
                after, number = paths.rewrite(line)
                assert (after == line) == (number == 0)
                assert paths.inverse().rewrite(after)[0] == line
                looked += number
    assert looked > 5_000
