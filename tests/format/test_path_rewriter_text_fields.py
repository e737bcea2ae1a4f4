"""Where a path is a path and where it is a word, to the byte."""

import json

import pytest

from steno.format.path_rewriter import TEXT_FIELDS, PathRewriter

MOVED = PathRewriter([("/home/ada/work", "/srv/w")])


@pytest.mark.parametrize("name", sorted(TEXT_FIELDS))
def test_what_was_said_stays_as_it_was_said(name: str) -> None:
    for value in ("/home/ada/work/x", ["/home/ada/work/x"]):
        line = json.dumps({name: value}).encode()
        assert MOVED.rewrite(line) == (line, 0)


def test_the_fields_of_words_are_these() -> None:
    assert len(TEXT_FIELDS) == 46
    assert {"content", "question", "result", "stdout", "workingDirectory", "text"} <= TEXT_FIELDS
    assert "cwd" not in TEXT_FIELDS


@pytest.mark.parametrize(
    ("before", "after", "number"),
    [
        ('{"cwd":"/home/ada/work"}', '{"cwd":"/srv/w"}', 1),
        ('{"cwd" : "/home/ada/work/a"}', '{"cwd" : "/srv/w/a"}', 1),
        ('{"cwd":"/home/ada/works"}', '{"cwd":"/home/ada/works"}', 0),
        ('{"cwd":"x/home/ada/work"}', '{"cwd":"x/home/ada/work"}', 0),
        ('{"/home/ada/work/k":1}', '{"/srv/w/k":1}', 1),
        ('{"cwd":"\\/home\\/ada\\/work\\/a"}', '{"cwd":"\\/srv\\/w\\/a"}', 1),
        ('{"cwd":"/home/ada/work/a\\nb"}', '{"cwd":"/home/ada/work/a\\nb"}', 0),
        ('{"cwd":"/home/ada/work/a\\\\nb"}', '{"cwd":"/srv/w/a\\\\nb"}', 1),
        ('{"x":"a \\"/home/ada/work\\" b"}', '{"x":"a \\"/home/ada/work\\" b"}', 0),
        ('"/home/ada/work"', '"/srv/w"', 1),
        ('["/home/ada/work","/home/ada/work/b"]', '["/srv/w","/srv/w/b"]', 2),
        ('{"a":{"text":"x"},"b":["/home/ada/work"]}', '{"a":{"text":"x"},"b":["/srv/w"]}', 1),
        ('{"text":["x",{"cwd":["/home/ada/work"]}]}', '{"text":["x",{"cwd":["/srv/w"]}]}', 1),
        ('{"cwd":[["x"],"/home/ada/work"],"t":1}', '{"cwd":[["x"],"/srv/w"],"t":1}', 1),
        (
            '{"cwd":[{"text":"x"},"/home/ada/work"],"text":[{"a":1},"/home/ada/work"]}',
            '{"cwd":[{"text":"x"},"/srv/w"],"text":[{"a":1},"/home/ada/work"]}',
            1,
        ),
        ('{"text":[["x"],"/home/ada/work"]}', '{"text":[["x"],"/home/ada/work"]}', 0),
    ],
)
def test_only_paths_change(before: str, after: str, number: int) -> None:
    assert MOVED.rewrite(before.encode()) == (after.encode(), number)


def test_a_string_too_long_for_a_path_stays() -> None:
    for size, changed in ((8192 - 15, 1), (8193 - 15, 0)):
        line = b'{"cwd":"/home/ada/work' + b"/" * size + b'"}'
        assert MOVED.rewrite(line)[1] == changed, size


def test_a_record_of_an_api_request_stays_whole() -> None:
    line = b'{"type":"api-request","cwd":"/home/ada/work"}'
    assert MOVED.rewrite(line) == (line, 0)
    other = b'{"type":"x","name":"api-request","cwd":"/home/ada/work"}'
    assert MOVED.rewrite(other)[1] == 1


def test_what_changes_to_itself_is_not_counted() -> None:
    stays = PathRewriter([("/home/ada/work", "/home/ada/work")])
    line = b'{"cwd":"/home/ada/work/a"}'
    assert stays.rewrite(line) == (line, 0)


def test_the_way_back_leads_back() -> None:
    line = b'{"cwd":"/home/ada/work/\xc3\xbc"}'
    there, _ = MOVED.rewrite(line)
    assert MOVED.inverse().rewrite(there) == (line, 1)
    odd = PathRewriter([("/home/\u00fc\U0001f600", "/srv/\u00e4")])
    ascii_only = json.dumps({"cwd": "/home/\u00fc\U0001f600/x"}).encode()
    assert json.loads(odd.rewrite(ascii_only)[0]) == {"cwd": "/srv/\u00e4/x"}
    assert odd.rewrite(ascii_only)[0].isascii()


@pytest.mark.parametrize(
    ("old", "new", "path", "moved"),
    [
        ("/a/b", "/x", "/a/b", "/x"),
        ("/a/b", "/x", "/a/b/c", "/x/c"),
        ("/a/b", "/x", "/a/bc", "/a/bc"),
        ("/a/b", "C:\\x", "/a/b/c/d", "C:\\x\\c\\d"),
        ("C:\\x", "/a", "C:\\x\\c\\d", "/a/c/d"),
        ("C:\\x", "D:\\y", "C:\\x\\c", "D:\\y\\c"),
        ("C:\\x", "/a", "C:\\xy", "C:\\xy"),
    ],
)
def test_a_path_is_led_to_where_it_is_now(old: str, new: str, path: str, moved: str) -> None:
    paths = PathRewriter([(old, new)])
    assert paths.rewrite_path(path) == moved
    line = json.dumps({"cwd": path}).encode()
    assert json.loads(paths.rewrite(line)[0])["cwd"] == moved
