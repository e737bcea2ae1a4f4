"""The examples of the documents on every surface: read, shown, checked, told, found, exported."""

import json
import re
from pathlib import Path

import pytest
from tests.published.conftest import OnDisk
from tests.published.example import Example
from tests.published.examples import EXAMPLES
from tests.published.files import FILES
from tests.published.surfaces import differences, every_surface, steno
from tests.published.test_dialects import sent_in_order

from steno.check.checkup import check
from steno.check.repair.repair_job import repair_bytes
from steno.format.lines import read_bytes
from steno.format.source import BytesSource
from steno.index.search.finder import group_hits, open_finder
from steno.index.search.query_parser import parse_query
from steno.report import clock
from steno.report.brief.brief_builder import build_brief
from steno.session.resume.api_rules import find_breaches
from steno.session.resume.clients import CLIENTS
from steno.session.resume.replay import as_resumed, valid_messages
from steno.session.session import Session
from steno.session.transcript import load
from steno.store import environment
from steno.store.discovery import discover_file
from steno.store.session_lookup import open_file_session

OWN = sorted(set(EXAMPLES) - set(FILES))
"""What is not tried as a file of a dialect already."""
DIALECTS = ("000", "004")
TEXT_FORMATS = ("html", "markdown", "txt")
UNREFERENCED = "fields.missing"


@pytest.fixture(params=OWN)
def example(request: pytest.FixtureRequest) -> Example:
    return EXAMPLES[request.param]


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_byte_is_read_and_given_back(name: str) -> None:
    data = EXAMPLES[name].data
    pieces = list(read_bytes(data))
    assert b"".join(data[each.offset : each.offset + each.length] for each in pieces) == data
    assert [each.offset for each in pieces if each.damage] == []
    transcript = load(BytesSource(data))
    assert not transcript.gaps


def test_only_known_faults_are_found(example: Example) -> None:
    found = check(BytesSource(example.data), name=example.name).findings
    bad = [each for each in found if each.severity != "info"]
    assert tuple(each.id for each in bad) == example.findings


def test_what_is_worth_knowing_of_a_correct_file_is_said_in_short(example: Example) -> None:
    """Infos are few and of the kinds that say how a documented form is unlike the client's."""
    found = check(BytesSource(example.data), name=example.name).findings
    infos = {each.id for each in found if each.severity == "info"}
    if example.document in DIALECTS:
        assert infos == {"fields.dialect"}
        return
    assert infos <= {
        "chain.several-roots",
        "fields.backup-text",
        "fields.missing",
        "ids.bad-uuid",
        "ids.session-mismatch",
        "usage.placeholder",
    }


def test_turns_begin_with_the_prompts(example: Example) -> None:
    turns = Session(load(BytesSource(example.data))).turns()
    assert tuple(turn.prompt.text for turn in turns if turn.prompt) == example.prompts
    assert len(turns) == len(example.prompts)


def test_messages_are_valid_and_whole(example: Example) -> None:
    messages = valid_messages(load(BytesSource(example.data)))
    assert list(find_breaches([*messages, {"role": "user", "content": "Go on."}])) == []
    assert sent_in_order(messages, example.known)


def test_the_repaired_file_is_clean_and_stays_so(example: Example) -> None:
    done = repair_bytes(example.data)
    assert done.settled
    found = check(BytesSource(done.data), name=example.name).findings
    assert [each.id for each in found if each.severity != "info"] == []
    assert repair_bytes(done.data).edits == []
    if not example.findings and example.document not in DIALECTS:
        assert done.data == example.data
    for client in CLIENTS:
        assert sent_in_order(as_resumed(done.transcript, client) or [], example.known)


# On a disk


def test_show_tells_every_prompt_and_answer(on_disk: OnDisk) -> None:
    for name, path in on_disk.paths.items():
        known = EXAMPLES[name]
        shown = json.loads(steno("show", path, "--json"))
        assert tuple(_texts(shown)) == known.prompts, name
        text = steno("show", path, "--width", 200).decode()
        for prompt in known.prompts:
            assert prompt.split("\n")[0] in text, name


def _texts(shown: dict[str, object]) -> list[str]:
    turns = shown["turns"]
    assert isinstance(turns, list)
    return [turn["prompt"]["text"] for turn in turns]


def test_brief_asks_what_was_asked(on_disk: OnDisk) -> None:
    for name, path in on_disk.paths.items():
        with open_file_session(discover_file(str(path))) as session:
            brief = build_brief(session)
        assert [each.text for each in brief.turns] == list(EXAMPLES[name].prompts), name


