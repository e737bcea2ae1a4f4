"""Sessions made for searching, and a short way to search them."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec
from tests.builders import Session, session, text, thinking, tool

from steno.index.database import IndexLocation, SessionIndex, open_for_reading
from steno.index.search.finder import Finder, SearchOrder, SearchResult
from steno.index.search.hit_text import Excerpt, HitReader, HitText, best_excerpt
from steno.index.search.query_parser import parse_query
from steno.index.sync.updater import sync
from steno.report.clock import parse_time_range
from steno.store.environment import parse_time

NOW: Final = parse_time("2026-11-15T12:00:00Z") or 0.0


class Hit(msgspec.Struct):
    """A message that was found, read again."""

    text: HitText
    excerpt: Excerpt | None

    @property
    def kind(self) -> str:
        return self.excerpt.part.kind if self.excerpt else ""

    @property
    def tool(self) -> str:
        return self.excerpt.part.tool if self.excerpt else ""

    @property
    def marked(self) -> list[str]:
        """The very letters that are marked."""
        excerpt = self.excerpt
        return [excerpt.text[start:end] for start, end in excerpt.marks] if excerpt else []


class Searched:
    """An index of some sessions."""

    def __init__(self, folder: Path, sessions: Iterable[Session], name: str = "index") -> None:
        self.root = folder / "config"
        for made in sessions:
            write(self.root, made)
        self.home = IndexLocation(str(folder / name), (str(self.root),))
        self.open()

    def open(self) -> None:
        """Sync, and open it anew."""
        sync(self.home)
        connection = open_for_reading(self.home.folder)
        assert connection is not None
        self.index = SessionIndex(self.home, connection)
        self.finder = Finder(connection, self.index.texts, lambda word: parse_time_range(word, NOW))

    def found(self, query: str, order: SearchOrder = "newest") -> SearchResult:
        return self.finder.find(parse_query(query), order)

    def hits(self, query: str, order: SearchOrder = "newest") -> list[Hit]:
        found = self.found(query, order)
        with HitReader(self.index.connection) as reader:
            return [
                Hit(read, best_excerpt(read, found.query_forms, found.scope, self.finder.tokenize))
                for read in reader.read_texts(found.messages)
            ]

    def kinds(self, query: str) -> list[str]:
        """Return the kinds of text in which something was found, sorted."""
        return sorted(hit.kind for hit in self.hits(query))


def write(root: Path, made: Session) -> Path:
    """Write a session, and return its file."""
    for name, data in made.files().items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        os.utime(path, (made.clock.ms / 1000, made.clock.ms / 1000))
    return root / made.file


def prompts(*texts: str, seed: str = "texts") -> Session:
    """Return a session that asks all of these."""
    made = session(seed=seed)
    for each in texts:
        made.user(each).assistant(text("Aye.")).done()
    return made


def harbour() -> Session:
    """Return a session with something in every place that can be searched."""
    return (
        session(seed="harbour", cwd="/home/ada/tidegauge", branch="fix/surge", model="claude-fern-4")
        .title("Harbour lanterns")
        .user("Why does the lighthouse blink twice?")
        .assistant(
            thinking("Perhaps the lighthouse relay is worn."),
            text("I will look at the relay of the lighthouse."),
            tool("Read", file_path="/home/ada/tidegauge/src/lamp/relay.py"),
        )
        .result("1\tdef blink(lighthouse): ...")
        .assistant(tool("Bash", command="pytest tests/lamp -q"))
        .result("ERR_CONN_RESET while blinking at v2.1.42", error=True)
        .assistant(text("The relay sticks; commit 4f9d2c1ab7e0 broke getUserName."))
        .done()
    )


def ledger() -> Session:
    """Return another session, in another project, earlier."""
    return (
        session(
            seed="ledger",
            cwd="/home/ada/ledgerfold",
            branch="main",
            model="claude-cedar-5",
            start="2026-10-01T08:00:00.000Z",
        )
        .user("The relay of the ledger is slow. 数据库连接失败了")
        .assistant(
            text("It reads everything twice."),
            tool(
                "Edit",
                file_path="/home/ada/ledgerfold/src/auth/login.py",
                old_string="get_user_name(lighthouse)",
                new_string="getUserName(lighthouse)",
            ),
        )
        .result("The file has been updated.")
        .assistant(text("Done with relays."))
        .done()
    )
