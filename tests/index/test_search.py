"""What was said is found: by word, by part, by who said it, where and when."""

import json
from pathlib import Path
from typing import get_args

import pytest
from tests.builders import session, text, tool
from tests.index.searching import Searched, harbour, ledger, prompts, write

from steno.errors import BadRequest
from steno.format.encode import encode_line
from steno.index.search.finder import SearchOrder, group_hits
from steno.index.search.hit_text import HitReader
from steno.index.search.query_parser import parse_query
from steno.store.archive.catalogue import CatalogueEntry


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Searched:
    return Searched(tmp_path_factory.mktemp("two"), (harbour(), ledger()))


NAMES = (
    "getUserName",
    "get_user_name",
    "GetUserNames",
    "src/auth/login.py",
    "ERR_CONN_RESET",
    "v2.1.42",
    "4f9d2c1ab7e0551d",
    "7c1f2a3b-4d5e-4f60-8123-456789abcdef",
    "数据库连接失败了",
    "std::vector<int>",
    "Ünïcödé",
    "user@example.com",
    "résumé",
)


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> Searched:
    asked = [f"before {name} behind" for name in NAMES]
    return Searched(tmp_path_factory.mktemp("names"), [prompts(*asked)])


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("getUserName", {"getUserName", "GetUserNames"}),
        ('"getUserName"', {"getUserName"}),
        ("getusername", {"getUserName"}),
        ("UserName", {"getUserName", "GetUserNames"}),
        ("get_user_name", {"get_user_name"}),
        ("user_name", {"get_user_name"}),
        ("src/auth/login.py", {"src/auth/login.py"}),
        ("auth/login.py", {"src/auth/login.py"}),
        ("login.py", {"src/auth/login.py"}),
        ("src/*/login.py", {"src/auth/login.py"}),
        ("ERR_CONN_RESET", {"ERR_CONN_RESET"}),
        ("err_conn_reset", {"ERR_CONN_RESET"}),
        ("CONN_RESET", {"ERR_CONN_RESET"}),
        ("v2.1.42", {"v2.1.42"}),
        ("2.1.42", {"v2.1.42"}),
        ("4f9d2c1", {"4f9d2c1ab7e0551d"}),
        ("7c1f2a3b", {"7c1f2a3b-4d5e-4f60-8123-456789abcdef"}),
        ("7c1f2a3b-4d", {"7c1f2a3b-4d5e-4f60-8123-456789abcdef"}),
        ("连接", {"数据库连接失败了"}),
        ("数据库", {"数据库连接失败了"}),
        ("失败了", {"数据库连接失败了"}),
        ("std::vector", {"std::vector<int>"}),
        ("ünïcödé", {"Ünïcödé"}),
        ("user@example.com", {"user@example.com"}),
        ("*User*", {"getUserName", "GetUserNames", "get_user_name", "user@example.com"}),
        ("getuser*", {"getUserName", "GetUserNames"}),
        ("*names", {"GetUserNames"}),
        ("get*name", {"getUserName"}),
        ("reset -err_conn", set[str]()),
        ("résumé", {"résumé"}),
        ("re\u0301sume\u0301", {"résumé"}),
    ],
)
def test_identifiers_are_found_whole_and_by_part(names: Searched, query: str, found: set[str]) -> None:
    hits = names.hits(query)
    said = {hit.text.parts[0].text.removeprefix("before ").removesuffix(" behind") for hit in hits}
    assert said == found


def test_a_word_that_stands_alone_somewhere_is_not_looked_for_inside_others(names: Searched) -> None:
    assert not names.found("user").is_widened
    found = names.found("sername")
    assert found.is_widened
    assert {mark for hit in names.hits("sername") for mark in hit.marked} == {"serName"}


