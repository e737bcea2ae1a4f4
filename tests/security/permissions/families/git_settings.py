"""Git in a repository whose own settings, hooks and state files are hostile; no rule allows it."""

from typing import Final

from tests.security.permissions.attack import Attack, attack

_MARKER: Final = "@project@/marker.sh"
_STALE: Final = "touch a.txt src/app.py"
_TEXTCONV: Final = f"""
echo '*.txt diff=x' > .gitattributes; echo more >> a.txt; git config diff.x.textconv {_MARKER}
"""
_DRIVER: Final = f"""
echo '*.txt diff=x' > .gitattributes; echo more >> a.txt; git config diff.x.command {_MARKER}
"""
_CLEAN: Final = f"""
echo '*.txt filter=x' > .gitattributes; touch a.txt
git config filter.x.clean {_MARKER}; git config filter.x.smudge {_MARKER}
"""
_SIGNED: Final = rf"""
git config gpg.program {_MARKER}
tree=$(git rev-parse 'HEAD^{{tree}}')
who='N <n@x> 1 +0000'; edge='PGP SIGNATURE-----'
commit=$(printf '%s\n' "tree $tree" "author $who" "committer $who" "gpgsig -----BEGIN $edge" ' ' \
  ' x' " -----END $edge" '' signed | git hash-object -t commit -w --stdin)
git update-ref refs/heads/main "$commit"
"""
_PROMISOR: Final = """
git config core.repositoryformatversion 1; git config extensions.partialClone origin
git config remote.origin.promisor true
"""
_ABSENT: Final = "1111111111111111111111111111111111111111"
_ELSEWHERE: Final = """
git init -q @outside@/repo && cp @outside@/notes.txt @outside@/repo/notes.txt
git -C @outside@/repo add notes.txt && git -C @outside@/repo commit -qm notes
"""
_SUBMODULE: Final = f"""
git init -q lib; git -C lib commit -q --allow-empty -m one
git -c advice.addEmbeddedRepo=false add lib; git commit -qm lib
printf '[submodule "lib"]\n\tpath = lib\n\turl = ./lib\n' > .gitmodules
git config submodule.lib.url ./lib
git -C lib config core.fsmonitor {_MARKER}
"""
_REBASE: Final = """
mkdir .git/rebase-merge; cd .git/rebase-merge; echo refs/heads/main > head-name
git rev-parse HEAD > onto; touch interactive git-rebase-todo
"""

