"""Two files with the same session ID have separate URLs, figures and sub-agents."""

import re
from collections.abc import Generator
from pathlib import Path

import pytest
from tests.builders import Session, image, session, tool
from tests.web.explorer import Explorer, explorer
from tests.web.sessions import written
from tests.web.step_samples import PICTURE

from steno.report.session_list import SessionFilter, SessionRow, list_sessions

_OLD = "1.0.128"
"""The client that kept sub-agents inside the session's own file."""


def made(words: str, version: str, agents: int) -> Session:
    """Return a session of an id that others have too."""
    one = session(version, seed="twin").turn(words, "Fine.")

    def look(agent: Session) -> None:
        agent.assistant(tool("Read", file_path="/a.png")).result([image(PICTURE)])
        agent.assistant(f"{words} seen.")

    for number in range(agents):
        asked = tool(one.gen.agent_tool, prompt=f"Look {number}", subagent_type="Explore")
        one.user(f"Again {number}").assistant(asked).agent(look).assistant("Seen.")
    return one.done()


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[Explorer, list[SessionRow]]]:
    """An explorer over three sessions of one id, in three projects, and one more."""
    folder = tmp_path_factory.mktemp("twins")
    root = folder / "root"
    for name, one in (
        ("one", made("First", "2.1.325", 1)),
        ("two", made("Second", _OLD, 2)),
        ("three", made("Third", "2.1.325", 2)),
    ):
        path = written(one, folder / name)
        place = root / "projects" / f"-home-ada-{name}"
        place.parent.mkdir(parents=True, exist_ok=True)
        path.parent.rename(place)
    written(session(seed="alone").turn("Other", "Fine.").done(), root)
    with explorer(str(folder / "index"), str(root)) as found:
        with found.house.index() as index:
            rows = list_sessions(index.connection, SessionFilter()).rows
        same = [row for row in rows if sum(row.id == other.id for other in rows) > 1]
        yield found, sorted(same, key=lambda row: row.title)


def test_each_has_an_address_of_its_own(twins: tuple[Explorer, list[SessionRow]]) -> None:
    found, same = twins
    assert [row.title for row in same] == ["First", "Second", "Third"]
    assert len({row.key for row in same}) == 3
    for row in same:
        assert f">{row.title}</h1>" in found.get(f"/s/{row.key}").text.replace("\n", "")


def test_the_list_names_it_so_also_where_the_other_is_on_another_page(twins: tuple[Explorer, list[SessionRow]]) -> None:
    found, same = twins
    keys: dict[int, str] = {}
    after = None
    with found.house.index() as index:
        while rows := list_sessions(index.connection, SessionFilter(), limit=1, after=after).rows:
            keys[rows[0].file] = rows[0].key
            after = rows[0].rank, rows[0].file
    assert {row.file: keys[row.file] for row in same} == {row.file: f"{row.id}~{row.file}" for row in same}
    assert sum("~" in key for key in keys.values()) == len(same)


def test_each_counts_its_own_sub_agents(twins: tuple[Explorer, list[SessionRow]]) -> None:
    found, same = twins
    assert [row.figures.agents for row in same] == [1, 2, 2]
    for row in same:
        page = found.get(f"/s/{row.key}").text
        said = "1 sub-agent" if row.figures.agents == 1 else "2 sub-agents"
        assert said in page


def test_a_sub_agent_and_its_pictures_are_found_by_that_address(twins: tuple[Explorer, list[SessionRow]]) -> None:
    found, same = twins
    for row in same:
        page = found.get(f"/s/{row.key}").text
        ways = set(re.findall(rf'href="(/s/{re.escape(row.key)}/a/[^/"?#]+)["?#]', page))
        assert len(ways) == row.figures.agents
        for way in ways:
            agent = found.get(f"{way}?detail=everything")
            assert agent.status == 200
            assert f"{row.title} seen." in agent.text
            steps = set(re.findall(rf'data-src="({re.escape(way)}/step/[^"]+)"', agent.text))
            inside = "".join(found.get(step.replace("&amp;", "&")).text for step in steps)
            pictures = set(re.findall(rf'src="({re.escape(way)}/image/[^"]+)"', inside))
            assert pictures
            for picture in pictures:
                assert found.get(picture).body == PICTURE


@pytest.mark.parametrize("what", ["findings", "records", "panel", "turns"])
def test_what_is_inside_is_found_by_that_address(twins: tuple[Explorer, list[SessionRow]], what: str) -> None:
    found, same = twins
    for row in same:
        assert found.get(f"/s/{row.key}/{what}").status == 200


def test_a_search_links_to_the_file_that_has_the_words(twins: tuple[Explorer, list[SessionRow]]) -> None:
    found, same = twins
    for row in same:
        text = found.get(f"/?q={row.title}").text
        # The row of its title has no place in it: this is the link of a hit.
        assert f"/s/{row.key}?at=" in text


def test_the_health_page_links_to_the_very_file(tmp_path: Path) -> None:
    root = tmp_path / "root"
    data = session(seed="twin").turn("First", "Fine.").done()
    paths = [written(data, root), root / "projects" / "-home-ada-other" / "x.jsonl"]
    paths[1] = paths[1].with_name(paths[0].name)
    paths[1].parent.mkdir(parents=True)
    # Torn in the middle, which is damage.
    torn = paths[0].read_bytes().split(b"\n")
    paths[1].write_bytes(b"\n".join([*torn[:2], torn[2][:40], *torn[3:]]))
    with explorer(str(tmp_path / "index"), str(root)) as found:
        with found.house.index() as index:
            rows = list_sessions(index.connection, SessionFilter()).rows
        keys = {row.path: row.key for row in rows}
        found.house.health_monitor.start_check()
        found.house.health_monitor.wait()
        text = found.get("/health").text
        assert f'href="/s/{keys[str(paths[1])]}"' in text
        assert f'href="/s/{keys[str(paths[0])]}"' not in text
