"""What a shell command is."""

import pytest

from steno.report.actions.action import decisive_line
from steno.report.actions.shell_command import parse_shell_command, short_command


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
    assert parse_shell_command(command).only_reads


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
    assert not parse_shell_command(command).only_reads


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
    assert parse_shell_command(command).runs_tests


@pytest.mark.parametrize(
    "command", ["git commit -m 'test the tide'", "echo pytest", "ls tests", "git log tests", "npm run build"]
)
def test_commands_that_run_none(command: str) -> None:
    assert not parse_shell_command(command).runs_tests


def test_what_stands_in_quotes_and_here_documents_is_no_command() -> None:
    command = "git commit -m \"$(cat <<'EOF'\nrm -rf / && npm test\nEOF\n)\""
    shell = parse_shell_command(command)
    assert shell.runs("git", "commit")
    assert not shell.runs_tests
    assert not shell.runs("npm")


@pytest.mark.parametrize(
    ("command", "gists"),
    [
        ("cd a && npm run build", {"npm run build"}),
        ("FOO=1 go build ./...", {"go build"}),
        ("python -u script.py --fast", {"python script.py"}),
        ("gh pr create -t x", {"gh pr create"}),
        ("mise run fmt && mise run lint 2>&1 | tail", {"mise run fmt", "mise run lint"}),
        ("ls | head", {"ls"}),
        ("", set[str]()),
        ("\\ \\ |&& ;;", set[str]()),
    ],
)
def test_the_gists_are_the_programs_that_matter(command: str, gists: set[str]) -> None:
    assert parse_shell_command(command).purposes == gists


@pytest.mark.parametrize(
    ("command", "picks", "whole"),
    [
        ("pytest -q", set[str](), False),
        ("cd web && pytest -k tide tests/a.py | tail", {"tide", "tests/a.py"}, False),
        ("go test ./... -run TestTide", {"TestTide"}, False),
        ("npm run test:unit -- tide", {"tide"}, False),
        ("mise run test 2>&1", set[str](), True),
        ("make lint && make test", set[str](), True),
        ("make build", set[str](), False),
    ],
)
def test_what_tests_are_narrowed_down_to(command: str, picks: set[str], *, whole: bool) -> None:
    shell = parse_shell_command(command)
    assert (shell.selected_tests, shell.runs_all_tests) == (picks, whole)


def test_a_command_is_named_without_where_it_runs_and_how_much_is_shown() -> None:
    command = "cd /home/ada/web && npm test -- /home/ada/web/a.ts 2>&1 | tail -n 20"
    assert short_command(command, "/home/ada/web") == "npm test -- a.ts"
    assert short_command("cat > a <<'EOF'\nx\nEOF", "") == "cat > a <<'EOF' …"


@pytest.mark.parametrize(
    ("printed", "line"),
    [
        ("Exit code 1\n  at x (y.js:1)\nTypeError: no\n", "TypeError: no"),
        ("Traceback (most recent call last):\n  File x\nKeyError: 'a'\n\nValueError: b", "ValueError: b"),
        ("npm warn old\nsrc/a.ts(1,2): error TS2: bad", "src/a.ts(1,2): error TS2: bad"),
        ("\x1b[31mmain.go:3:4: undefined: x\x1b[0m", "main.go:3:4: undefined: x"),
        ("Exit code 128\nfatal: not a git repository", "fatal: not a git repository"),
        ("Failed to say\nFAIL\tgithub.com/ada/tide 0.4s", "FAIL\tgithub.com/ada/tide 0.4s"),
        ("[lint] run\na/b.go:3: same as c.go:4 (dupl)\nerror = x", "a/b.go:3: same as c.go:4 (dupl)"),
        ("Checked 4 files.\n\u2819The paths are ignored:\nsum", "The paths are ignored:"),
        ("Checked 1 file.\n  \u2716 No file\nfailed to", "\u2716 No file"),
        ("a/test_b.py:7: AssertionError\nFAILED a/test_b.py - assert 1", "FAILED a/test_b.py - assert 1"),
        ("100 10.2M  0 10.2M\nzsh: nothing here", "zsh: nothing here"),
        ("", ""),
    ],
)
def test_the_line_that_says_most_is_found(printed: str, line: str) -> None:
    assert decisive_line(printed) == line
