"""Items of the command palette."""

import re
from html import unescape
from urllib.parse import quote

import pytest
from tests.web.explorer import Explorer

_OPTION = re.compile(r'role="option"[^>]*?(?:href|data-do)="([^"]*)">.*?<span class="t">([^<]*)<')


def _options(demo: Explorer, text: str) -> list[tuple[str, str]]:
    answer = demo.get(f"/palette?q={quote(text)}")
    assert answer.status == 200
    return [(unescape(to), unescape(title)) for to, title in _OPTION.findall(answer.text)]


def test_without_letters_it_lists_pages_actions_and_the_newest_sessions(demo: Explorer) -> None:
    found = _options(demo, "")
    assert [to for to, _ in found[:5]] == ["/", "/usage", "/files", "/compare", "/health"]
    assert {"theme", "density", "link", "keys"} <= {to for to, _ in found}
    assert sum(to.startswith("/s/") for to, _ in found) == 6


@pytest.mark.parametrize(
    ("text", "to"),
    [
        ("heal", "/health"),
        ("dark", "theme"),
        ("tide CHART", "/s/"),
        ("tidegauge", "/p/"),
        ("smooth.py", "/files/"),
        ("anything at all", "/?q=anything+at+all"),
    ],
)
def test_each_kind_of_thing_is_found(demo: Explorer, text: str, to: str) -> None:
    assert any(each.startswith(to) for each, _ in _options(demo, text))


@pytest.mark.parametrize("text", ["%", "_", "\\", "'", '"', "%%%", "a' OR 1=1 --", "\x00", "\ud7ff"])
def test_letters_mean_themselves(demo: Explorer, text: str) -> None:
    for to, title in _options(demo, text):
        if to.startswith("/s/"):
            assert text in title


def test_every_session_is_found_by_the_beginning_of_its_id(demo: Explorer) -> None:
    with demo.house.index() as index:
        rows = index.connection.execute("SELECT id FROM sessions WHERE agent = '' AND NOT hidden").fetchall()
    for (name,) in rows:
        assert (f"/s/{name}") in [to for to, _ in _options(demo, name[:10])]


def test_too_many_letters_are_refused(demo: Explorer) -> None:
    assert demo.get(f"/palette?q={'a' * 201}").status == 400
