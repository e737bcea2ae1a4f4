"""`steno search`: what was found, where, how often, and a way in."""

import shlex
import shutil
from pathlib import Path

import pytest
from tests.builders import session, text, tool
from tests.cli.conftest import Steno
from tests.conftest import WriteConfig
from tests.index.searching import harbour, ledger, prompts

from steno.cli.output.search_results import location_arguments
from steno.index.search.finder import HitGroup
from steno.index.search.hit_text import HitText
from steno.index.session_stats import FILE_ID_SHIFT
from steno.mcp_server.server import answer_tool
from steno.mcp_server.tool_io import SessionAccess
from steno.sanitize.terminal import display_width


@pytest.fixture
def two(config: WriteConfig) -> Path:
    return config(harbour(), ledger())


@pytest.mark.usefixtures("two")
def test_hits_stand_below_their_session_with_turn_and_kind(steno: Steno) -> None:
    ran = steno("search", "lighthouse", "--width", 80)
    assert ran.code == 0
    assert ran.lines == [
        "5 matches in 2 sessions",
        "",
        f"{harbour().session_id[:4]}  Harbour lanterns                    tidegauge  2 November 09:00  4 matches",
        "  turn 1  output    1 1 def blink(lighthouse): ...",
        "  turn 1  answer    I will look at the relay of the lighthouse.",
        "  turn 1  thinking  Perhaps the lighthouse relay is worn.",
        "  turn 1  prompt    Why does the lighthouse blink twice?",
        "",
        f"{ledger().session_id[:4]}  The relay of the ledger is slow. 数…  ledgerfold  1 October 08:00  1 match",
        "  turn 1  Edit      login.py  get_user_name(lighthouse) getUserName(lighthouse)",
    ]


def test_where_turns_count_otherwise_than_in_the_file_the_time_is_told(steno: Steno, config: WriteConfig) -> None:
    made = session("2.1.42").turn("Old kelp", "Old.")
    made.tip = None
    config(made.turn("New kelp", "New.").turn("More kelp", "More."))
    ran = steno("search", "kelp", "--width", 80)
    assert len(ran.lines) == 6
    assert not any("turn" in line for line in ran.lines)
    told = answer_tool("search", {"query": "kelp"}, SessionAccess(None))
    assert "record " in told
    assert "turn" not in told


@pytest.mark.usefixtures("two")
@pytest.mark.parametrize("columns", [40, 60, 80, 100, 200])
def test_no_line_is_wider_than_the_screen(steno: Steno, config: WriteConfig, columns: int) -> None:
    config(harbour(), prompts("连接 " * 60 + "relay" + " 失败" * 60, "relay " * 100))
    ran = steno("search", "relay", "--width", columns)
    assert ran.code == 0
    assert all(display_width(line) <= columns for line in ran.lines)


@pytest.mark.usefixtures("two")
def test_words_are_marked_in_colour_and_only_then(steno: Steno) -> None:
    ran = steno("search", "lighthouse", "relay", "--color", "always")
    assert "\x1b[1;33mlighthouse\x1b[0m" in ran.out
    assert "\x1b[1;33mrelay\x1b[0m" in ran.out
    assert "\x1b" not in steno("search", "lighthouse").out


def test_hostile_text_stays_text(steno: Steno, config: WriteConfig) -> None:
    evil = "\x1b]0;pwned\x07 gull \x1b[31m\u202egnp.exe \x9b2J"
    config(prompts(evil).title(f"Title {evil}"))
    for options in ((), ("--color", "always"), ("--sessions",), ("--json",)):
        ran = steno("search", "gull", *options)
        assert ran.code == 0
        rest = ran.out.replace("\x1b[0m", "").replace("\x1b[1m", "").replace("\x1b[2m", "")
        rest = rest.replace("\x1b[1;33m", "")
        assert not set("\x1b\x07\u202e\x9b") & set(rest)


