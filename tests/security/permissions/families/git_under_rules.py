"""Git in a hostile repository, allowed by a rule for the subcommand: `Bash(git diff:*)`."""

from typing import Final

from tests.security.permissions.attack import Attack, attack, denied, under

_MARKER: Final = "@project@/marker.sh"
_TEXTCONV: Final = f"""
echo '*.txt diff=x' > .gitattributes; echo more >> a.txt; git config diff.x.textconv {_MARKER}
"""
_CLEAN: Final = f"echo '*.txt filter=x' > .gitattributes; touch a.txt; git config filter.x.clean {_MARKER}\n"
_NESTED: Final = f"""
git init -q sub; cd sub; echo '* filter=x' > .gitattributes; echo 1 > f; git add .; git commit -qm one
touch f; git config filter.x.clean {_MARKER}
"""
_SUBMODULE: Final = """
git init -q lib; echo one > lib/l.txt; git -C lib add l.txt; git -C lib commit -qm one
git -c advice.addEmbeddedRepo=false add lib; git commit -qm lib
printf '[submodule "lib"]\n\tpath = lib\n\turl = ./lib\n' > .gitmodules; git config submodule.lib.url ./lib
"""
_DIRTY: Final = f"""
echo '* filter=x' > lib/.gitattributes; git -C lib config filter.x.clean {_MARKER}; touch lib/l.txt
"""
_ELSEWHERE: Final = """
git init -q @outside@/repo && cp @outside@/notes.txt @outside@/repo/notes.txt
git -C @outside@/repo add notes.txt && git -C @outside@/repo commit -qm notes
"""
_WORKTREE: Final = "git config core.worktree @outside@\n"
_REBASE: Final = """
mkdir .git/rebase-merge; cd .git/rebase-merge; echo refs/heads/main > head-name
git rev-parse HEAD > onto; git rev-parse HEAD > orig-head; touch interactive done; echo 1 > msgnum
echo 1 > end
"""
_TODO: Final = _REBASE + "echo 'exec ./marker.sh' | tee git-rebase-todo > git-rebase-todo.backup\n"
_LOCAL: Final = "git init -q --bare evil.git; cp marker.sh evil.git/hooks/pre-receive\n"

