"""Repaired files of the published descriptions, resumed by the real client.

Deleted and inactive parts are absent from what it sends, and everything else is present.
"""

import pytest
from tests.interop.client import LIMIT, QUICK, Job, resume_all
from tests.interop.judge import predicted, sent
from tests.published.examples import EXAMPLES
from tests.published.test_dialects import sent_in_order

from steno.check.repair.repair import repair_bytes

pytestmark = [pytest.mark.interop, pytest.mark.timeout(LIMIT)]

UNLIKE = {"2.1.42": ("pictures", "blocks_of_content")}
"""It sends the word [image] for a picture of an earlier prompt."""
QUICKLY = (
    "error_recovery",
    "flags",
    "active_branch",
    "compact_messages",
    "flat_examples",
    "full_conversation",
    "compacted",
    "progress_of_tools",
)


@pytest.mark.parametrize("version", ["2.1.325", "2.1.42"])
def test_repaired_examples_are_resumed(version: str) -> None:
    names = [
        name for name in (QUICKLY if QUICK else EXAMPLES) if name not in UNLIKE.get(version, ())
    ]
    done = {name: repair_bytes(EXAMPLES[name].data, client=version).data for name in names}
    answers = resume_all(version, [Job(data) for data in done.values()])
    for (name, data), answer in zip(done.items(), answers, strict=True):
        assert sent(answer) == predicted(data, version), name
        assert sent_in_order(answer.messages or [], EXAMPLES[name].known), name
