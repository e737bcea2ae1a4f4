"""Event stream of a session."""

import gc
import http.client
import json
import re
import threading
import weakref
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.builders import Session, session, tool
from tests.web.explorer import Explorer
from tests.web.sessions import exploring, written


class Stream:
    """What comes down the line, event by event."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.response = response

    def events(self) -> Iterator[tuple[str, dict[str, Any], str]]:
        kind = name = ""
        for line in iter(self.response.readline, b""):
            field, _, value = line.decode().rstrip("\n").partition(": ")
            if field == "event":
                kind = value
            elif field == "id":
                name = value
            elif field == "data":
                yield kind, json.loads(value), name
                name = ""

    def next(self, wanted: str) -> tuple[dict[str, Any], str]:
        return next((data, name) for kind, data, name in self.events() if kind == wanted)


@contextmanager
def streaming(found: Explorer, way: str, headers: dict[str, str] | None = None) -> Generator[Stream]:
    connection = http.client.HTTPConnection("127.0.0.1", found.port, timeout=30)
    connection.request("GET", way, headers={"cookie": found.cookie, **(headers or {})})
    response = connection.getresponse()
    assert response.status == 200
    assert response.getheader("content-type", "").startswith("text/event-stream")
    try:
        yield Stream(response)
    finally:
        response.close()
        connection.close()


def at_of(html: str) -> str:
    return html.partition('data-at="')[2].partition('"')[0]


def begun() -> Session:
    return session(full=True).turn("one", "ok").user("two").assistant(tool("Bash", command="a"))


def test_what_is_written_comes_down_the_line(tmp_path: Path) -> None:
    made = begun()
    with exploring(tmp_path, made) as (found, _):
        way = f"/s/{made.session_id}"
        at = at_of(found.get(way).text)
        assert at.startswith("2.")
        with streaming(found, f"{way}/live?at={at}") as stream:
            stream.next("head")
            written(made.result("x").assistant("the second answer"), tmp_path / "config")
            found.refresh()
            data, name = stream.next("turns")
            assert (data["first"], data["total"]) == (2, 2)
            assert 'id="t2"' in data["html"]
            assert "the second answer" in data["html"]
            assert 'id="t1"' not in data["html"]
            assert name.startswith("2.")
            assert name != at
            written(made.turn("three", "the third answer"), tmp_path / "config")
            found.refresh()
            data, _ = stream.next("turns")
            assert "the third answer" in data["html"]


def test_however_many_turns_come_at_once_they_are_added_to_the_page(tmp_path: Path) -> None:
    made = begun()
    with exploring(tmp_path, made) as (found, _):
        way = f"/s/{made.session_id}"
        at = at_of(found.get(way).text)
        with streaming(found, f"{way}/live?at={at}") as stream:
            stream.next("head")
            made.result("x").assistant("the second answer")
            for number in range(3, 43):
                made.turn(f"asked {number}", f"answer {number}")
            written(made, tmp_path / "config")
            found.refresh()
            events = (each for each in stream.events() if each[0] != "head")
            kind, data, name = next(events)
            # What the reader has is settled, in full.
            assert (kind, data["first"], data["total"]) == ("turns", 2, 42)
            assert "the second answer" in data["html"]
            assert name.startswith("2.")
            kind, data, name = next(events)
            assert (kind, data["first"], name.partition(".")[0]) == ("turns", 3, "42")
            numbers = re.findall(r'data-turn="(\d+)"', data["html"])
            assert numbers == [str(number) for number in range(31, 43)]
            rows = re.findall(r'data-first="(\d+)" data-last="(\d+)"', data["html"])
            covered = [n for first, last in rows for n in range(int(first), int(last) + 1)]
            assert covered == list(range(3, 31))


def test_who_comes_back_hears_what_they_missed(tmp_path: Path) -> None:
    made = begun()
    with exploring(tmp_path, made) as (found, _):
        way = f"/s/{made.session_id}"
        at = at_of(found.get(way).text)
        written(made.result("x").assistant("meanwhile"), tmp_path / "config")
        found.refresh()
        with streaming(found, f"{way}/live", {"last-event-id": at}) as stream:
            data, _ = stream.next("turns")
            assert "meanwhile" in data["html"]


def test_who_has_everything_hears_of_the_next_change_only(tmp_path: Path) -> None:
    made = begun()
    with exploring(tmp_path, made) as (found, _):
        way = f"/s/{made.session_id}"
        at = at_of(found.get(way).text)
        with streaming(found, f"{way}/live?at={at}") as stream:
            events = stream.events()
            assert next(events)[0] == "head"
            written(made.result("x").assistant("new"), tmp_path / "config")
            found.refresh()
            kinds = [next(events)[0]]
            if kinds == ["head"]:
                kinds.append(next(events)[0])
            assert kinds[-1] == "turns"


def test_a_rewind_takes_turns_away(tmp_path: Path) -> None:
    made = session(full=True).turn("one", "ok").turn("two", "wrong")
    with exploring(tmp_path, made) as (found, _):
        way = f"/s/{made.session_id}"
        at = at_of(found.get(way).text)
        with streaming(found, f"{way}/live?at={at}") as stream:
            stream.next("head")
            written(made.rewind(1).turn("three", "right"), tmp_path / "config")
            found.refresh()
            data, _ = stream.next("turns")
            assert data["total"] == 2
            assert "right" in data["html"]
            assert 'id="b1"' in data["html"]


def test_a_stream_ends_when_its_reader_goes(tmp_path: Path) -> None:
    made = begun()
    with exploring(tmp_path, made) as (found, _):
        for _ in range(5):
            with streaming(found, f"/s/{made.session_id}/live") as stream:
                stream.next("head")
        gone = threading.Event()

        def look() -> None:
            while found.house.pubsub.subscriber_count:
                found.house.pubsub.publish()
            gone.set()

        threading.Thread(target=look, daemon=True).start()
        assert gone.wait(20)


def test_a_file_that_goes_ends_the_stream_with_the_reason(tmp_path: Path) -> None:
    made = begun()
    with exploring(tmp_path, made) as (found, (path,)), streaming(found, f"/s/{made.session_id}/live") as stream:
        stream.next("head")
        path.unlink()
        found.house.pubsub.publish()
        data, _ = stream.next("gone")
        assert "deleted" in data["why"]


def test_what_a_session_was_is_let_go_when_it_changes(tmp_path: Path) -> None:
    made = session(full=True).turn("one", "ok")
    with exploring(tmp_path, made) as (found, _):
        way = f"/s/{made.session_id}"
        with found.house.index() as index:
            place = found.house.session_ref(index, made.session_id)
        before: list[weakref.ref[Any]] = []
        for number in range(4):
            found.get(way)
            with found.house.open_session(place) as opened:
                before.append(weakref.ref(opened))
            del opened
            written(made.turn(f"more {number}", "yes"), tmp_path / "config")
            found.refresh()
        found.get(way)
        gc.collect()
        assert [each() for each in before] == [None] * 4