@pytest.mark.usefixtures("two")
def test_a_word_with_a_dash_is_left_out_and_is_no_option(steno: Steno) -> None:
    assert steno("search", "lighthouse", "-relay", "--count").out == "3\n"
    assert steno("search", "-hello", "lighthouse", "--count").out == "5\n"
    assert steno("search", "lighthouse", '-"relay of"', "--count").out == "4\n"
    assert steno("search", "--count", "--", "--relay", "sticks").out == "1\n"
    assert steno("search", "lighthouse", "--project", "-x").code == 1
    assert steno("search", "-h").code == 0
    assert steno("search", "--wrong").code == 2


@pytest.mark.usefixtures("two")
def test_words_may_come_as_one_argument_or_as_several(steno: Steno) -> None:
    one = steno("search", 'in:answer "relay of"')
    several = steno("search", "in:answer", '"relay of"')
    assert one.out == several.out
    assert one.lines[0] == "1 match in 1 session  of 2"


@pytest.mark.usefixtures("two")
def test_options_are_filters(steno: Steno) -> None:
    assert steno("search", "relay", "--project", "ledgerfold", "--count").out == "1\n"
    assert steno("search", "relay", "--until", "2026-10-01", "--count").out == "1\n"
    assert steno("search", "relay", "--since", "2026-10-02", "--count").out == "4\n"
    assert steno("search", "--project", "ledgerfold", "--count").out != "0\n"


@pytest.mark.usefixtures("two")
def test_what_stands_only_inside_longer_words_is_said_to(steno: Steno) -> None:
    ran = steno("search", "ighthous")
    assert ran.lines[0] == "5 matches in 2 sessions, inside longer words"


