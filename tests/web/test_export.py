"""A session can be taken away from the explorer: masked, as a file, and never as one of its pages."""

import pytest
from tests.web.explorer import Explorer


@pytest.fixture
def key(demo: Explorer) -> str:
    with demo.house.index() as index:
        row = index.connection.execute(
            "SELECT id FROM sessions WHERE agent = '' AND NOT hidden ORDER BY id"
        ).fetchone()
    return str(row[0])


@pytest.mark.parametrize(
    ("query", "end", "has"),
    [("", ".html", "<!doctype html>"), ("?format=markdown", ".md", "## Turn 1")],
)
def test_a_session_is_given_as_a_file(
    demo: Explorer, key: str, query: str, end: str, has: str
) -> None:
    got = demo.get(f"/s/{key}/export{query}")
    assert got.status == 200
    assert got.headers["content-disposition"] == f'attachment; filename="session-{key[:8]}{end}"'
    assert got.headers["content-type"] == "application/octet-stream"
    assert has in got.text
    assert "/home/ada" not in got.text


def test_the_page_of_a_session_leads_to_it(demo: Explorer, key: str) -> None:
    assert f'href="/s/{key}/export"' in demo.get(f"/s/{key}").text


def test_other_formats_and_sessions_are_refused(demo: Explorer, key: str) -> None:
    assert demo.get(f"/s/{key}/export?format=exe").status == 400
    assert demo.get("/s/none/export").status == 404


def test_nobody_gets_it_without_the_key(demo: Explorer, key: str) -> None:
    assert demo.ask(f"/s/{key}/export").status in (401, 421)