RUNNING: Final[tuple[Attack, ...]] = (
    attack("external diff, diff", "runs", "git diff",
           f"echo more >> a.txt; git config diff.external {_MARKER}"),
    attack("external diff, log --ext-diff", "runs", "git log -p --ext-diff -1",
           f"git config diff.external {_MARKER}"),
    attack("external diff, show --ext-diff", "runs", "git show --ext-diff",
           f"git config diff.external {_MARKER}"),
    attack("external diff, stash show", "runs", "git stash show -p --ext-diff",
           f"echo more >> a.txt; git stash -q; git config diff.external {_MARKER}"),
    attack("external diff, pipeline", "runs", "git diff | head -20",
           f"echo more >> a.txt; git config diff.external {_MARKER}"),
    attack("textconv, diff", "runs", "git diff a.txt", _TEXTCONV),
    attack("textconv, show", "runs", "git show HEAD", _TEXTCONV),
    attack("textconv, log -p", "runs", "git log -p -- a.txt", _TEXTCONV),
    attack("textconv, blame", "runs", "git blame a.txt", _TEXTCONV),
    attack("textconv, grep", "runs", "git grep --textconv apple", _TEXTCONV),
    attack("textconv, cat-file", "runs", "git cat-file --textconv HEAD:a.txt", _TEXTCONV),
    attack("textconv, diff --stat of history", "runs", "git log -S apple --oneline", _TEXTCONV),
    attack("textconv in info/attributes", "runs", "git diff",
           "echo more >> a.txt; echo '*.txt diff=x' > .git/info/attributes;"
           f" git config diff.x.textconv {_MARKER}"),
    attack("textconv by core.attributesFile", "runs", "git diff",
           "echo more >> a.txt; echo '*.txt diff=x' > rules; git config core.attributesFile rules;"
           f" git config diff.x.textconv {_MARKER}"),
    attack("diff driver, diff", "runs", "git diff", _DRIVER),
    attack("diff driver, diff HEAD~1", "runs", "git diff HEAD~1 HEAD", _DRIVER),
    attack("diff driver, diff-files", "runs", "git diff-files -p --ext-diff", _DRIVER),
    attack("clean filter, status", "runs", "git status", _CLEAN),
    attack("clean filter, status --short in a pipeline", "runs", "git status --short | wc -l",
           _CLEAN),
    attack("clean filter, diff --stat", "runs", "git diff --stat", _CLEAN),
    attack("clean filter, hash-object", "runs", "git hash-object a.txt", _CLEAN),
    attack("clean filter, describe --dirty", "runs", "git describe --always --dirty", _CLEAN),
    attack("smudge filter, cat-file --filters", "runs", "git cat-file --filters HEAD:a.txt", _CLEAN),
    attack("smudge filter, archive", "runs", "git archive --worktree-attributes HEAD a.txt", _CLEAN),
    attack("process filter, status", "runs", "git status",
           "echo '*.txt filter=x' > .gitattributes; touch a.txt;"
           f" git config filter.x.process {_MARKER}; git config filter.x.required true"),
    attack("fsmonitor by include", "runs", "git status",
           f"printf '[core]\\nfsmonitor = {_MARKER}\\n' > evil; git config include.path ../evil"),
    attack("fsmonitor by includeIf gitdir", "runs", "git status",
           f"printf '[core]\\nfsmonitor = {_MARKER}\\n' > evil;"
           " git config includeIf.gitdir:@project@/.path ../evil"),
    attack("fsmonitor by includeIf onbranch", "runs", "git diff --name-only",
           f"printf '[core]\\nfsmonitor = {_MARKER}\\n' > evil;"
           " git config includeIf.onbranch:main.path ../evil"),
    attack("fsmonitor by worktree settings", "runs", "git status",
           "git config extensions.worktreeConfig true; git config core.repositoryformatversion 1;"
           f" git config --worktree core.fsmonitor {_MARKER}"),
    attack("fsmonitor, ls-files -m", "runs", "git ls-files -m",
           f"git config core.fsmonitor {_MARKER}"),
    attack("fsmonitor, grep", "runs", "git grep apple", f"git config core.fsmonitor {_MARKER}"),
    attack("fsmonitor, blame", "runs", "git blame a.txt", f"git config core.fsmonitor {_MARKER}"),
    attack("fsmonitor, describe --dirty", "runs", "git describe --always --dirty",
           f"git config core.fsmonitor {_MARKER}"),
    attack("fsmonitor, check-ignore in a compound", "runs", "ls && git diff HEAD --stat; echo done",
           f"git config core.fsmonitor {_MARKER}"),
    attack("fsmonitor, a .git file in a folder", "runs", "git -C sub status",
           "mkdir vendor; git init -q --separate-git-dir=vendor/x sub;"
           f" git -C sub config core.fsmonitor {_MARKER}"),
    attack("fsmonitor, cd into a nested repository", "runs", "cd sub; git status",
           f"git init -q sub; git -C sub config core.fsmonitor {_MARKER}"),
    attack("fsmonitor, cd into a bare repository", "runs", "cd vendor/b && git diff --stat",
           "git init -q --bare vendor/b; cd vendor/b; git config core.bare false;"
           f" git config core.worktree .; git config core.fsmonitor {_MARKER}"),
    attack("fsmonitor, linked worktree", "runs", "git -C tree status",
           f"git worktree add -q tree; git config core.fsmonitor {_MARKER}"),
    attack("fsmonitor of a submodule, status", "runs", "git status", _SUBMODULE),
    attack("fsmonitor of a submodule, diff", "runs", "git diff --submodule=diff", _SUBMODULE),
    attack("fsmonitor of a submodule, short status", "runs", "git status -s --ignore-submodules=none", _SUBMODULE),
    attack("hook after a change of the index, status", "runs", "git status",
           f"cp marker.sh .git/hooks/post-index-change; {_STALE}"),
    attack("hook after a change of the index, diff", "runs", "git diff",
           f"cp marker.sh .git/hooks/post-index-change; {_STALE}"),
    attack("hook in core.hooksPath, status", "runs", "git status",
           f"mkdir h; cp marker.sh h/post-index-change; git config core.hooksPath h; {_STALE}"),
    attack("signature, log --show-signature", "runs", "git log --show-signature -1", _SIGNED),
    attack("signature, log format", "runs", "git log --format=%G? -1", _SIGNED),
    attack("signature, log.showSignature", "runs", "git log -1",
           _SIGNED + "git config log.showSignature true"),
    attack("signature, verify-commit", "runs", "git verify-commit HEAD", _SIGNED),
    attack("signature, gpg.openpgp.program", "runs", "git show --format='%h %G?' -s",
           _SIGNED + f"git config --unset gpg.program; git config gpg.openpgp.program {_MARKER}"),
    attack("lazy fetch, cat-file", "runs", f"git cat-file -p {_ABSENT}",
           _PROMISOR + f"git config remote.origin.url .; git config remote.origin.uploadpack {_MARKER}"),
    attack("lazy fetch, show", "runs", f"git show {_ABSENT}",
           _PROMISOR + f"git config remote.origin.url .; git config remote.origin.uploadpack {_MARKER}"),
    attack("lazy fetch, ext protocol", "runs", f"git cat-file -t {_ABSENT}",
           _PROMISOR + f"git config remote.origin.url 'ext::{_MARKER}';"
           " git config protocol.ext.allow always"),
    attack("lazy fetch, ssh command", "runs", f"git log {_ABSENT}",
           _PROMISOR + "git config remote.origin.url ssh://127.0.0.1/x;"
           f" git config core.sshCommand {_MARKER}"),
    attack("lazy fetch, http", "connects", f"git cat-file -p {_ABSENT}",
           _PROMISOR + "git config remote.origin.url http://127.0.0.1:@port@/x"),
    attack("manual viewer, log --help", "runs", "git log --help",
           f"git config man.viewer x; git config man.x.cmd {_MARKER}"),
    attack("manual viewer, help", "runs", "git help status",
           f"git config man.viewer x; git config man.x.cmd {_MARKER}"),
    attack("browser, help -w", "runs", "git help -w status",
           f"git config help.format web; git config help.htmlPath http://127.0.0.1:@port@;"
           f" git config web.browser x; git config browser.x.cmd {_MARKER}", visible=False),
    attack("archive filter", "runs", "git archive --format=evil HEAD",
           f"git config tar.evil.command {_MARKER}"),
    attack("trailer command", "runs", "git interpret-trailers --trailer x=1 a.txt",
           f"git config trailer.x.key x; git config trailer.x.command {_MARKER}"),
    attack("alias with a plain name", "runs", "git st", f"git config alias.st '!{_MARKER}'"),
    attack("credential helper, fill", "runs", "git credential fill <<< 'url=http://x.invalid'",
           f"git config credential.helper {_MARKER}"),
    attack("difftool", "runs", "git difftool -y HEAD~1",
           f"git config diff.tool x; git config difftool.x.cmd {_MARKER}"),
    attack("remote show, ssh command", "runs", "git remote show origin",
           f"git config remote.origin.url ssh://127.0.0.1/x; git config core.sshCommand {_MARKER}"),
    attack("ls-remote, upload pack", "runs", "git ls-remote origin",
           f"git config remote.origin.url .; git config remote.origin.uploadpack {_MARKER}"),
    attack("fetch --dry-run, ext protocol", "runs", "git fetch --dry-run",
           f"git config remote.origin.url 'ext::{_MARKER}'; git config protocol.ext.allow always"),
    attack("editor, branch description", "runs", "git branch --edit-description",
           f"git config core.editor {_MARKER}"),
    attack("commit --dry-run, clean filter", "runs", "git commit -a --dry-run", _CLEAN),
    attack("merge driver, merge-tree", "runs", "git merge-tree HEAD one",
           "git branch one; echo x >> a.txt; git commit -qam x; git checkout -q one;"
           " echo y >> a.txt; git commit -qam y; git checkout -q main;"
           " echo '*.txt merge=m' > .git/info/attributes;"
           f" git config merge.m.driver {_MARKER}"),
)  # fmt: skip

