"""What a rule denies stays hidden from commands that read everything in a folder.

Confinement hides the files, but not what git has committed of them. Without confinement, all asks.
"""

import pytest
from tests.permissions.judging import Judging

from steno.permissions.permission_checker import PermissionChecker

SEARCHES = ("grep -r KEY .", "grep -rn KEY", "rg KEY")
COMMITTED = ("git log -p", "git grep KEY", "git diff", "git show HEAD:.env", "git status -vv")
DENIED = ("Read(.env)", "Read(./.env)", "Read(secrets/**)")


@pytest.mark.parametrize("command", SEARCHES)
@pytest.mark.parametrize("hidden", DENIED)
def test_a_search_runs_only_confined_where_a_file_is_denied(here: Judging, command: str, hidden: str) -> None:
    (here.project / ".env").write_text("KEY=1\n")
    guard = here.guard(deny=(hidden,))
    assert here.bash(command, guard).isolation == "read"
    free = PermissionChecker(guard.rules, "default", guard.cwd, guard.folders, can_sandbox=False)
    assert here.bash(command, free).verdict == "ask"


@pytest.mark.parametrize("command", COMMITTED)
@pytest.mark.parametrize("hidden", DENIED)
def test_git_asks_before_it_shows_what_was_committed_where_a_file_is_denied(
    here: Judging, command: str, hidden: str
) -> None:
    (here.project / ".env").write_text("KEY=1\n")
    assert here.bash(command, here.guard(deny=(hidden,))).verdict == "ask"
    assert here.bash(command, here.guard()).verdict == "allow"


def test_files_by_name_are_read_without_asking_where_another_is_denied(here: Judging) -> None:
    guard = here.guard(deny=("Read(.env)",))
    assert here.bash("grep KEY src/a.py", guard).verdict == "allow"
    assert here.bash("grep KEY .env", guard).verdict != "allow"
