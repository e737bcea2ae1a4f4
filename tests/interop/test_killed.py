"""A terminal that is killed: steno and the real client go on from the last whole record.

Run by `make interop`.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.console.kill_points import MOMENTS, killed
from tests.console.terminal import Terminal
from tests.interop.client import LIMIT, Job, resume_all
from tests.interop.judge import predicted, sent
from tests.notation import notation

from steno.agent.writable_session import resume_session
from steno.llm.testserver.responders import Responder

pytestmark = [pytest.mark.interop, pytest.mark.timeout(LIMIT)]

NEWEST = "2.1.325"


@pytest.fixture
def terminals(tmp_path: Path) -> Iterator[Callable[[str], Callable[..., Terminal]]]:
    """Return what makes terminals, each in a folder of its own."""
    with ExitStack() as stack:

        def named(name: str) -> Callable[..., Terminal]:
            def make(mind: Responder, **more: Any) -> Terminal:
                folder = tmp_path / name
                folder.mkdir()
                return stack.enter_context(Terminal(folder, mind, **more))

            return make

        yield named


def told(data: bytes, folder: Path) -> list[str]:
    """Return what steno would send of a session that it goes on with."""
    copy = folder / "aaaaaaaa-0000-4000-8000-000000000001.jsonl"
    copy.write_bytes(data)
    return notation(resume_session(str(copy), str(folder)).conversation.messages())


def test_both_go_on_from_the_last_whole_record(
    terminals: Callable[[str], Callable[..., Terminal]], tmp_path: Path
) -> None:
    files: dict[str, bytes] = {}
    for moment in MOMENTS:
        console = killed(terminals(moment), moment)
        (path,) = console.files
        whole = path.read_bytes()
        assert whole.endswith(b"\n")
        files[moment] = whole
        # Had the kill come in the middle of the last write, half a line would be there.
        last = whole[:-1].rindex(b"\n") + 1
        files[f"{moment}, torn"] = whole[: last + (len(whole) - last) // 2]
    answers = resume_all(NEWEST, [Job(data) for data in files.values()])
    for (name, data), answer in zip(files.items(), answers, strict=True):
        theirs = sent(answer)
        assert theirs == predicted(data, NEWEST), name
        assert theirs[0].startswith("u:first thing"), name
        assert "second thing" in str(theirs), name
        ours = told(data, tmp_path)
        calls = [each for each in ours if "USE(" in each]
        assert calls == [each for each in theirs if "USE(" in each], name
        assert [each for each in ours if each.startswith("u:") and "RES(" not in each][:2] == [
            each for each in theirs if each.startswith("u:") and "RES(" not in each
        ][:2], name
