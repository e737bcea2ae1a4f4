"""Denied files by searches and copies under rules, and remote repositories on this machine."""

from typing import Final

from tests.security.permissions.attack import Attack, attack, denied, under

_SECRETS: Final = ("Read(./secrets/**)",)
_PRIVATE: Final = ("Read(./dir/private/**)",)
_KEY: Final = "mkdir dir/private; cp @outside@/notes.txt dir/private/key\n"
_COMMITTED: Final = _KEY + "git add -A; git commit -qm key\n"
_TAGGED: Final = _COMMITTED + "git tag blob $(git rev-parse HEAD:dir/private/key)\n"
_ELSEWHERE: Final = """
git init -q -b main @outside@/repo; cp @outside@/notes.txt @outside@/repo/notes.txt
git -C @outside@/repo add notes.txt; git -C @outside@/repo commit -qm notes
git -C @outside@/repo branch CANARYoutsideM3kQe
"""
_PROGRAM: Final = """
git remote add origin ./x; git config remote.origin.uploadpack @project@/marker.sh
"""
_FETCHED: Final = ("git fetch -q", "git show FETCH_HEAD")

# The value of an option is not the folder that is searched.
SEARCHES: Final[tuple[Attack, ...]] = (
    *under(
        "Bash(grep:*)",
        *denied(
            _SECRETS,
            attack("grep rule, value of -m", "reads", "grep -r -e CANARY -m 5"),
            attack("grep rule, value of -A", "reads", "grep -rh -A 1 CANARY"),
            attack("grep rule, value of --include", "reads", "grep -r --include '*.txt' CANARY"),
            attack("grep rule, values of two options", "reads", "grep -R -m 5 -C 1 CANARY"),
            attack("grep rule, pattern by option", "reads", "grep -rhe CANARY --max-count 3"),
        ),
    ),
    *under(
        "Bash(rg:*)",
        *denied(
            _SECRETS,
            attack("rg rule, value of -t", "reads", "rg CANARY -t txt", needs=("rg",)),
            attack("rg rule, value of -g", "reads", "rg -g '*.txt' CANARY", needs=("rg",)),
            attack("rg rule, value of -C", "reads", "rg -C 2 CANARY", needs=("rg",)),
            attack("rg rule, value of -r", "reads", "rg -r '$0' -e CANARY", needs=("rg",)),
        ),
    ),
    *under("Bash(awk:*)", *denied(_SECRETS, attack("awk rule, ARGV", "reads",
           "awk 'BEGIN { ARGV[1] = \"secrets/token.txt\"; ARGC = 2 } 1'"))),
    *under("Bash(date:*)", *denied(_SECRETS, attack("date rule, joined -f", "reads",
           "date -ufsecrets/token.txt"))),
    *under("Bash(file:*)", *denied(_SECRETS, attack("file rule, joined -f", "reads",
           "file -bfsecrets/token.txt", needs=("file",)))),
)  # fmt: skip

# Committed files under other names.
COPIES: Final[tuple[Attack, ...]] = (
    *denied(
        _PRIVATE,
        attack("git for-each-ref, object of a reference", "reads", "git for-each-ref --format='%(raw)'",
               _TAGGED),
        attack("git tag, object of a reference", "reads", "git tag -l --format='%(raw)'", _TAGGED),
        attack("git branch, object of a reference", "reads", "git branch --format='%(*raw) %(raw)'",
               _COMMITTED + "git update-ref refs/heads/b $(git rev-parse HEAD)", visible=False),
    ),
    *under(
        "Bash(git show:*)",
        *denied(
            _PRIVATE,
            attack("git show rule, -s of a file's tag", "reads", "git show -s blob", _TAGGED),
            attack("git show rule, --stat of a file's tag", "reads", "git show --stat blob", _TAGGED),
        ),
    ),
    *under("Bash(git tag:*)", *denied(_PRIVATE, attack("git tag rule, object of a reference", "reads",
           "git tag --format '%(raw)'", _TAGGED))),
    *under("Bash(git mv:*)", *denied(_PRIVATE, attack("git mv rule, folder above a denied one", "reads",
           ("git mv dir moved", "cat moved/private/key"), _COMMITTED))),
    *under(
        "Bash(git clone:*)",
        *denied(
            _PRIVATE,
            attack("git clone rule, copy of the project", "reads",
                   ("git clone -q . copy", "cat copy/dir/private/key"), _COMMITTED),
            attack("git clone rule, copy by a file address", "reads",
                   ("git clone -q file://@project@ copy", "cat copy/dir/private/key"), _COMMITTED),
        ),
        attack("git clone rule, folder outside", "writes", "git clone -q . @outside@/copy"),
    ),
    *under("Bash(git init:*)", attack("git init rule, folder outside", "writes", "git init -q @outside@/new")),
)  # fmt: skip

