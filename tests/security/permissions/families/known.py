"""Attacks that once worked."""

from typing import Final

from tests.security.permissions.attack import Attack, attack, denied, under

_BARE: Final = """
git init -q --bare vendor/lib && git -C vendor/lib config core.fsmonitor @project@/marker.sh
git -C vendor/lib config core.bare false && git -C vendor/lib config core.worktree ..
"""
_PLANTED: Final = "git config core.fsmonitor @project@/marker.sh"
_DOTENV: Final = ("Read(.env)",)

PLAIN: Final[tuple[Attack, ...]] = (
    attack("embedded bare repository, status", "runs", "git -C vendor/lib status", _BARE),
    attack("embedded bare repository, diff", "runs", "git -C vendor/lib diff", _BARE),
    attack("embedded bare repository, cd", "runs", "cd vendor/lib && git status", _BARE),
    attack("unpacked repository, status", "runs", "git status", _PLANTED),
    attack("unpacked repository, diff", "runs", "git diff", _PLANTED),
    attack("xargs takes its words from a file", "reads", "xargs -a @outside@/notes.txt"),
    attack("xargs -ra", "reads", "xargs -ra@outside@/notes.txt"),
    attack("strings takes options from a file", "reads", "strings @@home@/.aws/credentials",
           needs=("strings",)),
    attack("find lists a folder of secrets", "reads", "find -P ~/.ssh -ls"),
    attack("echo shows names", "reads", "echo ~/.ssh/*"),
    attack("ps shows environments", "reads", "ps axeww", needs=("ps",)),
    attack("ps of one process", "reads", "ps eww -p @sibling@", needs=("ps",)),
    attack("copy onto a committed link", "writes", "cp a.txt notes.txt dir",
           "echo evil > notes.txt; ln -s @outside@/notes.txt dir/notes.txt"),
)  # fmt: skip
PAST_DENY: Final[tuple[Attack, ...]] = denied(
    _DOTENV,
    attack("xargs -ra.env", "reads", "xargs -ra.env"),
    attack("diff -N", "reads", "diff -N . src"),
    attack("diff -r two folders", "reads", "diff -rN . dir"),
    attack("git status -vv", "reads", "git status -vv", "echo more >> .env; git add .env"),
    attack("git log -p", "reads", "git log -p"),
    attack("git show of a file", "reads", "git show HEAD:.env"),
    attack("grep -r", "reads", 'grep -r "" .'),
    *under("Bash(cat:*)", attack("cat through /proc/self/cwd", "reads", "cat /proc/self/cwd/.env")),
)
RULES: Final[tuple[Attack, ...]] = (
    *under(
        "Bash(npm run test:*)",
        attack("npm -script-shell", "runs", "npm run test -script-shell ./marker.sh",
               needs=("npm",)),
        attack("npm --script-shell=", "runs", "npm run test --script-shell=@project@/marker.sh",
               needs=("npm",)),
        attack("npm --userconfig", "runs", "npm run test --userconfig=./rc",
               "echo script-shell=@project@/marker.sh > rc", needs=("npm",)),
        attack("npm -C", "runs", "npm run test -C sub",
               """mkdir sub; echo '{"scripts": {"test": "@project@/marker.sh"}}' > sub/package.json""",
               needs=("npm",)),
    ),
    *under(
        "Bash(make test:*)",
        attack("make -E", "runs", "make test -E '$(shell ./marker.sh)'", needs=("make",)),
        attack("make X!=", "runs", "make test 'X!=./marker.sh'", needs=("make",)),
        attack("make -f", "runs", "make test -f other.mk",
               "printf 'test:\\n\\t./marker.sh\\n' > other.mk", needs=("make",)),
        attack("make -C", "runs", "make test -C sub",
               "mkdir sub; printf 'test:\\n\\t../marker.sh\\n' > sub/Makefile", needs=("make",)),
        attack("make SHELL=", "runs", "make test SHELL=./marker.sh", needs=("make",)),
    ),
    *under(
        "Bash(git grep:*)",
        attack("git grep -nO", "runs", "git grep -nO./marker.sh apple"),
        attack("git grep --open-files-in-pager", "runs",
               "git grep --open-files-in-pager=./marker.sh apple"),
    ),
    *under(
        "Bash(git clone:*)",
        attack("git clone -qu", "runs", "git clone -qu./marker.sh . copy"),
        attack("git clone -c", "runs", "git clone -q -c core.hooksPath=@project@/tools . copy",
               "mkdir tools; cp marker.sh tools/post-checkout"),
        attack("git clone ext::", "runs", "git clone 'ext::./marker.sh' copy -c protocol.ext.allow=always"),
        attack("git clone --separate-git-dir", "writes",
               "git clone -q --separate-git-dir=@outside@/copy.git . copy"),
    ),
    *under(
        "Bash(git:*)",
        attack("git -c alias", "runs", "git -c alias.x='!./marker.sh' x"),
        attack("git -C and a planted setting", "runs", "git -C vendor/lib status", _BARE),
        attack("git --exec-path", "runs", "git --exec-path=@project@/tools hello",
               "mkdir tools; cp marker.sh tools/git-hello"),
        attack("git bisect run", "runs",
               "git bisect start HEAD HEAD~1 && git bisect run ./marker.sh",
               "git commit -q --allow-empty -m three"),
    ),
    *under(
        "Bash(tar:*)",
        attack("tar I", "runs", "tar cIf ./marker.sh x.tar a.txt"),
        attack("tar --checkpoint-action", "runs",
               "tar cf x.tar --checkpoint=1 --checkpoint-action=exec=./marker.sh a.txt"),
        attack("tar --to-command", "runs", "tar xf x.tar --to-command=./marker.sh", "tar cf x.tar a.txt"),
        attack("tar -C outside", "writes", "tar xf x.tar -C @outside@", "tar cf x.tar a.txt"),
        attack("tar -P", "writes", "tar xPf x.tar",
               "echo evil > @outside@/new.txt; tar cPf x.tar @outside@/new.txt; rm @outside@/new.txt"),
    ),
    *under(
        "Bash(sqlite3 db:*)",
        attack("sqlite3 edit", "runs", """sqlite3 db "select edit('x', './marker.sh')\"""",
               needs=("sqlite3",)),
        attack("sqlite3 writefile", "writes",
               """sqlite3 db "select writefile('@outside@/new.txt', 'evil')\"""", needs=("sqlite3",)),
        attack("sqlite3 vacuum into", "writes",
               """sqlite3 db "vacuum into '@outside@/copy.db'\"""",
               "sqlite3 db 'create table x(y)'", needs=("sqlite3",)),
        attack("sqlite3 .shell", "runs", "sqlite3 db '.shell ./marker.sh'", needs=("sqlite3",)),
        attack("sqlite3 readfile", "reads",
               """sqlite3 db "select readfile('@outside@/notes.txt')\"""", needs=("sqlite3",)),
    ),
    *under(
        "Bash(curl:*)",
        attack("curl --libcurl", "writes", "curl --libcurl @outside@/x.c file:///dev/null",
               needs=("curl",)),
        attack("curl --trace", "writes", "curl -s --trace @outside@/trace file:///dev/null",
               needs=("curl",)),
        attack("curl -K", "reads", "curl -s -K rc",
               "echo 'url = \"file://@home@/.ssh/id_rsa\"' > rc", needs=("curl",)),
        attack("curl file:", "reads", "curl -s file://@outside@/notes.txt", needs=("curl",)),
    ),
    *under(
        "Bash(go test:*)",
        attack("go test --exec", "runs", "go test --exec ./marker.sh ./...", needs=("go",)),
        attack("go test -toolexec", "runs", "go test -toolexec ./marker.sh ./...", needs=("go",)),
        attack("go -C", "runs", "go test -C sub ./...", needs=("go",)),
    ),
)  # fmt: skip

ATTACKS: Final = (*PLAIN, *PAST_DENY, *RULES)