def test_search_finds_each_session_by_its_words_and_none_that_is_hidden(on_disk: OnDisk) -> None:
    explorer = on_disk.explorer
    with explorer.house.index() as index:
        finder = open_finder(index, lambda text: clock.parse_time_range(text, environment.now()))
        assert finder is not None

        def paths(words: str) -> set[str]:
            found = finder.find(parse_query(f'"{words}"'), "newest")
            return {group.path for group in group_hits(index.connection, found.messages)}

        for name, path in on_disk.paths.items():
            known = EXAMPLES[name]
            for words in known.prompts:
                plain = words.split("\n")[0].strip("/")
                assert str(path) in paths(plain), (name, words)
            for words in known.absent:
                if "deleted" in words.casefold():
                    assert str(path) not in paths(words), (name, words)


def test_sessions_that_share_an_id_are_found_one_by_one(on_disk: OnDisk) -> None:
    """The documents give all their examples one id; each file is a session all the same."""
    names = ("delegation", "nested_examples", "nested_tools")
    for name in names:
        prompt = EXAMPLES[name].prompts[0]
        page = on_disk.explorer.get(f'/?q="{prompt.replace(" ", "+")}"').text
        hits = set(re.findall(r'href="/s/([^"?/]+)', page))
        assert len([key for key in hits if key.startswith("session_123~")]) >= 1, (name, hits)
        found = json.loads(steno("search", f'"{prompt}"', "--sessions", "--json", "--root", on_disk.root))
        titles = {each["title"] for each in found if each["session"] == "session_123"}
        assert titles == {prompt}


@pytest.mark.parametrize("form", TEXT_FORMATS)
def test_exported_text_has_every_prompt(on_disk: OnDisk, tmp_path: Path, form: str) -> None:
    steno("export", *on_disk.paths.values(), "--format", form, "-o", f"{tmp_path}/", "--force")
    texts = [path.read_text() for path in tmp_path.iterdir() if "index" not in path.name]
    assert len(texts) == len(EXAMPLES)
    for name, known in EXAMPLES.items():
        first = [prompt.split("\n")[0].replace("'", "&#39;") for prompt in known.prompts]
        found = [
            text
            for text in texts
            if all(
                prompt in text or prompt.replace("&#39;", "'") in text or _marked_up(prompt) in text for prompt in first
            )
        ]
        assert found, name


def _marked_up(prompt: str) -> str:
    return prompt.replace("_", "\\_").replace("-", "\\-")


def test_exported_messages_are_the_valid_messages(on_disk: OnDisk, tmp_path: Path) -> None:
    names = list(on_disk.paths)
    steno("export", *on_disk.paths.values(), "--format", "messages", "--no-redact",
          "-o", f"{tmp_path}/")  # fmt: skip
    found = [json.loads(path.read_bytes())["messages"] for path in tmp_path.iterdir()]
    wanted = [
        valid_messages(load(BytesSource(EXAMPLES[name].data)))  # of the file alone
        for name in names
    ]
    assert sorted(map(json.dumps, found)) == sorted(map(json.dumps, wanted))


def test_exported_records_are_the_files_byte_for_byte(on_disk: OnDisk, tmp_path: Path) -> None:
    steno("export", *on_disk.paths.values(), "--format", "json", "--no-redact",
          "-o", f"{tmp_path}/")  # fmt: skip
    texts = "".join(path.read_text() for path in tmp_path.iterdir())
    assert len(list(tmp_path.iterdir())) == len(EXAMPLES)
    for name, known in EXAMPLES.items():
        for line in known.data.splitlines()[:2]:
            uuid = json.loads(line).get("uuid")
            assert uuid is None or uuid in texts, name


def test_exported_steps_and_tables_have_every_session(on_disk: OnDisk, tmp_path: Path) -> None:
    steno("export", *on_disk.paths.values(), "--format", "steps", "-o", f"{tmp_path}/steps/")
    found = {path.parent.name: path for path in tmp_path.glob("steps/*/steps.jsonl")}
    of_client = [each for each in EXAMPLES.values() if each.document not in DIALECTS]
    assert len(found) >= len(of_client)
    for path in found.values():
        assert json.loads(path.with_name("metadata.json").read_bytes())["step_count"] > 0


# The same everywhere


def test_every_surface_gives_the_same_title_turns_and_steps(on_disk: OnDisk) -> None:
    assert differences(on_disk.explorer) == {}


def test_every_surface_is_asked_about_every_example(on_disk: OnDisk) -> None:
    said = every_surface(on_disk.explorer)
    assert set(said) == {str(path) for path in on_disk.paths.values()}
    for name, path in on_disk.paths.items():
        surfaces = said[str(path)]
        assert len(surfaces) == 7, name
        assert {each.title for each in surfaces.values()} == {surfaces["show"].title}
        turns = {each.turns for each in surfaces.values()} - {None}
        assert turns == {len(EXAMPLES[name].prompts)}, name
