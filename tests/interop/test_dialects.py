"""Repaired files of the published descriptions, resumed by the real client.

Deleted and inactive parts are absent from what it sends, and everything else is present.
"""

import pytest
from tests.interop.client import LIMIT, QUICK, Job, resume_all
from tests.interop.judge import predicted, sent
from tests.published.examples import EXAMPLES
from tests.published.files import Known, in_a_clients_file
from tests.published.forms import Client
from tests.published.test_dialects import sent_in_order

from steno.check.repair.repair_job import repair_bytes

pytestmark = [pytest.mark.interop, pytest.mark.timeout(LIMIT)]

UNLIKE = {"2.1.42": ("pictures", "blocks_of_content")}
"""It sends the word [image] for a picture of an earlier prompt."""
CASES = {name: each.known for name, each in EXAMPLES.items()}
CASES["in_a_clients_file"] = in_a_clients_file()
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
    names = [name for name in (QUICKLY if QUICK else CASES) if name not in UNLIKE.get(version, ())]
    done = {name: repair_bytes(CASES[name].data, client=version).data for name in names}
    answers = resume_all(version, [Job(data) for data in done.values()])
    for (name, data), answer in zip(done.items(), answers, strict=True):
        assert sent(answer) == predicted(data, version), name
        assert sent_in_order(answer.messages or [], CASES[name]), name


@pytest.mark.parametrize("version", ["2.1.325", "2.1.42"])
def test_a_flag_on_the_clients_own_record_changes_nothing(version: str) -> None:
    """`isDeleted`, `isAborted` and `is_active` say nothing to the client."""
    file = Client()
    file.user("First")
    file.says("One.")
    file.user("Second", isDeleted=True, is_active=False)
    file.says("Two.", isAborted=True, isDeleted=True)
    (answer,) = resume_all(version, [Job(file.data())])
    assert sent(answer) == predicted(file.data(), version)
    known = Known(file.data(), (), ("First", "One.", "Second", "Two."))
    assert sent_in_order(answer.messages or [], known)


def test_a_mixed_file_is_sent_as_predicted_before_it_is_repaired() -> None:
    data = in_a_clients_file().data
    (answer,) = resume_all("2.1.325", [Job(data)])
    assert sent(answer) == predicted(data, "2.1.325")