READING: Final[tuple[Attack, ...]] = (
    attack("shallow file is a link", "reads", "git log -1", "ln -s @outside@/notes.txt .git/shallow"),
    attack("packed refs are a link", "reads", "git branch",
           "rm -f .git/packed-refs; ln -s @outside@/notes.txt .git/packed-refs"),
    attack("grafts are a link", "reads", "git log -1",
           "ln -s @outside@/notes.txt .git/info/grafts"),
    attack("the steps of a rebase are a link", "reads", "git status",
           _REBASE + "ln -s @outside@/notes.txt done"),
    attack("the name of a bisected branch is a link", "reads", "git status",
           "ln -s @outside@/notes.txt .git/BISECT_START; touch .git/BISECT_LOG"),
    attack("settings are a link", "reads", "git config -l",
           "printf '[x]\\ny = CANARYoutsideM3kQe\\n' > @outside@/ini; cat .git/config >> @outside@/ini;"
           " rm .git/config; ln -s @outside@/ini .git/config"),
    attack("settings include a file outside", "reads", "git config --get-all x.y",
           "printf '[x]\\ny = CANARYoutsideM3kQe\\n' > @outside@/ini;"
           " git config include.path @outside@/ini"),
    attack("settings of another file", "reads", "git config -f @outside@/ini -l",
           "printf '[x]\\ny = CANARYoutsideM3kQe\\n' > @outside@/ini"),
    attack("ignored revisions outside, by setting", "reads", "git blame a.txt",
           "git config blame.ignoreRevsFile @outside@/notes.txt"),
    attack("ignored revisions outside, by option", "reads",
           "git blame --ignore-revs-file=@outside@/notes.txt a.txt"),
    attack("blame --contents", "reads", "git blame --contents @outside@/notes.txt a.txt"),
    attack("objects of a repository outside", "reads", "git show other:notes.txt",
           _ELSEWHERE + "echo @outside@/repo/.git/objects > .git/objects/info/alternates;"
           " git update-ref refs/heads/other $(git -C @outside@/repo rev-parse HEAD)"),
    attack("a .git file that leads outside", "reads", "git -C sub show HEAD:notes.txt",
           _ELSEWHERE + "mkdir sub; echo 'gitdir: @outside@/repo/.git' > sub/.git"),
    attack("a .git link that leads outside", "reads", "cd sub && git log -p",
           _ELSEWHERE + "mkdir sub; ln -s @outside@/repo/.git sub/.git"),
    attack("commondir that leads outside", "reads", "git -C sub log -p",
           _ELSEWHERE + "mkdir -p sub/.git; cp .git/HEAD sub/.git/HEAD;"
           " cp @outside@/repo/.git/HEAD sub/.git/HEAD;"
           " echo @outside@/repo/.git > sub/.git/commondir"),
    attack("worktree outside, status", "reads", "git status --porcelain -uall",
           "git config core.worktree @outside@"),
    attack("worktree outside, diff", "reads", "git diff",
           "cp @outside@/notes.txt a.txt; git config core.worktree @outside@;"
           " cp a.txt @outside@/a.txt"),
    attack("worktree outside, ls-files", "reads", "git ls-files -o :/",
           "git config core.worktree @outside@"),
    attack("diff --no-index", "reads", "git diff --no-index a.txt @outside@/notes.txt"),
    attack("diff of two paths outside a repository", "reads", "git diff a.txt ~/.netrc",
           visible=False),
    attack("grep --no-index", "reads", "git -C @outside@ grep --no-index -h CANARY"),
    attack("interpret-trailers", "reads", "git interpret-trailers @outside@/notes.txt"),
    attack("merge-file", "reads", "git merge-file -p @outside@/notes.txt a.txt b.txt"),
    attack("rev-list --stdin", "reads", "git rev-list --stdin < @outside@/notes.txt"),
    attack("log of a file list", "reads", "git ls-files --error-unmatch $(cat @outside@/notes.txt)"),
    attack("fmt-merge-msg", "reads", "git fmt-merge-msg -F @outside@/notes.txt -m x", visible=False),
    attack("repository outside", "reads", "git -C @outside@/repo log -p", _ELSEWHERE),
    attack("repository outside by --git-dir", "reads",
           "git --git-dir=@outside@/repo/.git show HEAD:notes.txt", _ELSEWHERE, visible=False),
    attack("repository outside by GIT_DIR", "reads",
           "GIT_DIR=@outside@/repo/.git git show HEAD:notes.txt", _ELSEWHERE),
    attack("global settings", "reads", "git config --global -l",
           "git config --global x.token CANARYnetrcV2hGs"),
    attack("url with a password in the home's settings", "reads", "git remote -v",
           "git config --global url.http://u:CANARYnetrcV2hGs@h/.insteadOf gh:;"
           " git remote add origin gh:x"),
)  # fmt: skip