# git takes the first of several programs for a remote repository, so that none can replace it.
REMOTES: Final[tuple[Attack, ...]] = (
    *under(
        "Bash(git fetch:*)",
        attack("git fetch rule, program for a remote", "runs", "git fetch origin", _PROGRAM),
        attack("git fetch rule, remote outside", "reads", _FETCHED,
               _ELSEWHERE + "git remote add origin @outside@/repo"),
        attack("git fetch rule, remote outside by dots", "reads", _FETCHED,
               _ELSEWHERE + "git remote add origin ../outside/repo"),
        attack("git fetch rule, remote outside by a file address", "reads", _FETCHED,
               _ELSEWHERE + "git remote add origin file://@outside@/repo"),
        attack("git fetch rule, remote outside by insteadOf", "reads", _FETCHED, _ELSEWHERE +
               "git remote add origin https://x.invalid/y;"
               " git config url.@outside@/repo.insteadOf https://x.invalid/y"),
        attack("git fetch rule, remote outside by a branch", "reads", _FETCHED, _ELSEWHERE +
               "git config branch.main.remote @outside@/repo; git config branch.main.merge refs/heads/main"),
        attack("git fetch rule, remote outside by a link", "reads",
               ("git fetch -q away", "git show FETCH_HEAD"), _ELSEWHERE + "ln -s @outside@/repo away"),
        attack("git fetch rule, remote outside by a file of git", "reads",
               ("git fetch -q away", "git show FETCH_HEAD"), _ELSEWHERE +
               "mkdir -p .git/remotes; echo 'URL: @outside@/repo' > .git/remotes/away"),
        attack("git fetch rule, bundle outside", "reads", ("git fetch -q origin main", "git show FETCH_HEAD"),
               _ELSEWHERE + "git -C @outside@/repo bundle create -q ../b main; git remote add origin @outside@/b"),
        attack("git fetch rule, remote outside, timeout and quotes", "reads",
               ("timeout 9 g''it fetch -q --all", "git show FETCH_HEAD"),
               _ELSEWHERE + "git remote add origin @outside@/repo"),
    ),
    *under(
        "Bash(git ls-remote:*)",
        attack("git ls-remote rule, program for a remote", "runs", "git ls-remote origin", _PROGRAM),
        attack("git ls-remote rule, remote outside", "reads", "git ls-remote",
               _ELSEWHERE + "git remote add origin @outside@/repo"),
    ),
    *under("Bash(git remote:*)", attack("git remote rule, remote outside", "reads", "git remote show origin",
           _ELSEWHERE + "git remote add origin @outside@/repo")),
    *under("Bash(git pull:*)", attack("git pull rule, remote outside", "reads",
           ("git pull -q --no-rebase --allow-unrelated-histories --no-edit origin main", "cat notes.txt"),
           _ELSEWHERE + "git remote add origin @outside@/repo")),
    *under("Bash(npm run test:*)", attack("npm --ws", "runs", "npm run test --ws",
           """mkdir sub; echo '{"name": "sub", "scripts": {"test": "@project@/marker.sh"}}' > sub/package.json
           echo '{"name": "top", "workspaces": ["sub"]}' > package.json""", needs=("npm",))),
)  # fmt: skip

ATTACKS: Final = (*SEARCHES, *COPIES, *REMOTES)
