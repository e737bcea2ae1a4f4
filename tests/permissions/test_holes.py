"""Every known hole of tools like this one, each under its own name."""

import os
import tempfile
from pathlib import Path

import pytest
from tests.permissions.judging import Judging

from steno.permissions.permission_checker import PermissionChecker
from steno.permissions.shell.parser import MAX_COMMANDS

# Command permission


@pytest.mark.parametrize(
    "command",
    [
        'echo "x"; rm -rf y',
        "echo '\"' ; rm x ; echo '\"'",
        'echo "\\"; rm x; echo \\""; rm x',
        "echo x\nrm y",
        "echo $(rm x)",
        'echo "`rm x`"',
        "echo x > /etc/cron.d/y",
        "echo x | sh",
    ],
)
def test_cve_2025_54795_echo_does_not_carry_other_commands(here: Judging, command: str) -> None:
    assert here.bash(command, here.guard("Bash(echo:*)")).verdict == "ask"


@pytest.mark.parametrize(
    "command",
    [
        "rg --pre ./evil.sh x",
        "rg --pre=./evil.sh x",
        "rg x --hostname-bin ./evil",
        "rg '--pre' sh x .",
        "rg --pr sh x",
        "rg $X y",
        "rg -z --pre-glob '*' --pre bash x",
    ],
)
def test_cve_2025_58764_rg_does_not_run_a_preprocessor(here: Judging, command: str) -> None:
    assert here.bash(command, here.guard()).verdict == "ask"
    assert here.bash(command, here.guard("Bash(rg:*)")).verdict == "ask"


@pytest.mark.parametrize(
    "command",
    [
        "cat$IFS/etc/passwd",
        "cat${IFS}/etc/passwd",
        "ls${IFS%%?}x",
        "IFS=_; echo x",
        "man -P 'rm x' ls",
        "man --html=evil ls",
        "sort -ofile a",
        "sort --output=src/b.py src/a.py",
        "sort -S1 --compress-program=sh src/a.py",
        "git diff --output=x",
        "git log --outp=x",
        "git -c core.pager=evil log",
        "git --exec-path=. status",
        "git grep -Oevil x",
        "git ls-remote ext::sh",
        "xargs -I{} sh -c {}",
        "history -a /tmp/x",
        "uniq src/a.py src/out",
        "tree -o out",
        "file -C -m x",
        "date -s 2020-01-01",
        "date 010100002020",
        "hostname evil",
        "jq -n env",
        "jq -f x .",
        "find . -fprint x",
        "find . -delete",
        "find . -exec rm {} +",
        "find . -execdir rm {} \\;",
        "find . -ok rm {} \\;",
        "fd x -X rm",
    ],
)
def test_cve_2025_66032_reading_commands_neither_write_nor_run(here: Judging, command: str) -> None:
    assert here.bash(command, here.guard()).verdict == "ask"


@pytest.mark.parametrize(
    "command",
    [
        "sed -i s/a/b/ src/a.py",
        "sed -n 'w /tmp/x' src/a.py",
        "sed 's/a/b/w out' src/a.py",
        "sed -e 's/a/b/e' src/a.py",
        "sed '1e rm x' src/a.py",
        "sed -n '1,5p;w x' src/a.py",
        "sed --in-place=x s/a/b/ src/a.py",
        "sed -f script src/a.py",
        "sed 'r /etc/passwd' src/a.py",
    ],
)
def test_cve_2025_64755_sed_does_not_write_or_run(here: Judging, command: str) -> None:
    assert here.bash(command, here.guard()).verdict == "ask"
    assert here.bash(command, here.guard("Bash(sed:*)")).verdict == "ask"


def test_sed_that_only_prints_or_replaces_is_allowed(here: Judging) -> None:
    assert here.bash("sed -n 1,5p src/a.py", here.guard()).verdict == "allow"
    assert here.bash("sed 's/a/b/g; 3d' src/a.py", here.guard("Bash(sed:*)")).verdict == "allow"


