"""A prefix rule for an interpreter or a database client does not allow what comes through a pipe."""

import pytest
from tests.permissions.judging import Judging

_PIPED = (
    ("python", "python -v"),
    ("python", "python -q -v"),
    ("psql", "psql -v x=1"),
    ("psql", "psql -version"),
    ("psql", "psql -- --help"),
    ("psql", "psql -- -V"),
    ("mysql", "mysql -v"),
    ("mysql", "mysql -- --version"),
    ("mongosh", "mongosh -v"),
    ("sftp", "sftp -v host"),
    ("redis-cli", "redis-cli -help"),
    ("sqlite3", "sqlite3 app.db"),
)
_ABOUT = (
    ("python", "python --version"),
    ("python", "python -V"),
    ("node", "node -v"),
    ("ruby", "ruby -v"),
    ("perl", "perl -v"),
    ("php", "php -v"),
    ("lua", "lua -v"),
    ("sqlite3", "sqlite3 -version"),
    ("psql", "psql --help"),
)


@pytest.mark.parametrize(("tool", "command"), _PIPED)
def test_commands_from_a_pipe_ask(here: Judging, tool: str, command: str) -> None:
    """After a word that only looks like a question for the version, the tool reads its input."""
    guard = here.guard(f"Bash({tool}:*)")
    assert here.bash(f"echo x | {command}", guard).verdict == "ask"
    assert here.bash(command, guard).verdict == "ask"


@pytest.mark.parametrize(("tool", "command"), _ABOUT)
def test_what_a_tool_says_of_itself_is_allowed(here: Judging, tool: str, command: str) -> None:
    assert here.bash(command, here.guard(f"Bash({tool}:*)")).verdict == "allow"


@pytest.mark.parametrize("command", ['export a"b"=c', 'unset a"b"', "local a'b'=c", 'readonly a"b"'])
def test_a_name_in_pieces_is_not_taken_for_two(here: Judging, command: str) -> None:
    """The parser reads two names where bash reads one, which may be that of another variable."""
    assert here.bash(command, here.guard()).verdict == "ask"