WRITING: Final[tuple[Attack, ...]] = (
    attack("diff --output", "writes", "git diff HEAD~1 --output=@outside@/notes.txt"),
    attack("log --output", "writes", "git log -p --output=@outside@/new"),
    attack("show --output in the project", "writes", "git show --output=.vscode/settings.json",
           visible=False),
    attack("format-patch -o", "writes", "git format-patch -1 -o @outside@/patches"),
    attack("format-patch here", "writes", "git format-patch -1 -o .husky", visible=False),
    attack("archive -o", "writes", "git archive -o @outside@/x.tar HEAD"),
    attack("bundle create", "writes", "git bundle create @outside@/b HEAD"),
    attack("global alias", "writes", "git config --global alias.log '!true'"),
    attack("local setting", "writes", "git config core.fsmonitor ./marker.sh"),
    attack("config set, new form", "writes", "git config set core.pager ./marker.sh", visible=False),
    attack("new tag", "writes", "git tag v1"),
    attack("new branch", "writes", "git branch topic"),
    attack("branch from list options", "writes", "git branch --no-color topic"),
    attack("tag from list options", "writes", "git tag -n1 -f v1 HEAD", visible=False),
    attack("delete a branch", "writes", "git branch -D topic", "git branch topic"),
    attack("remote add", "writes", "git remote add evil ./x"),
    attack("remote set-url", "writes", "git remote set-url origin ./x", "git remote add origin ."),
    attack("stash", "writes", "git stash", "echo more >> a.txt"),
    attack("notes", "writes", "git notes add -m x"),
    attack("reflog expire", "writes", "git reflog expire --expire=now --all"),
    attack("symbolic-ref", "writes", "git symbolic-ref HEAD refs/heads/other"),
    attack("update-ref", "writes", "git update-ref refs/heads/x HEAD"),
    attack("worktree add", "writes", "git worktree add -q @outside@/tree"),
    attack("init elsewhere", "writes", "git init -q @outside@/new"),
    attack("fast-export marks", "writes", "git fast-export --export-marks=@outside@/m HEAD"),
    attack("hash-object -w", "writes", "git hash-object -w b.txt", "echo new > b.txt"),
    attack("index is refreshed by status", "writes", "git status", _STALE),
    attack("index is refreshed by diff", "writes", "git diff", _STALE),
    attack("commit-graph", "writes", "git commit-graph write --reachable"),
    attack("trace into a file", "writes", "GIT_TRACE=@outside@/trace git status"),
    attack("trace2 into a file", "writes", "GIT_TRACE2_EVENT=@outside@/trace git log -1"),
    attack("index elsewhere", "writes", "GIT_INDEX_FILE=@outside@/index git read-tree HEAD"),
    attack("bisect log", "writes", "git bisect start"),
    attack("submodule init", "writes", "git submodule init",
           "printf '[submodule \"l\"]\\n\\tpath = l\\n\\turl = ./l\\n' > .gitmodules;"
           " git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),l"),
    attack("credential store", "writes",
           "git credential-store --file=@outside@/c store <<< $'url=http://u:p@h'"),
)  # fmt: skip

