"""The edges of the index: what is still held, still counted, still the same time or path."""

import os
import signal
import sqlite3
import threading
from collections import Counter
from pathlib import Path
from typing import Any, Final

import pytest
from tests.builders import session, text, tool
from tests.index.searching import Searched, harbour, ledger, prompts, write
from tests.index.transcripts import TRANSCRIPTS
from tests.recorded_answers import assert_recorded

from steno.format.records import Gap
from steno.format.source import BytesSource
from steno.index.database import DATABASE_NAME, IndexLocation
from steno.index.line_decoder import decode_lines
from steno.index.search import scope
from steno.index.search.audit import classify_strings, unsearched_reason
from steno.index.search.finder import SearchOrder, count_hits
from steno.index.search.hit_text import HitReader, RegexPattern
from steno.index.search.query_parser import parse_query
from steno.index.session_stats import FILE_ID_SHIFT
from steno.index.sync.extract import decoded_lines
from steno.index.sync.updater import sync
from steno.index.text_index import MAX_TOKEN_SIZE
from steno.store.archive import catalogue

ANSWERS: Final = Path(__file__).with_name("answers")

# Paths and filters

_VALUES: Final = (
    *("a.py", "./a.py", "/a.py", "src/a.py", "./src/a.py", "/src/a.py", "/w/src/a.py", "//a.py"),
    *("src/", "/w/src/", "w/src/", "*.py", "s*/a.py", "/w/*.py", "?.py", "src/?.py"),
    *("A.PY", "src\\a.py", "c:\\w\\a.py", "w", ".py", "*"),
    *("./src/", "/src/", "/", "./", "src", "./*.py", "/*.py", "./src/?.py", "SRC/", "c:/w/", "b/"),
)
_PATHS: Final = (
    *("a.py", "src/a.py", "/a.py", "/src/a.py", "/w/src/a.py", "/w/xsrc/a.py", "w/src/a.py"),
    *("/w/src/aa.py", "src/b/a.py", "/x/w", "c:/w/a.py", "xsrc/a.py", "./a.py"),
)


def test_every_path_is_meant_or_not_as_recorded() -> None:
    test = vars(scope)["_make_path_test"]
    answers = {value: [path for path in _PATHS if test(value)(path)] or "none" for value in _VALUES}
    assert_recorded(ANSWERS / "file_filters.json", answers)


def test_a_folder_is_meant_from_the_root_only_with_a_slash_in_front(tmp_path: Path) -> None:
    made = session(seed="folders").user("go")
    for path in ("/src/a.py", "/w/src/b.py", "src/c.py"):
        made.assistant(tool("Read", file_path=path)).result("gull")
    searched = Searched(tmp_path, [made.done()])
    found = {
        query: len(searched.found(f"in:output gull file:{query}").messages)
        for query in ("src/", "./src/", "/src/", "/w/", "/src/a.py", "./src/a.py", "/c.py")
    }
    assert found == {"src/": 3, "./src/": 3, "/src/": 1, "/w/": 1, "/src/a.py": 1, "./src/a.py": 1, "/c.py": 0}


@pytest.mark.parametrize("order", ["newest", "oldest", "rank"])
@pytest.mark.parametrize(
    "query",
    [
        *("alpha", "alpha beta", "alpha -gamma", "lpha", "alpha in:prompt", "alpha file:*.py"),
        *("lpha file:*.py", "lpha -file:*.py"),
    ],
)
def test_the_first_hits_are_the_first_of_all_however_many_parts_they_have(
    tmp_path: Path, query: str, order: SearchOrder
) -> None:
    """Messages of one to nine parts, each of which is a document with the word."""
    many = session(seed="parts")
    for parts in (9, 1, 5, 4, 3, 9):
        many.user([text(f"alpha {'beta' * (n % 2)} n{n}") for n in range(parts)])
        many.assistant(tool("Read", file_path="/a.py")).result("alpha beta gamma")
    made = Searched(tmp_path, [many.done(), prompts("alpha", "alpha beta", seed="single")])
    assert made.finder.has_split_messages
    everything = made.found(query, order).messages
    assert len(everything) >= 6
    for number in range(len(everything) + 2):
        found = made.finder.find(parse_query(query), order, limit=number)
        assert found.messages == everything[:number]
        assert count_hits(made.finder, parse_query(query), order).first_messages(number) == everything[:number]