_VECTORS = [
    "npm test; rm x",
    "npm test;rm x",
    "npm test && rm x",
    "npm test&&rm x",
    "npm test || rm x",
    "npm test | rm x",
    "npm test |& rm x",
    "npm test & rm x",
    "npm test &\nrm x",
    "npm test\nrm x",
    "npm test\n\nrm x",
    "npm test $(rm x)",
    "npm test `rm x`",
    'npm test "$(rm x)"',
    'npm test "`rm x`"',
    "npm test ${y:-$(rm x)}",
    'npm test "${y:-`rm x`}"',
    "npm test $((y[$(rm x)]))",
    "npm test $[y[$(rm x)]]",
    "npm test <(rm x)",
    "npm test >(rm x)",
    "npm test > >(rm x)",
    "npm test < <(rm x)",
    "npm test <<< $(rm x)",
    "npm test <<E\n$(rm x)\nE",
    "npm test <<E\n`rm x`\nE",
    "npm test <<E\nE\nrm x",
    "npm test <<'E'\nE\nrm x",
    "npm test <<-E\n\tE\nrm x",
    "npm test <<E; rm x\nE",
    "rg <<E --pre rm x\nE",
    "rg > /dev/null --pre rm x",
    "rg 2>&1 --pre rm x",
    "rg <<< y --pre rm x",
    "< /dev/null rm x",
    "> /dev/null rm x",
    "2>&1 rm x",
    "npm test >&2'$(rm x)'",
    "npm test >& x",
    "(npm test; rm x)",
    "{ npm test; rm x; }",
    "if npm test; then rm x; fi",
    "while npm test; do rm x; done",
    "until npm test; do rm x; done",
    "for i in 1; do npm test; rm x; done",
    "for i in $(rm x); do npm test; done",
    "select i in 1; do rm x; done",
    "case $(rm x) in *) npm test;; esac",
    "case a in a) rm x;; esac",
    "npm() { rm x; }; npm test",
    "function npm { rm x; }; npm test",
    "eval 'npm test; rm x'",
    "eval npm test \\; rm x",
    "bash -c 'rm x'",
    "sh -c 'npm test; rm x'",
    "bash -lc 'rm x'",
    "bash <<< 'rm x'",
    "echo 'rm x' | bash",
    "bash <<E\nrm x\nE",
    "npm test > x; . ./x",
    "source x; npm test",
    "env npm test; env rm x",
    "env -S 'rm x'",
    "env -i rm x",
    "/usr/bin/env rm x",
    "sudo rm x",
    "sudo -u root rm x",
    "xargs rm",
    "npm test | xargs rm",
    "xargs -I{} rm {}",
    "find . -exec rm {} \\;",
    "find . -name npm -delete",
    "time rm x",
    "nohup rm x",
    "timeout 5 rm x",
    "timeout -s KILL 5 rm x",
    "nice rm x",
    "nice -n 5 rm x",
    "nice -5 rm x",
    "stdbuf -oL rm x",
    "exec rm x",
    "command rm x",
    "builtin eval 'rm x'",
    "coproc rm x",
    "trap 'rm x' EXIT; npm test",
    "trap 'rm x' DEBUG; npm test",
    "alias npm='rm x'; npm test",
    "ssh host rm x",
    "! rm x",
    "[ -f x ] && rm x",
    "[[ -n $(rm x) ]]",
    "[ $(rm x) ]",
    "[[ -v y[$(rm x)] ]]",
    "test -v 'y[$(rm x)]'",
    "(( y[$(rm x)] ))",
    "let 'y[$(rm x)]=1'",
    "y=$(rm x)",
    "y=`rm x` npm test",
    "y=($(rm x))",
    "y[$(rm x)]=1",
    "export y=$(rm x)",
    "declare y=$(rm x)",
    "local y=`rm x`",
    "readonly y=$(rm x)",
    "printf -v 'y[$(rm x)]' z",
    "read 'y[$(rm x)]'",
    "unset 'y[$(rm x)]'",
    "mapfile -C 'rm x' -c 1 y",
    "$'rm' x",
    "$'\\x72m' x",
    "r''m x",
    'r""m x',
    "\\rm x",
    "'rm' x",
    '"rm" x',
    "r\\m x",
    "{rm,x}",
    "{npm,rm} x",
    "r? x",
    "/bin/r* x",
    "/bin/rm x",
    "../../bin/rm x",
    "$y x",
    "${y} x",
    "${y:-rm} x",
    "y=rm; $y x",
    "$(echo rm) x",
    "`echo rm` x",
    "npm te\\\nst; r\\\nm x",
    "rm\tx",
    "rm\\\nx",
    "npm test #\nrm x",
    "npm test # it's\nrm x # '",
    "echo `ls # foo` ; rm x\n`",
    "npm test;\u00a0rm x",
    "npm test\u2028rm x",
    "npm test\rrm x",
    "npm test \u202e;rm x",
    "npm\u200b test",
    "npm test \x1b[2K; rm x",
    "npm test\x00; rm x",
    "PATH=.:$PATH npm test",
    "PATH=.; npm test",
    "LD_PRELOAD=./x.so npm test",
    "NODE_OPTIONS='-r ./x' npm test",
    "npm_config_script_shell=./x npm test",
    "BASH_ENV=x npm test",
    "PROMPT_COMMAND='rm x'; npm test",
    "GIT_SSH_COMMAND='rm x' npm test",
    "export PATH=.; npm test",
    "for PATH in .; do npm test; done",
    "read PATH; npm test",
    "hash -p ./x npm; npm test",
    "enable -f ./x.so npm",
    "shopt -s expand_aliases",
    "tar cf x --checkpoint=1 --checkpoint-action=exec=sh y",
    "tar xf x --to-command=sh",
    "tar -I sh -xf x",
    "awk 'BEGIN{system(\"rm x\")}'",
    "awk 'BEGIN{print | \"sh\"}'",
    "vim -c ':!rm x'",
    "vim '+!rm x'",
    "less '+!rm x' y",
    "man -P rm ls",
    'python -c "import os"',
    "python3.11 -c x",
    "node -e x",
    "node --eval=x",
    "perl -e x",
    "ruby -e x",
    "php -r x",
    "npm test > ~/.bashrc",
    "npm test >> .git/hooks/pre-commit",
    "npm test >| .git/config",
    "npm test &> /etc/passwd",
    "npm test 2> x.log",
    "npm test > $y",
    "npm test < /etc/shadow",
    "npm test <> x",
    "> x",
    "npm test)",
    "npm test (",
    "npm test '",
    'npm test "',
    "npm test `",
    "npm test ${",
    "npm test $(",
    "npm test <<E",
    "busybox rm x",
    "cmd /c rm x",
    "watch rm x",
    "parallel rm ::: x",
    "su -c 'rm x'",
    "script -c 'rm x'",
    "chroot / rm x",
    "setsid rm x",
    "flock x rm y",
    "xargs -a y sh",
    "dd if=x of=.git/config",
    "tee .git/config",
    "cp x .git/hooks/y",
]


