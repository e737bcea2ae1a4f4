"""Converted files of the published dialects, resumed by the real client.

Deleted and inactive parts are absent from what it sends, and everything else is present.
"""

import pytest
from tests.interop.client import LIMIT, QUICK, Job, resume_all
from tests.interop.judge import predicted, sent
from tests.published.files import FILES, Known, in_a_clients_file
from tests.published.forms import Client
from tests.published.test_dialects import sent_in_order

from steno.check.repair.repair import repair_bytes

pytestmark = [pytest.mark.interop, pytest.mark.timeout(LIMIT)]

UNLIKE = {"2.1.42": ("pictures",)}
"""It sends the word [image] for a picture of an earlier prompt."""
CASES = {**FILES, "in_a_clients_file": in_a_clients_file}
QUICKLY = ("error_recovery", "flags", "active_branch", "compact_messages")


@pytest.mark.parametrize("version", ["2.1.325", "2.1.42"])
def test_converted_sessions_are_resumed(version: str) -> None:
    names = [name for name in (QUICKLY if QUICK else CASES) if name not in UNLIKE.get(version, ())]
    known = {name: CASES[name]() for name in names}
    done = {name: repair_bytes(each.data, client=version).data for name, each in known.items()}
    answers = resume_all(version, [Job(data) for data in done.values()])
    for (name, data), answer in zip(done.items(), answers, strict=True):
        assert sent(answer) == predicted(data, version), name
        assert sent_in_order(answer.messages or [], known[name]), name


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