@pytest.mark.parametrize("order", ["newest", "oldest", "rank"])
@pytest.mark.parametrize("query", ["relay", "relay lighthouse", "elay", "tool:Bash", "file:*.py"])
def test_the_first_none_of_all_hits_are_none(tmp_path: Path, query: str, order: SearchOrder) -> None:
    made = Searched(tmp_path, [harbour(), ledger()])
    everything = made.found(query, order).messages
    for number in range(len(everything) + 2):
        found = made.finder.find(parse_query(query), order, limit=number)
        assert found.messages == everything[:number]
        counted = count_hits(made.finder, parse_query(query), order)
        assert counted.first_messages(number) == everything[:number]
        assert (
            counted.first_messages(number, {everything[0] >> FILE_ID_SHIFT})
            == [message for message in everything if message >> FILE_ID_SHIFT == everything[0] >> FILE_ID_SHIFT][
                :number
            ]
        )


def test_words_in_parts_of_several_messages_are_not_joined(tmp_path: Path) -> None:
    """Each message has two parts; all words must be in those of one."""
    many = session(seed="parts")
    for words in (("alpha", "beta"), ("alpha", "gamma"), ("beta", "gamma"), ("alpha", "beta delta")):
        many.user([text(word) for word in words]).assistant(text("Aye."))
    made = Searched(tmp_path, [many.done()])
    assert made.finder.has_split_messages

    def said(query: str, order: SearchOrder) -> list[str]:
        hits = made.hits(query, order)
        return [" ".join(part.text for part in hit.text.parts) for hit in hits]

    for order in ("newest", "oldest"):
        found = {
            query: said(query, order)[:: 1 if order == "oldest" else -1]
            for query in (
                *("alpha beta", "beta alpha", "alpha gamma", "alpha beta gamma", "alpha -beta"),
                *("alpha beta -delta", "delta alpha", "alpha -gamma -delta", "gamma -alpha -beta"),
            )
        }
        assert found == {
            "alpha beta": ["alpha beta", "alpha beta delta"],
            "beta alpha": ["alpha beta", "alpha beta delta"],
            "alpha gamma": ["alpha gamma"],
            "alpha beta gamma": [],
            "alpha -beta": ["alpha gamma"],
            "alpha beta -delta": ["alpha beta"],
            "delta alpha": ["alpha beta delta"],
            "alpha -gamma -delta": ["alpha beta"],
            "gamma -alpha -beta": [],
        }


def test_a_failed_result_keeps_all_that_it_is_known_by(tmp_path: Path) -> None:
    made = Searched(tmp_path, [harbour(), ledger()])
    ((message,),) = [made.found("has:error").messages]
    for query in ("in:output", "tool:Bash", "project:tide", "branch:fix/surge"):
        assert made.found(f"has:error {query}").messages == [message], query
        assert message not in made.found(f"-has:error {query} the OR in OR py OR 1").messages
    for query in ("in:input", "tool:Read", "project:ledger", "branch:main", "model:cedar"):
        assert made.found(f"has:error {query}").messages == [], query


def test_the_engine_alone_answers_what_is_plain(tmp_path: Path) -> None:
    """Not a scope of single messages, or one that is empty; no wildcard before a word."""
    made = Searched(tmp_path, [harbour(), ledger()])
    assert not made.finder.has_split_messages
    plain = {
        query: made.finder.engine_clauses(parse_query(query)) is not None
        for query in (
            *("relay", "relay blink", "relay -blink", "relay OR blink", '"the relay"', "rel*"),
            *("tool:Bash", "project:tide relay", "-tool:nothing relay", "-tool:Bash", "-in:input"),
            *("tool:nothing", "tool:nothing relay", "file:*.py", "-file:*.py relay", "*elay"),
            *("relay *link", "relay -*link"),
        )
    }
    assert [query for query, alone in plain.items() if not alone] == [
        *("tool:nothing", "tool:nothing relay", "file:*.py", "-file:*.py relay", "*elay"),
        *("relay *link", "relay -*link"),
    ]
    for query in [query for query, alone in plain.items() if alone]:
        answer = made.finder.engine_clauses(parse_query(query))
        messages = made.found(query).messages
        assert bool(messages) is (query != "relay blink")
        assert answer is not None
        assert answer[0].messages == []
        assert made.finder.count_by_file(answer[1]) == Counter(message >> FILE_ID_SHIFT for message in messages)
        assert made.finder.find_messages(answer[1], "newest") == messages