@pytest.mark.parametrize("command", _VECTORS)
def test_issue_4956_a_prefix_rule_does_not_allow_what_rides_along(here: Judging, command: str) -> None:
    for rules in (("Bash(npm test:*)",), ("Bash(npm test)", "Bash(npm:*)", "Bash(echo:*)")):
        assert here.bash(command, here.guard(*rules)).verdict == "ask"


def test_what_asks_is_refused_where_nobody_is_asked(here: Judging) -> None:
    guard = here.guard("Bash(npm test:*)", mode="dontAsk")
    assert {here.bash(command, guard).verdict for command in _VECTORS} == {"deny"}


def test_issue_28784_a_rule_for_cd_does_not_allow_what_follows(here: Judging) -> None:
    guard = here.guard("Bash(cd:*)")
    assert here.bash("cd src && rm x", guard).verdict == "ask"
    assert here.bash("cd / && cat etc/passwd", guard).verdict == "ask"
    assert here.bash("cd src && ls", guard).verdict == "allow"


def test_issue_58424_a_deny_rule_holds_in_every_part_of_a_compound(here: Judging) -> None:
    guard = here.guard("Bash", deny=("Bash(git push:*)",))
    for command in (
        "git push",
        "git add . && git push origin main",
        "(cd src; git push)",
        "true | git push",
        "echo $(git push)",
        "bash -c 'git push'",
        "timeout 9 git push",
        "'git' \"push\"",
        "/usr/bin/git push",
        "FOO=1 git push",
        "GIT push",
    ):
        assert here.bash(command, guard).verdict == "deny", command


