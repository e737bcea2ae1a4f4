"""Options and variables of test runners that a prefix rule does not allow."""

from typing import Final

import pytest
from tests.permissions.judging import Judging

_COMMANDS: Final = (
    ("Bash(npm run test:*)", "npm run test --git=./marker.sh"),
    ("Bash(npm run test:*)", "npm run test --editor=./marker.sh"),
    ("Bash(npm run test:*)", "npm run test --viewer=./marker.sh -h"),
    ("Bash(npm run test:*)", "npm run test --init-module=./x.js"),
    ("Bash(npm run test:*)", "npm run test -- --exec ./marker.sh"),
    ("Bash(pytest:*)", "pytest --pastebin=all"),
    ("Bash(pytest:*)", "pytest --pyargs evil"),
    ("Bash(pytest:*)", "pytest --cov-config=x"),
    ("Bash(pytest:*)", "pytest --cov-report=xml:/elsewhere/x"),
    ("Bash(pytest:*)", "pytest --pdbcls=marker:X"),
    ("Bash(pytest:*)", "pytest -W error::evil.X"),
    ("Bash(pytest:*)", "pytest --rootd=/elsewhere"),
    ("Bash(pytest:*)", "pytest --report-log=/elsewhere/x"),
    ("Bash(pytest:*)", "pytest -d --tx ssh=x//python=python3"),
    ("Bash(pytest:*)", "PYTEST_PLUGINS=evil pytest"),
    ("Bash(pytest:*)", "PYTHONBREAKPOINT=evil.x pytest"),
    ("Bash(cargo test:*)", "cargo test -- --logfile /elsewhere/x"),
    ("Bash(cargo test:*)", "cargo test -Zunstable-options --artifact-dir=/elsewhere"),
    ("Bash(cargo test:*)", "cargo test --lockfile-path /elsewhere/x"),
    ("Bash(cargo test:*)", "CARGO_HOME=. cargo test"),
    ("Bash(make:*)", "make --jobserver-auth=fifo:/elsewhere/x"),
    ("Bash(make:*)", "make --temp-stdin=/elsewhere/x"),
    ("Bash(make:*)", "make --sync-mutex=fnm:/elsewhere/x"),
    ("Bash(make:*)", "make --eval='load ./x.so'"),
    ("Bash(docker ps:*)", "docker ps --context evil"),
    ("Bash(docker ps:*)", "DOCKER_CONFIG=. docker ps"),
    ("Bash(docker ps:*)", "docker ps --tlscacert /elsewhere/notes.txt"),
)


@pytest.mark.parametrize(("rule", "command"), _COMMANDS)
def test_an_option_that_does_more_asks(here: Judging, rule: str, command: str) -> None:
    assert here.bash(command, here.guard(rule)).verdict == "ask"