def test_words_of_messages_in_several_parts_are_joined_and_not_left_to_the_engine(tmp_path: Path) -> None:
    many = session(seed="parts").user([text("alpha"), text("beta")])
    many.assistant(text("gamma"), tool("Bash", command="delta")).result("ok")
    made = Searched(tmp_path, [many.done()])
    assert made.finder.has_split_messages
    plain = {
        query: made.finder.engine_clauses(parse_query(query)) is not None
        for query in ("alpha", "alpha OR beta", "gamma delta", "gamma -delta", "tool:Bash")
    }
    assert [query for query, alone in plain.items() if alone] == [*("alpha", "alpha OR beta", "tool:Bash")]


@pytest.mark.parametrize("order", ["newest", "oldest"])
def test_the_first_millisecond_of_all_is_a_time_and_zero_is_none(tmp_path: Path, order: SearchOrder) -> None:
    made = Searched(tmp_path, ())
    for number, time in enumerate(("00:00:00.000", "00:00:00.001", "00:00:00.002", "00:00:01.000")):
        path = write(made.root, session(seed=f"t{number}").user(f"gull n{number}").done())
        lines = path.read_bytes().split(b"\n")
        stamp = f'"timestamp":"1970-01-01T{time}Z","was":'.encode()
        path.write_bytes(b"\n".join(line.replace(b'"timestamp":', stamp) for line in lines))
    made.open()
    said = [hit.text.parts[0].text for hit in made.hits("gull", order)]
    dated = ["gull n1", "gull n2", "gull n3"]
    assert said == ([*dated, "gull n0"] if order == "oldest" else [*reversed(dated), "gull n0"])
    counted = count_hits(made.finder, parse_query("gull"), order)
    assert counted.first_messages(9) == made.found("gull", order).messages
    assert [counted.first_messages(number) for number in (1, 2)] == [
        counted.first_messages(9)[:1],
        counted.first_messages(9)[:2],
    ]


# Reading again


def test_the_tools_of_the_last_eight_files_are_remembered(tmp_path: Path) -> None:
    made = Searched(
        tmp_path, [session(seed=f"s{n}").user("go").assistant(tool(f"Tool{n}")).result("ok").done() for n in range(10)]
    )
    rows = made.index.connection.execute("SELECT result, name FROM tool_calls ORDER BY result")
    results: list[tuple[int, str]] = rows.fetchall()
    assert len(results) == 10
    with HitReader(made.index.connection) as reader:
        held: dict[int, Any] = vars(reader)["_tools"]
        for number, (message, name) in enumerate(results, 1):
            (read,) = reader.read_texts([message])
            assert [part.tool for part in read.parts] == [name]
            files = [each >> FILE_ID_SHIFT for each, _ in results[:number]]
            assert list(held) == files[-8:]
        # Only results do not name their tool: for others the tables are not asked.
        held.clear()
        rows = made.index.connection.execute("SELECT id FROM messages")
        others = {message for (message,) in rows} - {message for message, _ in results}
        assert [read.loss_reason for read in reader.read_texts(sorted(others))] == [""] * 20
        assert held == {}
        for message, _ in results[-8:]:
            list(reader.read_texts([message]))
        (again,) = reader.read_texts([results[-1][0]])
        assert again.parts[0].tool == results[-1][1]
        assert len(held) == 8


# Patterns


