"""How an allowed command runs: confined, in a fixed shape, or as a rule says."""

import os

import pytest
from tests.permissions.judging import Judging

from steno.permissions.permission_checker import PermissionChecker
from steno.permissions.permission_rules import Decision, PermissionMode


def _unconfinable(guard: PermissionChecker) -> PermissionChecker:
    return PermissionChecker(guard.rules, guard.mode, guard.cwd, guard.folders, can_sandbox=False)


@pytest.mark.parametrize(
    "command",
    [
        *("git status", "cat src/a.py", "cat $x", "cat *.py", "ls src/*.py | head", "pwd"),
        *('for f in *.py; do head -3 "$f"; done', "find . -name '*.py' -exec grep -l x {} +"),
        *("awk '{print $1}' src/a.py", "sed -n 1,5p src/a.py", "ls | xargs grep foo"),
        *("node --version", "[[ -f src/a.py ]]", "cd src && ls"),
    ],
)
@pytest.mark.parametrize("mode", ["default", "plan", "acceptEdits", "dontAsk"])
def test_what_only_reads_runs_confined(here: Judging, command: str, mode: PermissionMode) -> None:
    said = here.bash(command, here.guard(mode=mode))
    assert (said.verdict, said.isolation, said.exact) == ("allow", "read", False)


@pytest.mark.parametrize(
    "command",
    [
        *("git tag -l 'v*'", "git reflog -5", "git grep -n x", "git status -uall", "tar tzf x.tgz"),
        *("unzip -l x.zip", "zcat x.gz | head", "npm -v", "git for-each-ref refs/heads"),
    ],
)
def test_lists_are_read_confined(here: Judging, command: str) -> None:
    assert here.bash(command, here.guard()).isolation == "read"


@pytest.mark.parametrize(
    "command",
    [
        *("git tag v1", "git tag -l -d v1", "git tag -d v1", "git reflog expire --all", "git grep -Ox y"),
        *("tar xf x.tar", "tar tf x --to-command=y", "tar tIf y x", "unzip x.zip", "unzip -l x -d y"),
        *("git stash list -p x", "git worktree list x", "./node -v", "node -v x", "make --version x"),
    ],
)
def test_what_only_looks_like_a_list_asks(here: Judging, command: str) -> None:
    assert here.bash(command, here.guard()).verdict == "ask"


@pytest.mark.parametrize("command", ["mkdir build", "touch a b", "echo x > out.txt", "cp src/a.py b.py && cat b.py"])
def test_accepted_edits_run_confined_to_the_working_folders(here: Judging, command: str) -> None:
    assert here.bash(command, here.guard(mode="acceptEdits")).isolation == "edit"


@pytest.mark.parametrize(
    ("rule", "command", "exact"),
    [
        ("Bash(make:*)", "make all", False),
        ("Bash(make all)", "make all", True),
        ("Bash(make:*)", "make all | tail -n 20", False),
        ("Bash(make:*)", "cd src && make all 2>&1 | grep -n error", False),
    ],
)
def test_what_a_rule_allows_is_not_confined(here: Judging, rule: str, command: str, *, exact: bool) -> None:
    said = here.bash(command, here.guard(rule))
    assert (said.verdict, said.isolation, said.exact) == ("allow", "", exact)


@pytest.mark.parametrize(
    "command",
    [
        *("make all; git status", "make all | sort -o x", "make all && cat *.py"),
        *("git -C sub status && make all", "make all | xargs grep x", "make all; find . -ls"),
        *("make all | grep -f /etc/passwd", "make all; ls -R", "make all; cat link"),
    ],
)
def test_next_to_a_rule_only_fixed_commands_run_unasked(here: Judging, command: str) -> None:
    (here.project / "link").symlink_to("/etc/passwd")
    assert here.bash(command, here.guard("Bash(make:*)")).verdict == "ask"


@pytest.mark.parametrize(
    "command",
    [
        *("pwd", "ls", "ls -la src", "cat src/a.py", "head -n 3 src/a.py", "head -5 src/a.py"),
        *("cat src/a.py | grep -n a | wc -l", "echo hello", "cd src && cat a.py", "cut -d, -f1 src/a.py"),
    ],
)
def test_without_confinement_fixed_commands_run_unasked(here: Judging, command: str) -> None:
    said = here.bash(command, _unconfinable(here.guard()))
    assert (said.verdict, said.isolation) == ("allow", "fixed")


