"""Sessions of an explorer by their titles."""

from tests.web.explorer import Explorer


def session_called(explorer: Explorer, title: str) -> str:
    """Return the id of the session whose title begins so."""
    with explorer.house.index() as index:
        asked = "SELECT id FROM sessions WHERE agent = '' AND title LIKE ? || '%'"
        row = index.connection.execute(asked, (title,)).fetchone()
    assert row is not None, title
    return row[0]