def test_a_pattern_takes_the_alarm_only_where_it_can_and_gives_it_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def mine(number: int, _frame: object) -> None:
        assert number

    before = signal.signal(signal.SIGALRM, mine)
    try:
        with RegexPattern("b") as pattern:
            assert signal.getsignal(signal.SIGALRM) is not mine
            assert pattern.find_spans("abc") == [(1, 2)]
            assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
        assert signal.getsignal(signal.SIGALRM) is mine
        assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
        found: list[object] = []

        def elsewhere() -> None:
            with RegexPattern("b") as pattern:
                found.extend([pattern.find_spans("abc"), signal.getsignal(signal.SIGALRM) is mine])

        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        assert found == [[(1, 2)], True]
        monkeypatch.delattr(signal, "setitimer")
        with RegexPattern("b") as pattern:
            assert signal.getsignal(signal.SIGALRM) is mine
            assert pattern.find_spans("abc") == [(1, 2)]
    finally:
        signal.signal(signal.SIGALRM, before)


# Lines that are none


@pytest.mark.parametrize("last", [b"", b"\n", b"\n\n", b"\n\n\n"])
def test_blank_lines_behind_one_another_are_one_gap(last: bytes) -> None:
    line = b'{"type":"mode","mode":"x"}'
    size = len(line)
    data = line + b"\n\n\n" + line + b"\nx\n" + line + last
    seen: list[tuple[int, bytes, bool] | tuple[int, int, bytes, list[str]]] = []
    for piece in decoded_lines(BytesSource(data)):
        if isinstance(piece, tuple):
            seen.append((piece[2], piece[1], piece[3]))
            continue
        assert isinstance(piece, Gap)
        notes = [note.id for note in piece.damage]
        seen.append((piece.offset, piece.length, piece.head, notes))
    # The last line without a newline comes alone; blank ones behind one another have no head.
    end = size * 3 + 7
    behind: dict[int, list[Any]] = {2: [(end, 1, b"", [])], 3: [(end, 2, b"", [])]}
    assert seen == [
        (0, line, True),
        (size + 1, 2, b"", []),
        (size + 3, line, True),
        (size * 2 + 4, 2, b"x\n", ["line.not-json"]),
        (size * 2 + 6, line, bool(last)),
        *behind.get(len(last), []),
    ]


# Strings and what becomes of them


def _leaves(raw: bytes, said: str) -> tuple[dict[str, int], bool]:
    (line,) = decode_lines(raw)
    made = classify_strings(line, raw, said)
    return dict(made.sizes), made.is_mismatched