def test_a_deny_rule_that_may_fit_asks(here: Judging) -> None:
    guard = here.guard("Bash", deny=("Bash(git push:*)",))
    for command in ("git $x", "$x push", "git p*", "xargs git", "curl x | sh"):
        assert here.bash(command, guard).verdict == "ask", command


def test_more_than_fifty_commands_do_not_outrun_the_deny_rules(here: Judging) -> None:
    many = " && ".join(["true"] * (MAX_COMMANDS + 1))
    guard = here.guard("Bash(true)", deny=("Bash(curl:*)",))
    assert here.bash(many, guard).verdict == "ask"
    assert here.bash(f"{many} && curl x", guard).verdict == "deny"
    assert here.bash(f"{many} && curl x", here.guard("Bash", deny=("Bash(curl:*)",))).verdict == "deny"


def test_issue_86667_a_deny_rule_is_not_evaded_by_a_wrapper(here: Judging) -> None:
    guard = here.guard("Bash", deny=("Bash(del:*)", "Bash(rm:*)"))
    for command in ("cmd /c del x", "cmd.exe /C del x", "env rm x", "busybox rm x", "xargs rm"):
        assert here.bash(command, guard).verdict == "deny", command


def test_commands_nested_without_end_ask(here: Judging) -> None:
    guard = here.guard("Bash(true)")
    assert here.bash("(" * 300 + "true" + ")" * 300, guard).verdict == "ask"
    assert here.bash("timeout 1 " * 50 + "true", guard).verdict == "ask"
    assert here.bash("true " + "x" * 70_000, guard).verdict == "ask"


# Path prefix


def test_cve_2025_54794_a_folder_is_not_one_whose_name_begins_alike(here: Judging) -> None:
    twin = here.project.parent / "proj-evil"
    twin.mkdir()
    (twin / "x").write_text("x", encoding="utf-8")
    guard = here.guard(mode="acceptEdits")
    assert here.file("Read", twin / "x", guard).verdict == "ask"
    assert here.file("Write", twin / "x", guard).verdict == "ask"
    assert here.bash(f"cat {twin}/x", guard).verdict == "ask"
    assert here.bash("cat ../proj-evil/x", guard).verdict == "ask"
    assert here.bash(f"rm {twin}/x", guard).verdict == "ask"


# Symlinks


def test_cve_2026_25724_a_deny_rule_sees_through_links(here: Judging) -> None:
    secrets = here.project / "secrets"
    secrets.mkdir()
    (secrets / "key").write_text("k", encoding="utf-8")
    (here.project / "plain").symlink_to(secrets)
    (here.project / "file").symlink_to(secrets / "key")
    guard = here.guard("Read", "Bash", deny=("Read(./secrets/**)",))
    for path in ("secrets/key", "plain/key", "file", "src/../secrets/key", "plain"):
        assert here.file("Read", path, guard).verdict == "deny", path
        assert here.bash(f"cat {path}", guard).verdict == "deny", path


