"""Converted files of the published dialects, resumed by the real client.

Deleted and inactive parts are absent from what it sends, and everything else is present.
"""

import pytest
from tests.interop.client import LIMIT, QUICK, Job, resume_all
from tests.interop.judge import predicted, sent
from tests.published.files import FILES
from tests.published.test_dialects import sent_in_order

from steno.check.repair.repair import repair_bytes

pytestmark = [pytest.mark.interop, pytest.mark.timeout(LIMIT)]

UNLIKE = {"2.1.42": ("pictures",)}
"""It sends the word [image] for a picture of an earlier prompt."""
QUICKLY = ("error_recovery", "flags", "active_branch", "compact_messages")


@pytest.mark.parametrize("version", ["2.1.325", "2.1.42"])
def test_converted_sessions_are_resumed(version: str) -> None:
    names = [name for name in (QUICKLY if QUICK else FILES) if name not in UNLIKE.get(version, ())]
    known = {name: FILES[name]() for name in names}
    done = {name: repair_bytes(each.data, client=version).data for name, each in known.items()}
    answers = resume_all(version, [Job(data) for data in done.values()])
    for (name, data), answer in zip(done.items(), answers, strict=True):
        assert sent(answer) == predicted(data, version), name
        assert sent_in_order(answer.messages or [], known[name]), name