@pytest.mark.parametrize("letter", ["y", "é", "\N{CJK UNIFIED IDEOGRAPH-4E00}"])
def test_words_without_end_are_counted_from_512_bytes_on(letter: str) -> None:
    width = len(letter.encode())
    for size in (MAX_TOKEN_SIZE // width - 1, -(-MAX_TOKEN_SIZE // width), MAX_TOKEN_SIZE):
        said = f"a {letter * size} b"
        raw = b'{"type":"user","uuid":"u","message":{"content":"' + said.encode() + b'"}}'
        long = size * width if size * width >= MAX_TOKEN_SIZE else 0
        sizes, odd = _leaves(raw, said)
        assert (sizes["words"], sizes.get("long", 0), odd) == (len(said.encode()) - long, long, False)


def test_strings_of_an_unknown_layout_are_words_where_they_are_said() -> None:
    raw = b'{"type":"user","uuid":"u","message":{"content":"one"},"other":"two"}'
    assert _leaves(raw, "one") == ({"words": 3, "state": 3}, False)
    # What is said is more than the record has in the usual places.
    sizes, odd = _leaves(raw, "one\ntwo")
    assert (sizes["words"], odd) == (6, False)
    assert _leaves(raw, "one\ntwo\nthree")[1] is True
    long = b"z" * MAX_TOKEN_SIZE
    sizes, odd = _leaves(raw.replace(b"two", long), "one")
    assert (sizes, odd) == ({"words": 3, "state": MAX_TOKEN_SIZE}, False)


def test_what_other_blocks_call_input_is_not_said() -> None:
    block = '{"type":"text","text":"one","input":"two"}'
    call = '{"type":"tool_use","id":"c","name":"Bash","input":{"command":"three"}}'
    raw = f'{{"type":"assistant","uuid":"u","message":{{"content":[{block},{call}]}}}}'.encode()
    assert _leaves(raw, "one\nthree") == ({"words": 8, "state": 3}, False)


def test_why_a_record_is_silent() -> None:
    kinds = ("progress", "last-prompt", "file-history-snapshot", "mode", "system", "user")
    reasons: dict[str, str] = {}
    for kind in kinds:
        (line,) = decode_lines(b'{"type":"%s"}' % kind.encode())
        reasons[kind] = unsearched_reason(line)
        (spoken,) = decode_lines(b'{"type":"%s","message":{"content":"x"}}' % kind.encode())
        assert unsearched_reason(spoken) == ""
    assert list(reasons.values()) == ["progress", "repeat", "state", "state", "", ""]
    assert unsearched_reason(decode_lines(b"{}")[0]) == ""


# Syncs


def test_the_archive_is_only_looked_into_when_it_has_news(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, ...]] = []
    look = catalogue.archived_only_below

    def below(roots: tuple[str, ...], *others: Any) -> Any:
        asked.append(roots)
        return look(roots, *others)

    monkeypatch.setattr(catalogue, "archived_only_below", below)
    made = Searched(tmp_path, [prompts("alpha")])
    sync(made.home)
    assert asked == []
    from steno.store.archive.archive import archive_all

    root = str(made.root)
    archive_all((root,))
    for home, times in ((made.home, 1), (made.home, 1), (IndexLocation(made.home.folder, (root, str(tmp_path))), 2)):
        sync(home)
        assert len(asked) == times
    assert asked == [(root,), (root, str(tmp_path))]


def test_a_title_of_its_own_stays_when_a_lent_one_goes(tmp_path: Path) -> None:
    """Two sessions of which a third has the titles; one of them has a title of its own."""
    folder = tmp_path / "config" / "projects" / "-p"
    folder.mkdir(parents=True)
    home = IndexLocation(str(tmp_path / "index"), (str(tmp_path / "config"),))
    paths = [folder / f"0000000{n}-0000-4000-8000-000000000000.jsonl" for n in range(3)]

    def line(name: str, words: str) -> str:
        message = f'"message":{{"role":"user","content":"{words}"}}'
        return f'{{"type":"user","uuid":"{name}","sessionId":"{name}","parentUuid":null,{message}}}\n'

    def rows() -> list[tuple[str, int]]:
        with sqlite3.connect(Path(home.folder, DATABASE_NAME)) as connection:
            query = "SELECT s.title, s.named FROM sessions s JOIN files f ON f.id = s.file"
            found = connection.execute(f"{query} ORDER BY f.path").fetchall()
        connection.close()
        return found

    own = '{"type":"custom-title","customTitle":"Own","sessionId":"u1"}\n'
    paths[0].write_text(line("u0", "first words"))
    paths[1].write_text(line("u1", "other words") + own)
    lent = [f'{{"type":"summary","summary":"Lent {n}","leafUuid":"u{n}"}}\n' for n in range(2)]
    paths[2].write_text("".join(lent) + line("u2", "third words"))
    sync(home)
    assert rows() == [("Lent 0", 1), ("Own", 1), ("third words", 0)]
    paths[2].write_text(line("u2", "third words, and no titles"))
    os.utime(paths[2], (1_794_700_000, 1_794_700_000))
    sync(home)
    assert rows() == [("first words", 0), ("Own", 1), ("third words, and no titles", 0)]


def test_lines_are_decoded_together_only_when_all_are_usual() -> None:
    """Of each small transcript, line by line or together, the lines are the same."""
    for name, made in TRANSCRIPTS.items():
        data = made().bytes()
        at = 0
        for piece in decoded_lines(BytesSource(data)):
            if isinstance(piece, tuple):
                _, raw, offset, ended = piece
                assert data[offset : offset + len(raw)] == raw, name
                assert offset == at, name
                at += len(raw) + ended
            else:
                assert piece.offset == at, name
                at += piece.length
        assert at == len(data), name
