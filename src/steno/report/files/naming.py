"""Which touched file somebody means by a few words of its path."""

import os
import sqlite3
from typing import Final

from steno.errors import Ambiguous, NotFound
from steno.report.files.touched import COUNTS
from steno.report.names import text_of

__all__ = ["path_meant", "paths_ending"]

_LISTED: Final = 6
_ESCAPE: Final = str.maketrans({"\\": r"\\", "%": r"\%", "_": r"\_"})
_PLAIN: Final = r"replace(t.path, '\', '/')"


def path_meant(connection: sqlite3.Connection, text: str, cwd: str) -> str:
    """Return the touched file that a path names: as it is, from a folder on, or by its end.

    Raises:
        NotFound: no session touched such a file.
        Ambiguous: several end like that.
    """
    # No session can have written a name that is no text.
    text = text_of(text).replace("\0", "\u2400")
    here = os.path.normpath(os.path.join(text_of(cwd), text))
    for each in dict.fromkeys((text, here, text_of(os.path.realpath(here)))):
        if _is_touched(connection, each):
            return each
    found = paths_ending(connection, text)
    if not found:
        raise NotFound(f"no session touched {text!r}", hint="`steno files` lists what was touched")
    if len(found) > 1:
        more = f" and {len(found) - _LISTED} more" if len(found) > _LISTED else ""
        raise Ambiguous(
            f"{len(found)} files end in {text!r}",
            candidates=tuple(found),
            hint=f"one of: {', '.join(found[:_LISTED])}{more}",
        )
    return found[0]


def paths_ending(connection: sqlite3.Connection, text: str) -> list[str]:
    """Return the touched files whose path ends in some whole names, the latest first."""
    end = text.replace("\\", "/").removeprefix("./").strip("/")
    if not end or end == "." or end.startswith("../"):
        return []
    rows = connection.execute(
        f"SELECT t.path, max(t.time) FROM (SELECT path, time FROM tool_calls t WHERE {COUNTS} "
        f"UNION ALL SELECT path, time FROM file_backups) t "
        rf"WHERE ({_PLAIN} = ? OR {_PLAIN} LIKE ? ESCAPE '\') AND substr({_PLAIN}, -?) = ? "
        "GROUP BY 1 ORDER BY 2 DESC, 1",
        (end, f"%/{end.translate(_ESCAPE)}", len(end), end),
    )
    return [path for path, _ in rows]


def _is_touched(connection: sqlite3.Connection, path: str) -> bool:
    where = (
        f"SELECT 1 FROM tool_calls t WHERE t.path = ? AND {COUNTS} "
        "UNION ALL SELECT 1 FROM file_backups WHERE path = ? LIMIT 1"
    )
    return connection.execute(where, (path, path)).fetchone() is not None