def test_cve_2026_39861_a_planted_link_does_not_lead_writers_outside(here: Judging) -> None:
    outside = here.project.parent / "outside"
    outside.mkdir()
    (here.project / "link").symlink_to(outside)
    (here.project / "gone").symlink_to(outside / "not-there-yet")
    guard = here.guard(mode="acceptEdits")
    for path in ("link/x", "link/a/b/c", "gone", "link/../proj/../outside/x"):
        assert here.file("Write", path, guard).verdict == "ask", path
        assert here.bash(f"echo x > {path}", guard).verdict == "ask", path
    assert here.bash("touch link/x", guard).verdict == "ask"
    assert here.bash("mv link other", guard).verdict == "ask"


def test_a_name_that_is_moved_in_the_same_line_is_not_trusted(here: Judging) -> None:
    outside = here.project.parent / "outside"
    outside.mkdir()
    inner = here.project / "d"
    inner.mkdir()
    (inner / "link").symlink_to(outside)
    guard = here.guard(mode="acceptEdits")
    assert here.bash("mv d e && rm e/link/x", guard).verdict == "ask"
    assert here.bash("mv d e; cat e/link/x", guard).verdict == "ask"


def test_cve_2026_46406_a_fixed_place_in_tmp_is_outside(here: Judging) -> None:
    guard = here.guard(mode="acceptEdits")
    fixed = Path(tempfile.gettempdir()) / "claude" / "response.md"
    assert here.file("Write", fixed, guard).verdict == "ask"


def test_a_hard_link_is_not_written_through(here: Judging) -> None:
    outside = here.project.parent / "outside.txt"
    outside.write_text("x", encoding="utf-8")
    os.link(outside, here.project / "inside.txt")
    guard = here.guard(mode="acceptEdits")
    assert here.file("Edit", "inside.txt", guard).verdict == "ask"


@pytest.mark.parametrize("path", ["/proc/self/environ", "/proc/1/fd/0", "/dev/mem", "/proc/self/root/etc/passwd"])
def test_what_the_system_shows_of_programs_is_not_read(here: Judging, path: str) -> None:
    guard = here.guard("Bash(ls:*)")
    assert here.file("Read", path, guard).verdict == "ask"
    assert here.bash(f"cat {path}", guard).verdict == "ask"
    everywhere = PermissionChecker(guard.rules, "default", "/", ("/",))
    assert here.file("Read", path, everywhere).verdict == "ask"


# Protected places


@pytest.mark.parametrize(
    "path",
    [
        ".git/hooks/pre-commit",
        ".git/config",
        ".GIT/config",
        ".gIt/hooks/x",
        ".g\u200cit/config",
        ".git./config",
        "GIT~1/config",
        "sub/.git/config",
        ".claude/settings.json",
        ".claude/settings.local.json",
        ".Claude/settings.json",
        ".claude/agents/x.md",
        ".mcp.json",
        ".vscode/tasks.json",
        ".husky/pre-commit",
        ".gitmodules",
        ".envrc",
        "src/../.git/config",
        ".bashrc",
    ],
)
def test_protected_places_ask_in_every_mode_even_if_not_there_yet(here: Judging, path: str) -> None:
    for mode in ("default", "acceptEdits", "bypassPermissions"):
        guard = here.guard("Edit", mode=mode)
        assert here.file("Write", path, guard).verdict == "ask", mode
        assert here.bash(f"echo x > '{path}'", guard).verdict == "ask", mode
        assert here.bash(f"cp src/a.py '{path}'", guard).verdict == "ask", mode


def test_the_homes_own_files_are_protected(here: Judging) -> None:
    home = Path(os.environ["HOME"])
    guard = PermissionChecker(here.guard("Edit").rules, "acceptEdits", str(home), (str(home),))
    for name in (
        *(".bashrc", ".zshenv", ".profile", ".ssh/authorized_keys", ".ssh/config"),
        *(".config/fish/config.fish", ".local/bin/ls", ".gitconfig"),
        *(".claude/projects/x/y.jsonl", "steno/trust.json"),
    ):
        assert here.file("Write", home / name, guard).verdict == "ask", name
        assert here.bash(f"echo x >> ~/{name}", guard).verdict == "ask", name


