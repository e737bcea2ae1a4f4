"""Each search finds exactly the recorded messages, in order, with their excerpts and counts."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, get_args

import pytest
from tests.builders import session, text, thinking, tool
from tests.index.searching import NOW, Searched, harbour, ledger, prompts, write
from tests.recorded_answers import assert_recorded, plain

from steno.errors import BadRequest
from steno.index.search.finder import Finder, SearchOrder, count_hits, group_hits
from steno.index.search.hit_text import Excerpt, HitReader, RegexPattern, best_excerpt
from steno.index.search.query_parser import FILTERS, parse_query
from steno.index.search.scope import ROLES, SearchScope, build_scope
from steno.index.searchable_text import TEXT_KINDS, TextPart
from steno.index.session_stats import FILE_ID_SHIFT
from steno.report.clock import parse_time_range

ANSWERS: Final = Path(__file__).with_name("answers")
_OFFSET: Final = (1 << FILE_ID_SHIFT) - 1


@pytest.fixture(scope="module")
def four(tmp_path_factory: pytest.TempPathFactory) -> Searched:
    """Four sessions, one with a sub-agent, one with messages of several parts, one without times."""
    folder = tmp_path_factory.mktemp("four")
    first = tool("Task", description="Look", prompt="Find the lamp", subagent_type="Explore")
    made = session(seed="agents", start="2026-11-01T08:00:00.000Z", cwd="/home/ada/pier")
    made.user([text("The lamp and the relay"), text("under systemctl"), text("the relay again")])
    made.assistant(first).agent(
        lambda agent: agent.assistant("The lamp is in the tower.", tool("Bash", command="ls lamp"))
        .result("lamp.py").assistant("Found the relay.")
    )  # fmt: skip
    made.assistant(text("The sub-agent found the lamp."), thinking("Is the relay there?")).done()
    undated = session(seed="undated", cwd="/home/ada/pier/north", branch="fix")
    undated.user("The relay of no time").assistant("Aye, the lamp.")
    found = Searched(folder, ())
    for each in (harbour(), ledger(), made):
        write(found.root, each)
        found.open()
    path = write(found.root, undated)
    stamp = path.read_bytes().replace(b'"timestamp":', b'"was":')
    path.write_bytes(stamp)
    found.open()
    return found


def _place(found: Searched) -> Callable[[int], str]:
    """Return what names a message by its project, its line and whether a sub-agent said it."""
    rows = found.index.connection.execute("SELECT id, path FROM files").fetchall()
    paths = {file: Path(path) for file, path in rows}

    def place(message: int) -> str:
        path = paths[message >> FILE_ID_SHIFT]
        line = path.read_bytes()[: message & _OFFSET].count(b"\n")
        name = path.relative_to(found.root / "projects").parts[0].rsplit("-", 1)[-1]
        return f"{name}{'/agent' * ('agent' in path.name)}:{line}"

    return place


QUERIES: Final = (
    *("relay", "lamp", "lighthouse", "the relay", "the -relay", "relay -lamp", "relay OR twice"),
    *("lamp OR twice relay", '"the relay"', '-"the relay" relay', "light*", "*house", "*ighth*"),
    *("ight", "ighthous elay", "elay -blink", "rela -lamp", "zzzz", "zzzz relay", "ight -elay"),
    *("relay lamp", "systemctl relay", "systemctl lamp", "systemctl -lamp", "lamp relay under"),
    *("relay relay", "getUserName", "4f9d2c1", "2.1.42", "连接", "-> relay", "relay -->", "te ay"),
    *("tool:Read", "tool:read relay", "tool:ea", "tool:Bash tool:Read", "-tool:Bash lamp"),
    *("-tool:a relay", "tool:nothing", "tool:nothing tool:Bash", "tool:B", "tool:Bash -tool:Bash"),
    *("project:pier relay", "project:PIER", "project:ledger", "project:. relay", "-project:pier lamp"),
    *("project:/home/ada/pier relay", "project:nowhere", "-project:nowhere relay"),
    *("branch:fix relay", "branch:main", "branch:MAIN relay", "branch:surge", "branch:x", "branch:i"),
    *("model:fern", "model:claude relay", "-model:cedar relay", "model:none", "model:FERN lamp"),
    *(f"in:{kind}" for kind in TEXT_KINDS),
    *("in:prompts relay", "in:summaries", "in:answers in:thinking relay", "-in:prompt relay"),
    *("in:prompt in:answer lamp", "in:nothing", "-in:answer -in:prompt lamp", "in:Title"),
    *(f"role:{role} relay" for role in ROLES),
    *("role:human relay", "role:system", "role:model lamp", "role:tools", "role:nobody", "-role:user relay"),
    *("role:tool in:prompt", "has:error", "has:errors blinking", "-has:error relay", "has:luck"),
    *("file:relay.py", "file:lamp/relay.py", "file:/home/ada/tidegauge/src/lamp/relay.py", "file:ay.py"),
    *("file:*.py", "file:*/login.py", "file:log?n.py", "file:src/", "file:/home/ada/", "file:ada/l"),
    *("file:./relay.py", "file:RELAY.PY", "file:lamp\\relay.py", "-file:relay.py lighthouse"),
    *("file:none.py", "file:relay.py blink", "file:relay.py lantern", "file:relay.py file:login.py"),
    *("file:relay.py -file:login.py", "-file:none lamp", "file:*.py session:harbour", "file:/relay.py"),
    *("session:a", "session:last", "session:last relay", "session:Harbour", "session:lantern", "-session:last relay"),
    *("session:nothing", "session:HARBOUR relay", "session:last session:harbour lamp", "-session:x lamp"),
    *("since:2026-11-01 relay", "until:2026-11-01 relay", "since:2026-10-01 until:2026-10-31 relay"),
    *("since:1d", "since:yesterday relay", "since:2026-11-01 since:2026-10-01 relay", "-since:1d"),
    *("until:2026-10-01 until:2026-11-14 relay", "-until:1d", "since:never", "until:1d -relay the"),
    *("until:2026-10-01", "since:2026-11-02 lamp", "since:99999w relay"),
    *("", "-relay", "->", '"->"', "x" * 600, "tool:", 'tool:" "', "-in:prompt", "-relay -lamp"),
    *('session:""', "x -x", "relay AND lamp", "relay OR lamp OR twice -the"),
)


def _searched(found: Searched, query: str, order: SearchOrder) -> object:
    place = _place(found)
    try:
        asked = parse_query(query)
        made = found.finder.find(asked, order)
    except BadRequest as error:
        return error
    counted = count_hits(found.finder, asked, order)
    assert counted.first_messages(10_000) == made.messages
    answer: dict[str, Any] = {"found": [place(each) for each in made.messages]}
    if order == "newest":
        answer["scope"] = _scope(made.scope)
        answer["wide"] = made.is_widened
        answer["ignored"] = made.query_forms.ignored
        answer["groups"] = [len(each) for each in made.query_forms.groups]
        answer["excerpts"] = [_excerpt(each) for each in _excerpts(found, query)]
        answer = {name: value for name, value in answer.items() if value or name == "found"}
    return answer


def _scope(scope: SearchScope) -> dict[str, Any]:
    """Return what a scope leaves that a new one does not."""
    new = SearchScope()
    found: dict[str, Any] = {}
    for name in scope.__struct_fields__:
        value = getattr(scope, name)
        if value != getattr(new, name):
            many = name in ("messages", "excluded_messages")
            found[name] = len(value) if many else value
    return found


def _excerpts(found: Searched, query: str) -> list[Excerpt | None]:
    made = found.found(query)
    with HitReader(found.index.connection) as reader:
        return [
            best_excerpt(read, made.query_forms, made.scope, found.finder.tokenize)
            for read in reader.read_texts(made.messages)
        ]


def _excerpt(made: Excerpt | None) -> object:
    if made is None:
        return None
    marked = made.text
    for start, end in reversed(made.marks):
        marked = f"{marked[:start]}«{marked[start:end]}»{marked[end:]}"
    part = made.part
    return [part.kind, part.tool, part.failed, made.start, made.is_at_start, made.is_at_end, marked[:80]]


@pytest.mark.parametrize("number", range(4))
def test_every_query_finds_what_is_recorded(four: Searched, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The messages in order, what was looked at, what was ignored, and the excerpt of each."""
    monkeypatch.setattr(os, "getcwd", lambda: "/home/ada/pier")
    answers = {query: _searched(four, query, "newest") for query in QUERIES[number::4]}
    assert_recorded(ANSWERS / f"search_{number}.json", answers)