@pytest.mark.usefixtures("two")
def test_nothing_found_is_said_and_exits_with_1(steno: Steno) -> None:
    ran = steno("search", "cormorant")
    assert (ran.code, ran.out) == (1, "No matches in 2 sessions.\n")
    ran = steno("search", "tool:Nope", "relay")
    assert ran.code == 1
    assert "no tool matches 'Nope'; known: Bash, Edit, Read" in ran.out
    ran = steno("search", "tool:" + "x" * 30, "relay", "--width", 40)
    assert "".join(ran.out.split()).endswith("known:Bash,Edit,Read.")
    assert all(display_width(line) <= 40 for line in ran.lines)
    ran = steno("search", "colour:red")
    assert ran.lines[1].startswith("Unknown filter `colour:`. Filters: project, tool, file,")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "empty query"),
        (("in:nowhere", "x"), "in: unknown value 'nowhere'"),
        (("since:soon", "x"), "not a time: 'soon'"),
        (("--regex", "("), "invalid pattern"),
        (("--regex", ""), "invalid pattern length: 0 characters"),
        (("--rank", "--oldest", "x"), "cannot be combined"),
        (("--audit", "x"), "cannot be combined"),
        (("x" * 5000,), "too long"),
    ],
)
def test_what_makes_no_sense_is_one_line_and_exits_with_2(steno: Steno, arguments: tuple[str, ...], said: str) -> None:
    ran = steno("search", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err.splitlines()[0]


def test_programs_get_every_hit_with_its_place(steno: Steno, two: Path) -> None:
    hits = steno("search", "blink", "in:prompt", "--json").json
    made = harbour()
    (path,) = two.glob(f"projects/*/{made.session_id}.jsonl")
    (hit,) = hits
    raw = path.read_bytes()[hit["offset"] : hit["offset"] + hit["length"]]
    assert hit["uuid"].encode() in raw
    assert b"blink twice" in raw
    assert hit | {"offset": 0, "length": 0, "uuid": ""} == {
        "session": made.session_id,
        "agent": None,
        "title": "Harbour lanterns",
        "project": "/home/ada/tidegauge",
        "path": str(path),
        "uuid": "",
        "offset": 0,
        "length": 0,
        "turn": 1,
        "time": hit["time"],
        "kind": "prompt",
        "tool": None,
        "failed": False,
        "excerpt": "Why does the lighthouse blink twice?",
        "start": 0,
        "highlights": [[24, 29]],
        "lost": None,
        "archived": False,
        "complete": True,
    }
    assert hit["time"].startswith("2026-11-02T09:00:")


@pytest.mark.usefixtures("two")
def test_sessions_and_counts_alone(steno: Steno) -> None:
    listed = steno("search", "lighthouse", "--sessions", "--json").json
    assert [(each["session"], each["hits"]) for each in listed] == [(harbour().session_id, 4), (ledger().session_id, 1)]
    assert [line.split()[0] for line in steno("search", "lighthouse", "--sessions").lines] == [
        "ID",
        harbour().session_id[:4],
        ledger().session_id[:4],
    ]
    counted = steno("search", "lighthouse", "--count", "--json").json
    assert counted == {"hits": 5, "sessions": 2, "wide": False, "complete": True}
    assert steno("search", "cormorant", "--count").out == "0\n"


@pytest.mark.usefixtures("two")
def test_limits_are_said(steno: Steno) -> None:
    ran = steno("search", "lighthouse", "--limit", 1, "--each", 1)
    assert "  3 more in this session" in ran.lines
    assert ran.lines[-1] == "showing 1 of 2 sessions; use --limit 0 to show all"
    ran = steno("search", "lighthouse", "--limit", 1, "--json")
    assert (len(ran.json), "1 of 2 sessions" in ran.err) == (4, True)
    assert len(steno("search", "lighthouse", "--limit", 0, "--each", 1, "--json").json) == 2


@pytest.mark.usefixtures("two")
def test_the_order_is_as_asked_for(steno: Steno) -> None:
    def order(*options: str) -> list[str]:
        return [hit["time"] for hit in steno("search", "lighthouse", "--json", *options).json]

    assert order() == sorted(order(), reverse=True)
    assert order("--oldest") == sorted(order())
    assert sorted(order("--rank")) == sorted(order())


@pytest.mark.usefixtures("two")
def test_a_pattern_fits_what_words_cannot_say(steno: Steno) -> None:
    hits = steno("search", "--regex", r"relay\.py|v\d+\.\d+", "--json").json
    marked = {hit["excerpt"][a:b] for hit in hits for a, b in hit["highlights"]}
    assert marked == {"relay.py", "v2.1"}
    assert steno("search", "--regex", "conn_reset", "--count").out == "1\n"
    assert steno("search", "--regex", "Conn_reset", "--count").code == 1
    assert steno("search", "tool:Read", "--regex", r"\(", "--count").out == "1\n"
    assert steno("search", "relay", "--regex", "^The", "--count").out == "2\n"


def test_a_pattern_without_end_comes_to_an_end(steno: Steno, config: WriteConfig) -> None:
    config(prompts("a" * 60 + "!", "short aa"))
    ran = steno("search", "--regex", "^(a+)+$|aa$", "--count")
    assert ran.out == "1\n"
    assert "skipped 1 text" in ran.err


@pytest.mark.timeout(60)
def test_a_pattern_comes_to_an_end_also_where_it_is_shown(steno: Steno, config: WriteConfig) -> None:
    blocks = [text("aaa"), text("a" * 60 + "!")]
    config(session(seed="both").user(blocks).done())
    ran = steno("search", "--regex", "^(a+)+$")
    assert ran.code == 0
    assert ran.lines[-1].split()[-2:] == ["prompt", "aaa"]
    assert ran.err == "steno: skipped 1 text: the pattern took too long\n"


def test_a_sync_at_work_is_said_to_people_and_to_programs(steno: Steno, two: Path) -> None:
    from steno.store.file_lock import FileLock

    assert steno("search", "relay", "--count").err == ""
    (folder,) = (two.parent / "steno").glob("index/*")
    with FileLock(str(folder / "sync.lock")):
        for options in ((), ("--count",), ("--json",), ("--sessions",), ("--audit",)):
            words = () if "--audit" in options else ("relay",)
            assert "another process is updating the index" in steno("search", *words, *options).err, options
        assert steno("search", "relay", "--count", "--json").json["complete"] is False
        assert steno("search", "--audit", "--json").json["complete"] is False
        for options in ((), ("--sessions",)):
            told = steno("search", "relay", "--json", *options).json
            assert {each["complete"] for each in told} == {False}


def test_a_file_that_is_not_called_by_its_id_is_named_as_in_a_listing(steno: Steno, two: Path) -> None:
    (path,) = two.glob(f"projects/*/{harbour().session_id}.jsonl")
    path = path.rename(path.with_name("it's my copy.jsonl"))
    short = "it's"
    assert any(line.startswith(f"  {short}  ") for line in steno("ls").lines)
    ran = steno("search", "lanterns", "in:title")
    assert ran.lines[2].startswith(f"{short}  Harbour lanterns")
    command = shlex.split(ran.lines[3])
    assert command[:3] == ["steno", "show", str(path)]
    assert steno(*command[1:]).code == 0
    assert short in steno("search", "lanterns", "--sessions").lines[1]
    path.rename(path.with_name("copy-of-it.jsonl"))
    ran = steno("search", "lanterns", "in:title")
    assert ran.lines[2].startswith("copy  Harbour lanterns")
    assert steno("show", "copy").code == 0
    assert "steno show" not in ran.out


def test_the_way_in_leads_to_the_copy_that_has_it(steno: Steno, two: Path) -> None:
    (path,) = two.glob(f"projects/*/{harbour().session_id}.jsonl")
    other = two / "projects" / "-another" / path.name
    other.parent.mkdir()
    other.write_bytes(path.read_bytes().replace(b"blink twice", b"blink, cormorant"))
    command = shlex.split(steno("search", "cormorant").lines[3])
    assert command[:3] == ["steno", "show", str(other)]
    assert "cormorant" in steno(*command[1:]).out


def test_a_sub_agent_without_its_session_has_a_way_in(steno: Steno, config: WriteConfig) -> None:
    made = session(seed="agents").user("Look for birds.")
    made.assistant(tool("Task", description="Birds", prompt="Count birds", subagent_type="Explore"))
    made.agent(lambda agent: agent.assistant(thinking_of_gulls(), text("Seven."))).done()
    (config(made) / made.file).unlink()
    ran = steno("search", "gulls")
    assert ran.lines[2].startswith(made.session_id[:8])
    shown = steno(*shlex.split(ran.lines[3])[1:])
    assert (shown.code, "Are gulls birds?" in shown.out) == (0, True)


def test_a_command_to_copy_holds_nothing_but_the_command() -> None:
    evil = "x;touch PWNED #"
    group = HitGroup("4f9d", agents={0: evil, 1: "-x", 2: "\x1b[31m"})
    assert shlex.split(location_arguments(group, HitText(7, 1, 1, None)) or "") == ["--agent", evil, "--at", "7"]
    assert location_arguments(group, HitText(1 << FILE_ID_SHIFT, 1, 1, None)) == " --agent agent--x --at 0"
    assert location_arguments(group, HitText(2 << FILE_ID_SHIFT, 1, 1, None)) is None


@pytest.mark.usefixtures("two")
def test_what_was_found_can_be_opened_at_its_place(steno: Steno) -> None:
    (hit,) = steno("search", "conn_reset", "--json").json
    shown = steno("show", hit["session"], "--at", hit["uuid"][:8])
    assert shown.code == 0
    assert any(line.startswith("→ ▾ Bash") for line in shown.lines)
    assert "    │ ERR_CONN_RESET while blinking at v2.1.42" in shown.lines
    assert steno("show", hit["session"], "--at", hit["offset"]).out == shown.out
    assert steno("show", hit["session"], "--at", "ffffffff").code == 1
    assert steno("show", hit["session"], "--at", "1", "--turn", "1").code == 2
    assert steno("show", hit["session"], "--at", "1", "--records").code == 2


def test_a_sub_agents_words_are_found_and_opened(steno: Steno, config: WriteConfig) -> None:
    made = session(seed="agents").user("Look for birds.")
    made.assistant(tool("Task", description="Birds", prompt="Count birds", subagent_type="Explore"))
    made.agent(lambda agent: agent.assistant(thinking_of_gulls(), text("Seven."))).done()
    config(made)
    (hit,) = steno("search", "gulls", "--json").json
    assert (hit["session"], bool(hit["agent"])) == (made.session_id, True)
    shown = steno("show", made.session_id, "--at", hit["uuid"])
    assert "    │ Are gulls birds?" in shown.lines


def thinking_of_gulls() -> dict[str, object]:
    return {"type": "thinking", "thinking": "Are gulls birds?", "signature": ""}


def test_every_record_of_the_demo_can_be_opened(steno: Steno, config: WriteConfig) -> None:
    made = harbour()
    config(made)
    for uuid in made.uuids():
        assert steno("show", made.session_id, "--at", uuid).code == 0


def test_an_audit_accounts_for_every_byte(steno: Steno, two: Path) -> None:
    size = sum(path.stat().st_size for path in two.rglob("*.jsonl"))
    ran = steno("search", "--audit", "--width", 80)
    assert ran.code == 0
    assert ran.lines[0] == f"2 files, {size:,} bytes  all bytes accounted for"
    assert all(display_width(line) <= 80 for line in ran.lines)
    told = steno("search", "--audit", "--json").json
    assert sum(told["bytes"].values()) == told["size"] == size
    assert [each["whole"] for each in told["by_file"]] == [True, True]


@pytest.mark.usefixtures("two")
@pytest.mark.parametrize("columns", [40, 56, 64, 80, 120])
def test_an_audit_can_be_read_on_any_screen(steno: Steno, columns: int) -> None:
    ran = steno("search", "--audit", "--width", columns)
    assert all(display_width(line) <= columns for line in ran.lines)
    assert "not text: keys," in ran.out
    assert len(ran.lines) < 40


def test_one_text_is_not_several(steno: Steno, config: WriteConfig) -> None:
    config(session().user("One.").done())
    ran = steno("search", "--audit")
    assert ran.lines[-1] == "1 text in the index, matching the files"


def test_without_a_sync_only_what_is_known_is_found(steno: Steno, two: Path) -> None:
    ran = steno("search", "relay", "--no-sync")
    assert (ran.code, "the index does not exist yet" in ran.err) == (1, True)
    assert steno("search", "relay", "--count").out == "5\n"
    (path,) = two.glob(f"projects/*/{ledger().session_id}.jsonl")
    path.unlink()
    assert steno("search", "relay", "--no-sync", "--count").out == "5\n"
    ran = steno("search", "relay", "project:ledgerfold")
    assert "(text not available: the file was deleted" in ran.out


def test_damaged_or_lost_words_are_said_and_not_taken_for_nothing(steno: Steno, two: Path) -> None:
    assert steno("search", "relay").code == 0
    (words,) = (two.parent / "steno").glob("index/*/words")
    (words / "meta.json").write_text("garbage")
    ran = steno("search", "relay", "--no-sync")
    assert (ran.code, "is damaged" in ran.err, "sync --rebuild" in ran.err) == (3, True, True)
    shutil.rmtree(words)
    ran = steno("search", "relay", "--no-sync")
    assert (ran.code, "is missing" in ran.err) == (3, True)
    shutil.rmtree(words)
    assert steno("sync", "--rebuild").code == 0
    assert steno("search", "relay", "--count").out == "5\n"
