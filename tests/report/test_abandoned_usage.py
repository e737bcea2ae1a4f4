"""What went into branches that were given up."""

import os
from pathlib import Path
from typing import Any

import pytest
from tests.report.usage_cases import SESSION, answer, path_of, usage, write

from steno.index.database import open_index
from steno.report.pricing import PriceTable
from steno.report.usage import abandoned_usage
from steno.report.usage.abandoned_usage import abandoned_response_keys, count_abandoned_usage
from steno.report.usage.usage_query import UsageQuery
from steno.report.usage.usage_report import UsageFigures

_ID = "00000000-0000-4000-8000-{:012}"


def _said(number: int, parent: int | None, output: int = 0) -> dict[str, Any]:
    parents = {"parentUuid": None if parent is None else _ID.format(parent)}
    line = answer(f"msg_{number}", usage(output), number=number) | parents
    if not output:
        line |= {"type": "user", "message": {"role": "user", "content": f"prompt {number}"}}
    return line


def _rewound(root: Path) -> Path:
    """Write a session in which the second prompt was given up for a third."""
    return write(
        path_of(root), _said(1, None), _said(2, 1, 5), _said(3, 2), _said(4, 3, 70), _said(5, 2), _said(6, 5, 900)
    )


def _count(root: Path, **more: Any) -> tuple[UsageFigures, int]:
    with open_index(str(root)) as index:
        return count_abandoned_usage(index.connection, UsageQuery(), PriceTable(), **more)


def test_only_what_is_off_the_conversation_is_abandoned(tmp_path: Path) -> None:
    path = _rewound(tmp_path)
    assert abandoned_response_keys(str(path)) == {"msg_4"}
    figures, unseen = _count(tmp_path)
    assert (figures.responses, figures.output, unseen) == (1, 70, 0)


def test_a_straight_session_has_no_branches(tmp_path: Path) -> None:
    write(path_of(tmp_path), _said(1, None), _said(2, 1, 5), _said(3, 2), _said(4, 3, 70))
    assert _count(tmp_path) == (UsageFigures(), 0)


def test_what_was_found_is_kept_until_the_file_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _rewound(tmp_path)
    assert _count(tmp_path)[0].output == 70
    looked: list[str] = []

    def look(path: str) -> set[str]:
        looked.append(path)
        return abandoned_response_keys(path)

    monkeypatch.setattr(abandoned_usage, "abandoned_response_keys", look)
    assert _count(tmp_path)[0].output == 70
    assert looked == []
    write(path, *path.read_bytes().splitlines(), _said(7, 6), _said(8, 7, 3))
    assert _count(tmp_path)[0].output == 70
    assert looked == [str(path)]


def test_a_session_whose_path_is_not_utf_8_is_looked_into_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _rewound(tmp_path)
    folder = Path(os.fsdecode(os.fsencode(path.parent) + b"-\xff"))
    try:
        path.parent.rename(folder)
    except OSError:
        pytest.skip("the file system has no such names")
    assert _count(tmp_path)[0].output == 70
    monkeypatch.setattr(abandoned_usage, "abandoned_response_keys", set)
    assert _count(tmp_path)[0].output == 70


def test_much_is_only_read_when_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _rewound(tmp_path)
    monkeypatch.setattr(abandoned_usage, "_MAX_UNREQUESTED_BYTES", 100)
    assert _count(tmp_path) == (UsageFigures(), 1)
    steps: list[int] = []
    figures, unseen = _count(tmp_path, thorough=True, progress=steps.append)
    assert (figures.output, unseen) == (70, 0)
    assert steps == [path_of(tmp_path).stat().st_size]


def test_a_copy_that_does_not_count_is_not_abandoned_either(tmp_path: Path) -> None:
    _rewound(tmp_path)
    write(path_of(tmp_path, 2), _said(4, None, 71) | {"sessionId": SESSION.format(2)})
    assert _count(tmp_path)[0].output == 0