@pytest.mark.parametrize("order", ["oldest", "rank"])
def test_every_order_is_as_recorded(four: Searched, order: SearchOrder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getcwd", lambda: "/home/ada/pier")
    answers: dict[str, object] = {}
    for query in QUERIES:
        made = _searched(four, query, order)
        if isinstance(made, dict) and len(made["found"]) > 1:
            answers[query] = " ".join(made["found"])
    assert_recorded(ANSWERS / f"search_{order}.json", answers)


def test_the_first_so_many_of_every_order_are_the_first_of_all(four: Searched) -> None:
    for query in ("relay", "the -relay", "systemctl relay", "ight", "file:*.py", "lamp"):
        for order in get_args(SearchOrder):
            every = four.finder.find(parse_query(query), order).messages
            for first in (1, 2, 3, len(every), len(every) + 1):
                assert four.finder.find(parse_query(query), order, limit=first).messages == every[:first]
            counted = count_hits(four.finder, parse_query(query), order)
            for file in counted.counts_by_file:
                own = [each for each in every if each >> FILE_ID_SHIFT == file]
                assert counted.counts_by_file[file] == len(own)
                for number in (1, 2, 100):
                    assert counted.first_messages(number, {file}) == own[:number]
            assert counted.first_messages(100, set(counted.counts_by_file)) == every


def test_what_is_not_asked_alone_may_want_nothing(four: Searched) -> None:
    """Beside a pattern a query need not have words; then all of the scope is meant."""
    every = four.finder.find(parse_query(""), require_terms=False).messages
    ((known,),) = four.index.connection.execute("SELECT count(*) FROM messages")
    assert len(set(every)) == len(every) <= known
    without = four.finder.find(parse_query("-relay"), require_terms=False).messages
    assert set(every) - set(without) == set(four.finder.find(parse_query("relay")).messages)


def test_sessions_of_hits_are_as_recorded(four: Searched) -> None:
    place = _place(four)
    answers: dict[str, object] = {}
    for query in ("lamp", "relay", "tower", "lighthouse"):
        groups = group_hits(four.index.connection, four.found(query).messages)
        made: list[Any] = []
        for group in groups:
            fields = plain(group)
            fields["path"] = Path(group.path).relative_to(four.root).as_posix()
            fields["messages"] = [place(each) for each in group.messages]
            fields["files"] = [Path(path).name for path in group.files.values()]
            fields["agents"] = list(group.agents.values())
            made.append(fields)
        answers[query] = made
    assert_recorded(ANSWERS / "search_groups.json", answers)
    (unknown,) = group_hits(four.index.connection, [(99 << FILE_ID_SHIFT) + 5, (99 << FILE_ID_SHIFT) + 7])
    assert (unknown.id, unknown.has_session_file, unknown.messages) == (
        "@99", False, [(99 << FILE_ID_SHIFT) + 5, (99 << FILE_ID_SHIFT) + 7],
    )  # fmt: skip
    assert (unknown.files, unknown.agents) == ({99: ""}, {})


def test_too_many_words_are_refused_and_as_many_as_allowed_are_not(four: Searched) -> None:
    assert four.finder.find(parse_query(" ".join(f"w{n}" for n in range(64)))).messages == []
    with pytest.raises(BadRequest) as refused:
        four.finder.find(parse_query(" ".join(f"w{n}" for n in range(65))))
    assert str(refused.value) == "more than 64 words"
    with pytest.raises(BadRequest):
        four.finder.find(parse_query("x " + " ".join(f"-w{n}" for n in range(64))))


def test_a_pattern_finds_what_is_recorded() -> None:
    """Small letters mean capitals too; `^` and `$` are ends of lines; matches of nothing count."""
    texts = ("Relay relay\nthe RELAY", "a1 b2\n", "", "aaa")
    answers: dict[str, object] = {}
    for shape in ("relay", "Relay", r"\Drelay", r"^the", r"y$", "", "x*", "(", "a" * 1000,
                  "a" * 1001, r"\\Drelay", r"\w\d", "a", "(?=a)", "[[a]", "(" * 500, r"\S+"):  # fmt: skip
        try:
            pattern = RegexPattern(shape)
        except BadRequest as error:
            answers[shape[:30] + f" ({len(shape)})"] = error
            continue
        with pattern:
            answers[shape[:30] + f" ({len(shape)})"] = [pattern.find_spans(each) for each in texts]
        assert (pattern.slow_count, pattern.truncated_count) == (0, 0)
    assert_recorded(ANSWERS / "patterns.json", answers)
    assert [len(RegexPattern("a").find_spans("a" * number)) for number in (199, 200, 201)] == [199, 200, 200]


def test_a_pattern_looks_only_at_the_beginning_of_a_text_without_end() -> None:
    pattern = RegexPattern("b")
    assert pattern.find_spans("a" * 3_999_999 + "b") == [(3_999_999, 4_000_000)]
    assert pattern.truncated_count == 0
    assert pattern.find_spans("a" * 4_000_000 + "b") == []
    assert pattern.find_spans("a" * 4_000_000 + "b") == []
    assert (pattern.truncated_count, pattern.slow_count) == (1, 0)


def test_a_pattern_chooses_among_messages(four: Searched) -> None:
    every = four.finder.find(parse_query(""), require_terms=False).messages
    steps: list[int] = []
    scope = build_scope(
        four.index.connection, parse_query("in:prompt").filters, lambda word: parse_time_range(word, NOW)
    )
    place = _place(four)
    with HitReader(four.index.connection) as reader, RegexPattern("relay") as pattern:
        fitting = pattern.filter_messages(reader, every, scope, steps.append)
    assert sorted(map(place, fitting)) == ["ledgerfold:0", "north:0", "pier:0"]
    lengths = dict(four.index.connection.execute("SELECT id, length FROM messages"))
    assert steps == [lengths[each] for each in sorted(every)]


def test_every_filter_is_explained(four: Searched) -> None:
    for name in FILTERS:
        with pytest.raises(BadRequest) as refused:
            four.found(f'{name}:" " x')
        assert str(refused.value) == f"{name}: needs a value"
        assert refused.value.hint == FILTERS[name]


def test_the_engine_is_asked_within_the_scope(four: Searched) -> None:
    """The conditions of each scope, as the engine has them: sets of numbers, and the time."""
    answers = {
        name: [f"{occur!r} {query!r}" for occur, query in scope.clauses(four.finder.schema)]
        for name, scope in {
            "nothing": SearchScope(),
            "tags": SearchScope(tags=[frozenset({3, 2}), frozenset({5})], excluded_tags=frozenset({7})),
            "files": SearchScope(files=frozenset({2, 1}), excluded_files=frozenset({3})),
            "no files": SearchScope(files=frozenset()),
            "since": SearchScope(since=5),
            "since the beginning": SearchScope(since=0),
            "since before": SearchScope(since=-5),
            "since one": SearchScope(since=1),
            "until": SearchScope(until=9),
            "both": SearchScope(since=4, until=9),
        }.items()
    }
    assert_recorded(ANSWERS / "search_clauses.json", answers)
    assert [SearchScope(messages=frozenset({1}), excluded_messages=frozenset({2})).includes_message(n) for n in (1, 2, 3)] == [
        True, False, False,
    ]  # fmt: skip
    assert (SearchScope().selects_messages, SearchScope(messages=frozenset()).selects_messages) == (False, True)
    assert SearchScope(excluded_messages=frozenset({1})).selects_messages


def test_parts_fit_a_scope_by_kind_tool_and_failure() -> None:
    bash, read = TextPart("output", "x", "Bash", failed=True), TextPart("output", "x", "Read")
    answer = TextPart("answer", "x")
    for scope, fitting in (
        (SearchScope(), [bash, read, answer]),
        (SearchScope(kinds=frozenset({"answer"})), [answer]),
        (SearchScope(tools=frozenset({"Bash"})), [bash]),
        (SearchScope(excluded_tools=frozenset({"Bash"})), [read, answer]),
        (SearchScope(failed=True), [bash]),
        (SearchScope(failed=False), [read, answer]),
    ):
        assert [part for part in (bash, read, answer) if scope.includes_part(part)] == fitting


def test_names_that_fit_nothing_are_listed_as_far_as_there_is_room(tmp_path: Path) -> None:
    made = session(seed="tools").user("Go.")
    for number in range(9):
        made.assistant(tool(f"Tool{number}")).result("ok")
    found = Searched(tmp_path, [made.done()])
    listed = "Tool0, Tool1, Tool2, Tool3, Tool4, Tool5, Tool6, Tool7 … and 1 more"
    assert found.found("tool:zz").scope.empty_reason == f"no tool matches 'zz'; known: {listed}"
    long = "z" * 61
    assert found.found(f"tool:{long} tool:y").scope.empty_reason == (
        f"no tool matches 'y' or 'y'; known: {listed}".replace("'y' or", f"'{'z' * 60}' or")
    )
    assert found.found("branch:zz").scope.empty_reason == "no branch matches 'zz'"


def test_words_of_an_unfinished_batch_are_left_out_of_counts_and_hits(tmp_path: Path) -> None:
    found = Searched(tmp_path, [prompts("alpha", "beta")])
    connection = found.index.connection
    connection.execute("PRAGMA query_only = OFF")
    connection.execute("UPDATE batches SET open = 1")
    finder = Finder(connection, found.index.texts, lambda word: parse_time_range(word, NOW))
    assert finder.find(parse_query("alpha")).messages == []
    assert count_hits(finder, parse_query("alpha")).counts_by_file == {}
