"""Session images over HTTP."""

import re
from base64 import b64encode
from collections.abc import Generator
from pathlib import Path
from urllib.parse import quote

import pytest
from tests.builders import document, image, session, text, tool
from tests.builders.blocks import pdf, png
from tests.web.explorer import Explorer, explorer
from tests.web.sessions import exploring
from tests.web.step_samples import PICTURE

_SVG = b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>"


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[Explorer, str, str]]:
    """An explorer over one session with pictures, and with a sub-agent that has one."""
    folder = tmp_path_factory.mktemp("pictures")
    made = session(seed="pictures").user([text("See."), image(_SVG), image(PICTURE, "image/gif")])

    def look(agent: object) -> None:
        assert isinstance(agent, type(made))
        agent.assistant(tool("Read", file_path="/a.png")).result([image(PICTURE)]).assistant("Seen.")

    made.assistant(tool(made.gen.agent_tool, prompt="Look", subagent_type="Explore")).agent(look)
    for name, data in made.files().items():
        path = folder / "root" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    with explorer(str(folder / "index"), str(folder / "root")) as found:
        yield found, made.session_id, made.transcripts[0].agent_id


def test_a_picture_is_sent_as_what_it_is(pictures: tuple[Explorer, str, str]) -> None:
    one, key, _ = pictures
    answer = one.get(f"/s/{key}/image/0-1")
    assert answer.status == 200
    assert answer.body == PICTURE
    assert answer.headers["content-type"] == "image/png"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_a_picture_of_a_sub_agent_has_an_address_too(pictures: tuple[Explorer, str, str]) -> None:
    one, key, agent = pictures
    with one.house.index() as index:
        place = one.house.subagent_ref(index, key, agent)
    with one.house.open_session(place) as opened:
        node = next(each for each in opened.transcript.nodes if each.results)
    answer = one.get(f"/s/{key}/a/{agent}/image/{node.offset}-0")
    assert (answer.status, answer.body) == (200, PICTURE)


@pytest.mark.parametrize(
    "place", ["0-0", "0-2", "1-1", "0-", "-1", "0", "0-1-1", "a-b", "0-٣", "0-99999999999999999999"]
)
def test_what_is_no_picture_is_not_found(pictures: tuple[Explorer, str, str], place: str) -> None:
    one, key, _ = pictures
    answer = one.get(f"/s/{key}/image/{quote(place)}")
    assert answer.status == 404
    assert not re.search("<svg xmlns=.http://www.w3.org/2000/svg. onload", answer.text)


def test_nobody_else_gets_a_picture(pictures: tuple[Explorer, str, str]) -> None:
    one, key, _ = pictures
    assert one.ask(f"/s/{key}/image/0-1").status == 401
    assert one.get("/s/nobody/image/0-1").status == 404


# In prompts


def test_a_picture_in_a_prompt_is_shown_small_and_leads_to_itself(tmp_path: Path) -> None:
    tall = png([[(9, 9, 9)] * 300] * 800)
    made = session(seed="shown", full=True).user([text("See."), image(_SVG), image(tall), document(pdf("no picture"))])
    made.assistant("Seen.")
    with exploring(tmp_path, made) as (found, _):
        page = found.get(f"/s/{made.session_id}").text
        (shown,) = re.findall(r'<div class="attached">.*?</div>', page)
        (way,) = re.findall(r'<a href="([^"]+)"><img src="\1"', shown)
        assert found.get(way).body == tall
        # Room is kept for it, and no more than there is.
        assert 'loading="lazy" width="60" height="160"' in shown
        assert re.search("300 . 800", shown)
        assert "not shown: unknown bytes" in shown
        assert "1 other attachment, see the record" in shown


def test_a_picture_in_a_prompt_stands_in_an_exported_page_itself(tmp_path: Path) -> None:
    made = session(seed="shown", full=True).user([text("See."), image(PICTURE)])
    made.assistant("Seen.")
    with exploring(tmp_path, made) as (found, _):
        page = found.get(f"/s/{made.session_id}/export?format=html").text
        (shown,) = re.findall(r'<div class="attached">.*?</div>', page)
        data = b64encode(PICTURE).decode()
        assert f'<img src="data:image/png;base64,{data}"' in shown
        assert "<a " not in shown