@pytest.mark.parametrize(
    ("query", "kinds"),
    [
        ("lighthouse", ["answer", "input", "output", "prompt", "thinking"]),
        ('"relay of the"', ["answer", "prompt"]),
        ('"of relay"', []),
        ("lighthouse relay", ["answer", "thinking"]),
        ("lighthouse -relay", ["input", "output", "prompt"]),
        ('lighthouse -"relay of"', ["input", "output", "prompt", "thinking"]),
        ("blink OR worn", ["output", "prompt", "thinking"]),
        ("lighthouse blink OR worn", ["output", "prompt", "thinking"]),
        ("lanterns", ["note", "title"]),
        ("tool:Bash", ["input", "output"]),
        ("tool:bash blinking", ["output"]),
        ("tool:Bash tool:Read", ["input", "input", "output", "output"]),
        ("tool:as lamp", ["input"]),
        ("lighthouse -tool:Read", ["answer", "input", "prompt", "thinking"]),
        ("in:prompt lighthouse", ["prompt"]),
        ("in:prompts in:thinking lighthouse", ["prompt", "thinking"]),
        ("lighthouse -in:prompt", ["answer", "input", "output", "thinking"]),
        ("role:user relay", ["prompt"]),
        ("role:assistant lighthouse", ["answer", "input", "thinking"]),
        ("role:tool lighthouse", ["output"]),
        ("role:client lanterns", ["note", "title"]),
        ("project:ledgerfold relay", ["prompt"]),
        ("-project:ledgerfold relay in:prompt", []),
        ("project:LEDGER relay", ["prompt"]),
        ("branch:fix/surge lighthouse in:prompt", ["prompt"]),
        ("branch:surge lighthouse in:prompt", ["prompt"]),
        ("branch:main lighthouse", ["input"]),
        ("model:fern relay", ["answer", "answer", "input", "thinking"]),
        ("model:cedar relays", ["answer"]),
        ("has:error", ["output"]),
        ("has:error conn", ["output"]),
        ("lighthouse -has:error role:tool", ["output"]),
        ("since:2026-11-01 relay in:prompt", []),
        ("since:2026-10-01 relay in:prompt", ["prompt"]),
        ("until:2026-10-01 relay in:prompt", ["prompt"]),
        ("until:2026-09-30 relay", []),
        ("since:60d until:14d relay in:prompt", ["prompt"]),
        ("file:login.py", ["input", "output"]),
        ("file:auth/login.py lighthouse", ["input"]),
        ("file:/home/ada/ledgerfold/src/auth/login.py updated", ["output"]),
        ("file:LOGIN.PY lighthouse", ["input"]),
        ("file:ogin.py", []),
        ("file:src/lamp/", ["input", "output"]),
        ("file:*.py lighthouse", ["input", "output"]),
        ("lighthouse -file:*.py", ["answer", "prompt", "thinking"]),
        ('session:"harbour lanterns" relay in:answer', ["answer", "answer"]),
        ("session:lanterns blink", ["output", "prompt"]),
        ("session:last lighthouse in:prompt", ["prompt"]),
        ("-session:last lighthouse", ["input"]),
        ("session:nobody lighthouse", []),
        ("tool:nothing lighthouse", []),
    ],
)
def test_filters_choose_what_is_looked_at(two: Searched, query: str, kinds: list[str]) -> None:
    assert two.kinds(query) == kinds


def test_a_session_is_named_by_the_first_letters_of_its_id(two: Searched) -> None:
    first = ledger().session_id
    assert two.kinds(f"session:{first[:6]} relay") == ["prompt"]
    assert two.kinds(f"session:{first} relay") == ["prompt"]