def test_a_folder_made_to_look_like_a_repository_is_not_asked_for_its_status(here: Judging) -> None:
    assert here.bash("git status", here.guard()).verdict == "allow"
    fake = here.project / "src"
    for name in ("objects", "refs"):
        (fake / name).mkdir()
    (fake / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
    assert here.bash("cd src && git status", here.guard()).verdict == "ask"
    assert here.bash("cd src; git log", here.guard()).verdict == "ask"


def test_a_second_path_does_not_hide_the_one_that_counts(here: Judging) -> None:
    guard = here.guard(mode="acceptEdits")
    given = {"file_path": "src/a.ipynb", "notebook_path": "/etc/x.ipynb"}
    assert guard.judge("NotebookEdit", given, cwd=str(here.project)).verdict == "ask"


@pytest.mark.parametrize(
    "command",
    [
        *("grep -R x .", "rg -L x", "diff -r src other", "od -w /etc/shadow", "strings -o /etc/x"),
        *("git diff -M /etc/a /etc/b", "git diff --no-index src/a.py /etc/passwd", "git -C / log"),
        *("cat src/a.py /etc/passwd", "head -5 -- /etc/passwd", "cat < /etc/passwd", "cat -- -x /x"),
    ],
)
def test_reading_commands_do_not_read_elsewhere(here: Judging, command: str) -> None:
    assert here.bash(command, here.guard()).verdict == "ask"


@pytest.mark.parametrize(
    "command",
    [
        *("git clone -u ./evil host:x", "git clone -c core.sshCommand=x y", "git rebase -x evil"),
        *("git -calias.x=!evil x", "git grep -Ovi x", "git difftool -x evil", "git bisect run evil"),
        *("git submodule foreach evil", "git config alias.x '!evil'", "git push --receive-pack=evil"),
        *("git fetch --upload-pack evil", "git ls-remote ext::evil", "git $x"),
    ],
)
def test_a_rule_for_all_of_git_does_not_let_it_run_other_things(here: Judging, command: str) -> None:
    assert here.bash(command, here.guard("Bash(git:*)")).verdict == "ask"


def test_a_rule_for_all_of_git_allows_what_git_does(here: Judging) -> None:
    guard = here.guard("Bash(git:*)")
    for command in (
        *("git switch -c x", "git push -u origin main", "git clean -x", "git commit -c HEAD"),
        "git commit -m \"$(cat <<'EOF'\nsome words\nEOF\n)\"",
    ):
        assert here.bash(command, guard).verdict == "allow", command


@pytest.mark.parametrize("command", ["x 0<src/a.py", "x 0>src/b.py", "x 0<&1", "x a 0<&-"])
def test_a_descriptor_before_a_redirection_is_no_word(here: Judging, command: str) -> None:
    """The parser takes the 0 for a word, so a rule for `x 0` would let another command run."""
    assert here.bash(command, here.guard("Bash(x 0)", "Bash(x a 0)")).verdict == "ask"
    assert here.bash("x 0 < src/a.py", here.guard("Bash(x 0)")).verdict == "allow"


@pytest.mark.parametrize("deny", [("Read", "Read(.env)"), ("Read(.env)", "Read")])
def test_a_rule_for_a_path_holds_beside_one_for_every_call(here: Judging, deny: tuple[str, ...]) -> None:
    (here.project / ".env").write_text("x\n", encoding="utf-8")
    guard = here.guard(deny=deny, mode="bypassPermissions")
    assert here.bash("cat .env", guard).verdict == "deny"
    assert here.bash("git show HEAD:.env", guard).verdict == "ask"