RUNNING: Final[tuple[Attack, ...]] = (
    *under(
        "Bash(git diff:*)",
        attack("git diff rule, name in quotes", "runs", "g''it diff", _TEXTCONV),
        attack("git diff rule, name with an escape", "runs", "g\\it diff", _TEXTCONV),
        attack("git diff rule, name in double quotes and letters", "runs", 'gi"t" diff', _TEXTCONV),
        attack("git diff rule, through timeout and quotes", "runs", "timeout 9 gi't' diff", _TEXTCONV),
        attack("git diff rule, name by env", "runs", "env g''it diff", _TEXTCONV),
        attack("git diff rule, thousands of settings", "runs", "git diff", _TEXTCONV +
               '{ for i in $(seq 2100); do echo "[alias] a$i = log"; done; cat .git/config; } > c;'
               " mv c .git/config"),
        attack("git diff rule, one setting thousands of times", "runs", "git diff", _TEXTCONV +
               "{ for i in $(seq 2100); do echo '[alias] a = log'; done; cat .git/config; } > c;"
               " mv c .git/config"),
        attack("git diff rule, setting in a file that is included", "runs", "git diff",
               "echo '*.txt diff=x' > .gitattributes; echo more >> a.txt;"
               f" printf '[diff \"x\"]\\ntextconv = {_MARKER}\\n' > evil; git config include.path ../evil"),
        attack("git diff rule, driver with an odd name", "runs", "git diff",
               "echo '*.txt diff=A.b.C' > .gitattributes; echo more >> a.txt;"
               f" git config diff.A.b.C.textconv {_MARKER}"),
        attack("git diff rule, textconv of a submodule", "runs", "git diff HEAD", _SUBMODULE +
               f"echo '* diff=x' > lib/.gitattributes; git -C lib config diff.x.textconv {_MARKER};"
               " echo n >> lib/l.txt; git -C lib commit -qam two; git config diff.submodule diff"),
        attack("git diff rule, --submodule", "runs", "git diff --submodule=diff HEAD", _SUBMODULE +
               f"echo '* diff=x' > lib/.gitattributes; git -C lib config diff.x.textconv {_MARKER};"
               " echo n >> lib/l.txt; git -C lib commit -qam two"),
        attack("git diff rule, submodule not ignored", "runs", "git diff",
               _SUBMODULE + _DIRTY + "git config submodule.lib.ignore none"),
        attack("git diff rule, --ignore-submodules", "runs", "git diff --ignore-submodules=none",
               _SUBMODULE + _DIRTY),
        attack("git diff rule, pipeline and quotes", "runs", "g''it diff | head -3", _TEXTCONV),
        attack("git diff rule, glob behind an option", "writes", "git diff -S *",
               "touch -- --a --output=evil", visible=False),
    ),
    *under("Bash(git -C sub:*)", attack("git -C rule, clean filter", "runs", "git -C sub status", _NESTED)),
    *under("Bash(git -C sub diff:*)", attack("git -C rule, textconv", "runs", "git -C sub diff",
           "git init -q sub; cd sub; echo 1 > a.txt; git add .; git commit -qm one\n" + _TEXTCONV)),
    *under(
        "Bash(git status:*)",
        attack("git status rule, name in quotes", "runs", "'git' status; g''it status", _CLEAN),
        attack("git status rule, submodule in .gitmodules", "runs", "git status",
               _SUBMODULE + _DIRTY + "printf '\\tignore = none\\n' >> .gitmodules"),
        attack("git status rule, --ignore-submodules", "runs", "git status --ignore-submodules=none",
               _SUBMODULE + _DIRTY),
        attack("git status rule, many moves", "runs",
               "cd src; cd ..; cd src; cd ..; cd sub; git status", _NESTED, allow=("Bash(cd:*)",)),
        attack("git status rule, moves in a loop", "runs", "for x in sub; do cd $x; git status; done",
               _NESTED, allow=("Bash(cd:*)",)),
        attack("git status rule, pushd", "runs", "pushd sub; git status", _NESTED, allow=("Bash(pushd:*)",)),
        attack("git status rule, settings that take long", "runs", "git status", _CLEAN +
               "mkfifo .git/slow; printf '[include]\\n\\tpath = slow\\n' >> .git/config", visible=False),
    ),
    *under(
        "Bash(git push:*)",
        attack("git push rule, hook of a repository here", "runs", "git push origin HEAD:refs/heads/x",
               _LOCAL + "git remote add origin ./evil.git"),
        attack("git push rule, hook by an absolute address", "runs", "git push origin HEAD:refs/heads/x",
               _LOCAL + "git remote add origin file://@project@/evil.git"),
        attack("git push rule, address by pushInsteadOf", "runs", "git push origin HEAD:refs/heads/x",
               _LOCAL + "git remote add origin https://x.invalid/y;"
               " git config url.@project@/evil.git.pushInsteadOf https://x.invalid/y"),
        attack("git push rule, address by pushurl", "runs", "git pu''sh origin HEAD:refs/heads/x",
               _LOCAL + "git remote add origin https://x.invalid/y;"
               " git config remote.origin.pushurl ./evil.git"),
        attack("git push rule, path", "runs", "git push ./evil.git HEAD:refs/heads/x", _LOCAL),
    ),
    *under(
        "Bash(git rebase:*)",
        attack("git rebase rule, planted list", "runs", "git rebase --continue", _TODO),
        attack("git rebase rule, planted list, skip", "runs", "git rebase --skip", _TODO),
        attack("git rebase rule, planted list, short", "runs", "git rebase --continue",
               _REBASE + "printf '  x ./marker.sh\\n' | tee git-rebase-todo > git-rebase-todo.backup"),
    ),
)  # fmt: skip