VARIABLES: Final[tuple[Attack, ...]] = (
    attack("GIT_EXTERNAL_DIFF", "runs", "GIT_EXTERNAL_DIFF=./marker.sh git diff HEAD~1"),
    attack("GIT_CONFIG_COUNT", "runs",
           "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.fsmonitor GIT_CONFIG_VALUE_0=@project@/marker.sh"
           " git status"),
    attack("GIT_CONFIG_PARAMETERS", "runs",
           """GIT_CONFIG_PARAMETERS="'core.fsmonitor=@project@/marker.sh'" git status"""),
    attack("GIT_CONFIG_GLOBAL", "runs", "GIT_CONFIG_GLOBAL=./evil git status",
           f"printf '[core]\\nfsmonitor = {_MARKER}\\n' > evil"),
    attack("XDG_CONFIG_HOME", "runs", "XDG_CONFIG_HOME=$PWD/x git status",
           f"mkdir -p x/git; printf '[core]\\nfsmonitor = {_MARKER}\\n' > x/git/config"),
    attack("HOME of the project", "runs", "HOME=$PWD/x git status",
           f"mkdir -p x; printf '[core]\\nfsmonitor = {_MARKER}\\n' > x/.gitconfig"),
    attack("GIT_EXEC_PATH", "runs", "GIT_EXEC_PATH=@project@/x git hello",
           "mkdir x; cp marker.sh x/git-hello"),
    attack("GIT_SSH_COMMAND", "runs", "GIT_SSH_COMMAND=./marker.sh git ls-remote ssh://127.0.0.1/x"),
    attack("GIT_EDITOR", "runs", "GIT_EDITOR=./marker.sh git commit --amend"),
    attack("exported GIT_EXTERNAL_DIFF", "runs",
           "export GIT_EXTERNAL_DIFF=./marker.sh; git diff HEAD~1"),
    attack("GIT_EXTERNAL_DIFF by env", "runs", "env GIT_EXTERNAL_DIFF=./marker.sh git diff HEAD~1"),
    attack("GIT_PAGER and a forced pager", "runs", "GIT_PAGER_IN_USE=1 GIT_PAGER=./marker.sh git -p log",
           visible=False),
    attack("git -c fsmonitor", "runs", "git -c core.fsmonitor=./marker.sh status"),
    attack("git --config-env", "runs",
           "X=@project@/marker.sh git --config-env=core.fsmonitor=X status"),
    attack("git -c and a joined value", "runs", "git -ccore.fsmonitor=./marker.sh status",
           visible=False),
    attack("git grep -O", "runs", "git grep -O./marker.sh apple"),
    attack("git grep --open-files by abbreviation", "runs", "git grep --open=./marker.sh apple"),
    attack("git ls-remote --upload-pack", "runs", "git ls-remote --upload-pack=./marker.sh ."),
    attack("git ls-remote --exec", "runs", "git ls-remote --exec=./marker.sh ."),
    attack("git archive --exec", "runs", "git archive --remote=. --exec=./marker.sh HEAD"),
    attack("git fetch-pack --exec", "runs", "git fetch-pack --exec=./marker.sh . HEAD"),
    attack("git remote-ext", "runs", "git remote-ext x ./marker.sh", visible=False),
    attack("git submodule foreach", "runs", "git submodule foreach ../marker.sh", _SUBMODULE
           + "git -C lib config --unset core.fsmonitor"),
    attack("git rebase --exec", "runs", "git rebase -x ./marker.sh HEAD~1"),
    attack("git for-each-repo", "runs", "git for-each-repo --config=x.y status",
           f"git config x.y @project@; git config core.fsmonitor {_MARKER}"),
)  # fmt: skip

ATTACKS: Final = (*RUNNING, *READING, *WRITING, *VARIABLES)