@pytest.mark.parametrize(
    "command",
    [
        *("git status", "git log", "rg x", "grep -r x .", "find .", "cat *.py", "cat $x", "jq . src/a.py"),
        *("sed -n 1p src/a.py", "awk '{print}' src/a.py", "sort --compress-program=x src/a.py", "node --version"),
        *("ls -R", "cat /proc/self/environ", "cat ../x", "strings @x", "xargs -a x", "diff -N . src", "cat fifo"),
        *("echo ~/.ssh/*", "ls | xargs cat", "printf -v x y", "tail -f src/a.py", "head --lines=3 src/a.py"),
        *("LD_PRELOAD=x ls", "TERM=x ls", "date -f x", "file -m x y", "wc --files0-from=x", "uniq src/a.py out"),
    ],
)
@pytest.mark.parametrize("mode", ["default", "plan", "acceptEdits"])
def test_without_confinement_all_else_asks(here: Judging, command: str, mode: PermissionMode) -> None:
    os.mkfifo(here.project / "fifo")
    said = here.bash(command, _unconfinable(here.guard(mode=mode)))
    assert said.verdict == "ask", said


@pytest.mark.parametrize("command", ["mkdir build", "touch a", "echo x > out.txt", "rm src/a.py"])
def test_without_confinement_edits_by_commands_ask(here: Judging, command: str) -> None:
    guard = _unconfinable(here.guard(mode="acceptEdits"))
    assert here.bash(command, guard).verdict == "ask"


def test_a_bare_rule_and_bypassed_permissions_are_not_confined(here: Judging) -> None:
    for said in (
        here.bash("git status", here.guard("Bash")),
        here.bash("git status", here.guard(mode="bypassPermissions")),
    ):
        assert (said.verdict, said.isolation) == ("allow", "")


def _content(here: Judging, command: str) -> Decision:
    return here.bash(command, here.guard(deny=("Read(.env)",)))


@pytest.mark.parametrize(
    "command",
    [
        *("git log -p", "git show HEAD:.env", "git status -vv", "git status --verbose", "git diff"),
        *("git blame src/a.py", "git log -S x", "git log -L1,2:x", "git cat-file -p HEAD", "git log --word-diff"),
        *("git diff --stat -p", "git log --stat --patch", "git log -1 -u"),
    ],
)
def test_committed_content_asks_where_files_are_denied(here: Judging, command: str) -> None:
    assert _content(here, command).verdict == "ask"


@pytest.mark.parametrize(
    "command", ["git log --oneline -5", "git status -s", "git diff --name-only", "git branch -a", "rg KEY"]
)
def test_names_and_confined_searches_do_not_ask_where_files_are_denied(here: Judging, command: str) -> None:
    said = _content(here, command)
    assert (said.verdict, said.isolation) == ("allow", "read")


@pytest.mark.parametrize("command", ["cp src/a.py evil sub", "cp evil src/a.py sub", "mv b evil sub"])
def test_every_source_is_held_against_a_link_in_the_target(here: Judging, command: str) -> None:
    (here.project / "sub").mkdir()
    (here.project / "sub" / "evil").symlink_to("/elsewhere")
    for name in ("evil", "b"):
        (here.project / name).write_text("x", encoding="utf-8")
    assert here.bash(command, here.guard(mode="acceptEdits")).verdict == "ask"


@pytest.mark.parametrize("rule", ["Read(.env)", "Read(./private/**)"])
def test_another_name_of_a_denied_file_is_denied(here: Judging, rule: str) -> None:
    (here.project / "private").mkdir()
    for name, link in ((".env", "hard"), ("private/note", "other")):
        (here.project / name).write_text("x", encoding="utf-8")
        (here.project / link).hardlink_to(here.project / name)
    (here.project / "plain").write_text("x", encoding="utf-8")
    (here.project / "same").hardlink_to(here.project / "plain")
    guard = here.guard("Bash(cat:*)", deny=(rule,))
    denied, allowed = ("hard", "other") if rule == "Read(.env)" else ("other", "hard")
    assert here.file("Read", here.project / denied, guard).verdict == "deny"
    assert here.bash(f"cat {denied}", guard).verdict == "deny"
    shown = guard.visibility_filter(str(here.project))
    assert [shown(name) for name in (denied, allowed, "same", "plain")] == [False, True, True, True]
    assert here.file("Read", here.project / "same", guard).verdict == "allow"


@pytest.mark.parametrize(
    "command", ["cat src/a.py -n", "grep a src/a.py -f x", "cut -dab -f1 src/a.py", "cut -d ab -f1 src/a.py"]
)
def test_a_fixed_command_has_its_options_first_and_plain_values(here: Judging, command: str) -> None:
    assert here.bash(command, _unconfinable(here.guard())).verdict == "ask"


def test_a_write_next_to_a_rule_and_a_fixed_command_asks(here: Judging) -> None:
    guard = here.guard("Bash(make:*)", mode="acceptEdits")
    assert here.bash("make all > out.txt", guard).verdict == "allow"
    assert here.bash("make all > out.txt; cat src/a.py", guard).verdict == "ask"


def test_where_too_many_files_are_there_to_compare_a_shared_one_is_denied(
    here: Judging, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("steno.permissions.file_permissions._MAX_FILES", 1)
    (here.project / "same").hardlink_to(here.project / "src" / "a.py")
    guard = here.guard(deny=("Read(.env)",))
    assert here.file("Read", here.project / "same", guard).verdict == "deny"