REACHING: Final[tuple[Attack, ...]] = (
    *under(
        "Bash(git diff:*)",
        attack("git diff rule, work tree outside", "reads", "git diff",
               "cp @outside@/notes.txt a.txt\n" + _WORKTREE + "cp a.txt @outside@/a.txt"),
        attack("git diff rule, two paths", "reads", "git diff a.txt @outside@/notes.txt"),
        attack("git diff rule, a path and nothing", "reads", "git diff /dev/null @outside@/notes.txt"),
        attack("git diff rule, paths by dots", "reads", "git diff a.txt ../outside/notes.txt"),
        attack("git diff rule, paths by home", "reads", "git diff a.txt ~/.netrc"),
        attack("git diff rule, paths through a link", "reads", "git diff ./a.txt ./away/notes.txt",
               "ln -s @outside@ away", visible=False),
        attack("git diff rule, work tree is the root", "reads", "git diff",
               "cp @outside@/notes.txt a.txt; git config core.worktree @outside@/..;"
               " cp a.txt @outside@/../a.txt", visible=False),
    ),
    *under(
        "Bash(git log:*)",
        attack("git log rule, .git file outside", "reads", "git log -p",
               _ELSEWHERE + "rm -rf .git; echo 'gitdir: @outside@/repo/.git' > .git"),
        attack("git log rule, .git link outside", "reads", "git log -p",
               _ELSEWHERE + "rm -rf .git; ln -s @outside@/repo/.git .git"),
        attack("git log rule, shared repository outside", "reads", "git log -p",
               _ELSEWHERE + "cp @outside@/repo/.git/HEAD .git/HEAD; echo @outside@/repo/.git > .git/commondir"),
        attack("git log rule, objects outside", "reads", "git log -p other",
               _ELSEWHERE + "echo @outside@/repo/.git/objects > .git/objects/info/alternates;"
               " git update-ref refs/heads/other $(git -C @outside@/repo rev-parse HEAD)"),
        attack("git log rule, folder of objects is a link", "reads", "git log -p",
               _ELSEWHERE + "rm -rf .git/objects .git/refs/heads .git/packed-refs;"
               " ln -s @outside@/repo/.git/objects .git/objects;"
               " ln -s @outside@/repo/.git/refs/heads .git/refs/heads;"
               " cp @outside@/repo/.git/HEAD .git/HEAD"),
        attack("git log rule, shallow file is a link", "reads", "git log -1",
               "ln -s @outside@/notes.txt .git/shallow"),
        attack("git log rule, packed refs are a link", "reads", "git log -1",
               "rm -f .git/packed-refs; ln -s @outside@/notes.txt .git/packed-refs"),
        attack("git log rule, another folder's repository", "reads", "cd sub && git log -p",
               _ELSEWHERE + "mkdir sub; echo 'gitdir: @outside@/repo/.git' > sub/.git"),
    ),
    *under(
        "Bash(git status:*)",
        attack("git status rule, work tree outside", "reads", "git status --porcelain -uall", _WORKTREE),
        attack("git status rule, steps of a rebase are a link", "reads", "git status",
               _REBASE + "touch git-rebase-todo; rm done; ln -s @outside@/notes.txt done"),
        attack("git status rule, shallow file is a link", "reads", "git status",
               "ln -s @outside@/notes.txt .git/shallow"),
    ),
    *under(
        "Bash(git blame:*)",
        attack("git blame rule, revisions by setting", "reads", "git blame a.txt",
               "git config blame.ignoreRevsFile @outside@/notes.txt"),
        attack("git blame rule, revisions by option", "reads",
               "git blame --ignore-revs-file=@outside@/notes.txt a.txt"),
        attack("git blame rule, revisions by option and word", "reads",
               "git blame --ignore-revs-file @outside@/notes.txt a.txt"),
        attack("git blame rule, -S", "reads", "git blame -S @outside@/notes.txt a.txt"),
        attack("git blame rule, -S joined", "reads", "git blame -S@outside@/notes.txt a.txt"),
    ),
    *under(
        "Bash(git commit:*)",
        attack("git commit rule, message of a file", "reads",
               ("git commit -q --allow-empty -F @outside@/notes.txt", "git log -1")),
        attack("git commit rule, message of a file, joined", "reads",
               ("git commit -q --allow-empty -F@outside@/notes.txt", "git log -1")),
        attack("git commit rule, message of a file by name", "reads",
               ("git commit -q --allow-empty --file=../outside/notes.txt", "git log -1")),
        attack("git commit rule, template", "reads",
               ("git commit -q --allow-empty -t @outside@/notes.txt --no-edit", "git log -1"), visible=False),
        attack("git commit rule, message through a link", "reads",
               ("git commit -q --allow-empty -F ./away", "git log -1"), "ln -s @outside@/notes.txt away"),
    ),
    *under("Bash(git tag:*)", attack("git tag rule, message of a file", "reads",
           ("git tag t -F @outside@/notes.txt", "git show t"))),
    *under("Bash(git notes:*)", attack("git notes rule, message of a file", "reads",
           ("git notes add -F @outside@/notes.txt", "git log -1"))),
    *under(
        "Bash(git add:*)",
        attack("git add rule, work tree outside", "reads", ("git add -A", "git show :notes.txt"), _WORKTREE),
        attack("git add rule, names from a file", "reads",
               "git add --pathspec-from-file @outside@/notes.txt"),
    ),
    *under("Bash(git hash-object:*)", attack("git hash-object rule, a file outside", "reads",
           ("git hash-object -w @outside@/notes.txt",
            "git cat-file -p $(git hash-object @outside@/notes.txt)"))),
    *under("Bash(git ls-files:*)",
           attack("git ls-files rule, work tree outside", "reads", "git ls-files -o :/", _WORKTREE),
           attack("git ls-files rule, patterns outside", "reads",
                  "git ls-files --exclude-from=@outside@/notes.txt -o", visible=False)),
    *under("Bash(git format-patch:*)", attack("git format-patch rule, signature", "reads",
           "git format-patch --stdout -1", "git config format.signatureFile @outside@/notes.txt")),
    *under("Bash(git checkout:*)",
           attack("git checkout rule, work tree outside", "writes", "git checkout -- a.txt", _WORKTREE),
           attack("git checkout rule, names from a file", "reads",
                  "git checkout --pathspec-from=@outside@/notes.txt")),
    *under("Bash(git restore:*)", attack("git restore rule, work tree outside", "writes",
           "git restore .", _WORKTREE)),
    *under("Bash(git stash:*)", attack("git stash rule, work tree outside", "writes", "git stash",
           _WORKTREE + "cp a.txt @outside@/; echo x >> @outside@/a.txt")),
    *under("Bash(git clean:*)", attack("git clean rule, work tree outside", "writes", "git clean -fdq",
           _WORKTREE)),
    *under("Bash(git reset:*)", attack("git reset rule, work tree outside", "writes",
           "git reset -q --hard", _WORKTREE)),
    *under("Bash(git apply:*)", attack("git apply rule, a patch outside", "reads",
           "git apply @outside@/notes.txt -v --check; git apply --stat @outside@/notes.txt", visible=False)),
    *under(
        "Bash(git diff:*)",
        *denied(
            ("Read(.env)",),
            attack("git diff rule, denied, name in quotes", "reads", "g''it diff HEAD~1 HEAD --no-renames",
                   "echo x >> .env; git commit -qam more"),
            attack("git diff rule, denied, work tree", "reads", "git diff --no-index /dev/null .env"),
        ),
    ),
)  # fmt: skip

ATTACKS: Final = (*RUNNING, *REACHING)
