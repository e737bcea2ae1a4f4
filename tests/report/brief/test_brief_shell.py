"""What a shell command is."""

import pytest

from steno.report.brief.outcomes import telling_line
from steno.report.brief.shell import named, shell_of


@pytest.mark.parametrize(
    "command",
    [
        "ls -la",
        "git -C lib log --oneline 2>/dev/null | head",
        "cat a.py | grep -n tide && wc -l b.py",
        "find . -name '*.py' -exec grep -l tide {} \\;",
        "sed -n 1,20p a.py",
        "git branch && git tag -l 'v*'",
        "gh pr view 3 --json title",
        "node --version",
        "echo 'rm -rf /'",
    ],
)
def test_commands_that_only_look(command: str) -> None:
    assert shell_of(command).only_looks


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf build",
        "echo x > a.py",
        "sed -i s/a/b/ a.py",
        "find . -name '*.pyc' -delete",
        "find . -exec rm {} +",
        "git tag -a v1 -m 'one'",
        "git stash",
        "cat > a.py <<'EOF'\nprint(1)\nEOF",
        "ls && npm install",
    ],
)
def test_commands_that_do_something(command: str) -> None:
    assert not shell_of(command).only_looks


@pytest.mark.parametrize(
    "command",
    [
        "pytest -q",
        "python -m pytest tests -x | tail",
        "cd web && CI=1 npx vitest run",
        "uv run pytest",
        "go test ./...",
        "cargo test --workspace",
        "npm test",
        "npm run test:unit",
        "mise run test:ci 2>&1",
        "make test ARGS=-x",
        "timeout 60 pytest",
        "python manage.py test app",
        "env FOO=1 ./gradlew test",
    ],
)
def test_commands_that_run_tests(command: str) -> None:
    assert shell_of(command).tests


@pytest.mark.parametrize(
    "command",
    ["git commit -m 'test the tide'", "echo pytest", "ls tests", "git log tests", "npm run build"],
)
def test_commands_that_run_none(command: str) -> None:
    assert not shell_of(command).tests


def test_what_stands_in_quotes_and_here_documents_is_no_command() -> None:
    command = "git commit -m \"$(cat <<'EOF'\nrm -rf / && npm test\nEOF\n)\""
    shell = shell_of(command)
    assert shell.runs("git", "commit")
    assert not shell.tests
    assert not shell.runs("npm")


@pytest.mark.parametrize(
    ("command", "gist"),
    [
        ("cd a && npm run build", "npm run"),
        ("FOO=1 go build ./...", "go build"),
        ("python script.py", "python"),
        ("ls | head", "ls"),
        ("", ""),
        ("\\ \\ |&& ;;", ""),
    ],
)
def test_the_gist_is_the_program_that_matters(command: str, gist: str) -> None:
    assert shell_of(command).gist == gist


def test_a_command_is_named_without_where_it_runs_and_how_much_is_shown() -> None:
    command = "cd /home/ada/web && npm test -- /home/ada/web/a.ts 2>&1 | tail -n 20"
    assert named(command, "/home/ada/web") == "npm test -- a.ts"
    assert named("cat > a <<'EOF'\nx\nEOF", "") == "cat > a <<'EOF' …"


@pytest.mark.parametrize(
    ("printed", "line"),
    [
        ("Exit code 1\n  at x (y.js:1)\nTypeError: no\n", "TypeError: no"),
        (
            "Traceback (most recent call last):\n  File x\nKeyError: 'a'\n\nValueError: b",
            "ValueError: b",
        ),
        ("npm warn old\nsrc/a.ts(1,2): error TS2: bad", "src/a.ts(1,2): error TS2: bad"),
        ("\x1b[31mmain.go:3:4: undefined: x\x1b[0m", "main.go:3:4: undefined: x"),
        ("Exit code 128\nfatal: not a git repository", "fatal: not a git repository"),
        ("", ""),
    ],
)
def test_the_line_that_says_most_is_found(printed: str, line: str) -> None:
    assert telling_line(printed) == line