def test_here_is_the_folder_one_is_in(two: Searched, monkeypatch: pytest.MonkeyPatch) -> None:
    assert two.found("project:. lighthouse").messages == []
    monkeypatch.setattr("steno.index.search.scope.os.getcwd", lambda: "/home/ada/ledgerfold")
    assert two.kinds("project:. lighthouse") == ["input"]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("in:nonsense x", "in: unknown value 'nonsense'"),
        ("role:boss x", "role: unknown value 'boss'"),
        ("has:luck x", "has: unknown value 'luck'"),
        ("since:never x", "not a time: 'never'"),
        ("-since:7d x", "-since: is not supported"),
        ('tool:"" x', "tool: needs a value"),
        ("", "empty query"),
        ("-x", "only excluded words"),
        ("->", "no letter or digit in '->'"),
        ("y" * 600, f"'{'y' * 20}'… is longer than any word in the index"),
        (" ".join(f"w{n}" for n in range(65)), "more than 64 words"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(two: Searched, query: str, said: str) -> None:
    with pytest.raises(BadRequest) as error:
        two.found(query)
    assert str(error.value) == said
    assert error.value.hint


def test_a_filter_that_fits_nothing_says_which(two: Searched) -> None:
    assert two.found("tool:Nothing x").scope.empty_reason.startswith("no tool matches 'Nothing'; known: ")
    assert two.found("project:nowhere x").scope.empty_reason == "no project matches 'nowhere'"
    assert two.found("session:nobody x").scope.empty_reason == "no session matches 'nobody'"
    assert two.found("file:none.py x").scope.empty_reason == "no tool call refers to a file matching 'none.py'"


def test_a_list_that_was_cut_says_how_much_is_missing(tmp_path: Path) -> None:
    made = session().user("go")
    for number in range(10):
        made.assistant(tool(f"Tool{number}", x="y")).result("ok")
    said = Searched(tmp_path, [made.done()]).found("tool:Nothing x").scope.empty_reason
    assert said.endswith(", Tool6, Tool7 … and 2 more")


def test_a_sign_beside_words_is_left_out_and_said(two: Searched) -> None:
    found = two.found("lighthouse ->")
    assert found.query_forms.ignored == ["->"]
    assert len(found.messages) == 5


def test_the_newest_come_first_or_the_oldest_or_the_best(two: Searched) -> None:
    def times(order: SearchOrder) -> list[int]:
        return [hit.text.time or 0 for hit in two.hits("relay", order)]

    newest = times("newest")
    assert newest == sorted(newest, reverse=True)
    assert times("oldest") == newest[::-1]
    best = two.hits("lighthouse", "rank")
    assert len(best) == 5


def test_words_in_two_parts_of_one_message_are_found_together(tmp_path: Path) -> None:
    blocks = [text("The heron waits."), text("The ferry leaves.")]
    apart = prompts("The heron is alone.", "The ferry is alone.", seed="apart")
    searched = Searched(tmp_path, [session(seed="both").user(blocks).done(), apart])
    assert len(searched.found("heron").messages) == 2
    (hit,) = searched.hits("heron ferry")
    assert [part.text for part in hit.text.parts] == ["The heron waits.", "The ferry leaves."]
    assert len(searched.found("heron -ferry").messages) == 1
    assert len(searched.found("ferry waits OR leaves").messages) == 1


def test_a_word_is_left_out_wherever_in_a_message_it_stands(tmp_path: Path) -> None:
    blocks = [text("The heron waits."), text("The ferry leaves.")]
    apart = prompts("The heron is alone.", "The gull is alone.", seed="apart")
    searched = Searched(tmp_path, [session(seed="both").user(blocks).done(), apart])
    assert len(searched.found("role:user").messages) == 3
    assert len(searched.found("role:user -ferry").messages) == 2
    assert len(searched.found("role:user -heron").messages) == 1
    assert len(searched.found("role:user -heron -gull").messages) == 0
    assert len(searched.found("role:user -ferry -gull").messages) == 1
    everything = searched.finder.find(parse_query("-ferry -gull"), require_terms=False).messages
    assert len(everything) == len(searched.found("role:user role:assistant").messages) - 2


@pytest.mark.parametrize("query", ["lanterns", "lanterns harbour", "lanterns -nothing"])
def test_what_has_no_time_comes_last_in_every_order(tmp_path: Path, query: str) -> None:
    early = prompts("Old harbour lanterns.", "New harbour lanterns.", seed="early")
    both = session(seed="split").user([text("The lanterns"), text("of the harbour")]).done()
    searched = Searched(tmp_path, [harbour(), early, both])
    orders: tuple[SearchOrder, ...] = ("newest", "oldest")
    for order in orders:
        times = [hit.text.time for hit in searched.hits(query, order)]
        dated = [time for time in times if time]
        assert len(times) > len(dated) == 3
        assert times[3:] == [None] * (len(times) - 3)
        assert dated == sorted(dated, reverse=order == "newest")
        for first in range(1, len(times)):
            found = searched.finder.find(parse_query(query), order, limit=first).messages
            assert found == searched.found(query, order).messages[:first]


def test_each_message_counts_once_however_often_it_says_it(tmp_path: Path) -> None:
    searched = Searched(tmp_path, [session().user([text("gull gull"), text("gull")]).done()])
    assert len(searched.found("gull").messages) == 1


def test_hits_are_grouped_by_session_with_its_sub_agents(tmp_path: Path) -> None:
    made = session(seed="agents").user("Look for gulls.")
    made.assistant(tool("Task", description="Birds", prompt="Count birds", subagent_type="Explore"))
    made.agent(lambda agent: agent.assistant(text("Seven gulls."))).done()
    searched = Searched(tmp_path, [made, ledger()])
    found = searched.found("gulls OR relay")
    groups = group_hits(searched.index.connection, found.messages)
    said = [(group.project, len(group.messages), len(group.agents)) for group in groups]
    # Said by the sub-agent, and again in its report.
    assert said == [("/home/ada/tidegauge", 3, 1), ("/home/ada/ledgerfold", 1, 0)]


def test_marks_are_the_very_letters(two: Searched) -> None:
    for query, marks in {
        "LIGHTHOUSE blink": {"lighthouse", "blink"},
        '"relay of the"': {"relay of the"},
        "conn_reset": {"CONN_RESET"},
        "连接": {"连接"},
        "light*": {"light"},
    }.items():
        hits = two.hits(query)
        assert hits
        assert {mark for hit in hits for mark in hit.marked} == marks


def test_an_excerpt_is_cut_from_the_text_where_it_says(tmp_path: Path) -> None:
    long = "early words " * 200 + "\nhere is the albatross at last\n" + "later words " * 200
    (hit,) = Searched(tmp_path, [prompts(long)]).hits("albatross")
    excerpt = hit.excerpt
    assert excerpt is not None
    assert long[excerpt.start : excerpt.start + len(excerpt.text)] == excerpt.text
    assert excerpt.text.startswith("here is the albatross")
    assert (excerpt.is_at_start, excerpt.is_at_end, hit.marked) == (False, False, ["albatross"])


def test_a_record_that_changed_is_not_shown_as_if_it_had_not(tmp_path: Path) -> None:
    made = prompts("The albatross is here.")
    searched = Searched(tmp_path, [made])
    path = write(searched.root, made)
    path.write_bytes(path.read_bytes().replace(b"albatross", b"cormorant"))
    (hit,) = searched.hits("albatross")
    assert hit.excerpt is None
    path.write_bytes(b"{}\n")
    (hit,) = searched.hits("albatross")
    assert (hit.text.loss_reason, hit.excerpt) == ("changed", None)


def test_a_file_that_is_gone_is_still_found_and_said_to_be_gone(tmp_path: Path) -> None:
    made = prompts("The albatross is here.")
    searched = Searched(tmp_path, [made])
    write(searched.root, made).unlink()
    searched.open()
    (hit,) = searched.hits("albatross")
    assert (hit.text.loss_reason, hit.excerpt) == ("gone", None)


def test_what_is_gone_and_archived_is_read_from_the_archive(tmp_path: Path) -> None:
    from steno.store.archive.archive import archive_all

    made = prompts("The albatross is here.")
    searched = Searched(tmp_path, [made])
    archive_all((str(searched.root),))
    write(searched.root, made).unlink()
    searched.open()
    (hit,) = searched.hits("albatross")
    assert (hit.text.loss_reason, hit.text.archived, hit.marked) == ("", True, ["albatross"])


def test_the_catalogue_of_the_archive_is_read_once_for_many_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from steno.store.archive import catalogue as catalogue_module
    from steno.store.archive.archive import archive_all

    made = [prompts("The albatross.", seed=f"gone {number}") for number in range(3)]
    agent = session(seed="agents").user("Look.").assistant(tool("Task", prompt="Count"))
    made.append(agent.agent(lambda each: each.assistant(text("An albatross."))).done())
    searched = Searched(tmp_path, made)
    archive_all((str(searched.root),))
    paths = sorted(searched.root.rglob("*.jsonl"))
    for path in paths:
        path.unlink()
    searched.open()
    read: list[str] = []
    was = catalogue_module.read_entries

    def counted(path: str) -> tuple[dict[str, CatalogueEntry], int, int]:
        read.append(path)
        return was(path)

    monkeypatch.setattr(catalogue_module, "read_entries", counted)
    found = [catalogue_module.archived_at(str(path)) for path in paths]
    assert [each.path for each in found if each] == [str(path.resolve()) for path in paths]
    assert len(paths) == 5
    assert len(read) == 1
    with Path(read[0]).open("ab") as catalogue:
        catalogue.write(b"{}\n")
    assert catalogue_module.archived_at(str(paths[0])) is not None
    assert catalogue_module.archived_at(str(tmp_path / "nowhere.jsonl")) is None
    assert len(read) == 2


def test_a_message_that_left_the_index_is_left_out(two: Searched) -> None:
    with HitReader(two.index.connection) as reader:
        assert list(reader.read_texts([1 << 60])) == []


def test_words_that_a_sync_has_not_finished_adding_are_not_found(tmp_path: Path) -> None:
    from steno.index.database import open_for_writing

    searched = Searched(tmp_path, [prompts("The albatross is here.")])
    connection = open_for_writing(searched.home.folder)
    connection.execute("UPDATE batches SET open = 1")
    assert searched.found("albatross").messages == []
    connection.close()


@pytest.mark.parametrize("dialect", ["", "spec-000", "spec-004"])
def test_every_dialect_is_searched(tmp_path: Path, dialect: str) -> None:
    made = session(dialect=dialect) if dialect else session()
    searched = Searched(tmp_path, [made.user("Seven gulls.").assistant(text("Aye, gulls."))])
    assert searched.kinds("gulls") == ["answer", "prompt"]


def test_damaged_lines_are_searched_as_far_as_they_can_be_read(tmp_path: Path) -> None:
    made = prompts("Seven gulls.")
    searched = Searched(tmp_path, [made])
    path = write(searched.root, made)
    first = made.lines()[0].rstrip(b"\n")
    note = b'{"type":"system","subtype":"informational","content":"caf\xff cormorant"}'
    glued = first.replace(b"gulls", b"herons") + first.replace(b"gulls", b"ferries")
    path.write_bytes(path.read_bytes() + note + b"\n" + glued + b"\n")
    searched.open()
    assert searched.kinds("cormorant") == ["note"]
    for word in ("herons", "ferries"):
        (hit,) = searched.hits(word)
        assert (hit.marked, hit.text.loss_reason) == ([word], "")


@pytest.mark.parametrize("order", get_args(SearchOrder))
def test_the_first_hits_are_the_first_of_all(two: Searched, order: SearchOrder) -> None:
    for query in ("the", "lighthouse", "in:output a", '"the relay"', "the -lighthouse"):
        everything = two.finder.find(parse_query(query), order).messages
        for first in (1, 2, 5, 1000):
            found = two.finder.find(parse_query(query), order, limit=first).messages
            assert found == everything[:first], (query, first)


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("timeless", 2),
        ("until:2027-01-01 timeless", 1),
        ("since:1971-01-01 until:2027-01-01 timeless", 1),
        ("since:1971-01-01 timeless", 1),
    ],
)
def test_what_has_no_time_is_in_no_range_of_times(tmp_path: Path, query: str, count: int) -> None:
    made = prompts("a timeless question", "another timeless question")
    path = write(tmp_path / "config", made)
    records = [json.loads(line) for line in path.read_bytes().splitlines()]
    first = next(each for each in records if "a timeless" in str(each.get("message")))
    for each in records:
        if each is first or each["type"] != "user":
            each.pop("timestamp", None)
    path.write_bytes(b"".join(encode_line(each) for each in records))
    found = Searched(tmp_path, [])
    assert len(found.hits(query)) == count
