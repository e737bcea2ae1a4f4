"""A rule that denies reading a file also asks before commands that read everything in a folder."""

import pytest
from tests.guard.judging import Judging

EVERYTHING = ("grep -r KEY .", "grep -rn KEY", "rg KEY", "git log -p", "git grep KEY", "git diff")


@pytest.mark.parametrize("command", EVERYTHING)
@pytest.mark.parametrize("hidden", ["Read(.env)", "Read(./.env)", "Read(secrets/**)"])
def test_a_command_that_reads_everything_asks_where_a_file_is_denied(
    here: Judging, command: str, hidden: str
) -> None:
    (here.project / ".env").write_text("KEY=1\n")
    decision = here.bash(command, here.guard(deny=(hidden,)))
    assert decision.verdict != "allow"


def test_files_by_name_are_read_without_asking_where_another_is_denied(here: Judging) -> None:
    guard = here.guard(deny=("Read(.env)",))
    assert here.bash("grep KEY src/a.py", guard).verdict == "allow"
    assert here.bash("grep KEY .env", guard).verdict != "allow"
