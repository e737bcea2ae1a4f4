"""Makes shell commands that only look, and puts harm into some of them at a place that it knows.

Whether there is harm in a command is known from how it was made, and not from reading it.
"""

from collections.abc import Callable
from typing import Final

from tests.permissions.commands import Made, Maker, in_a_document, in_a_holder, joined, remarked

# What anybody may let run in a project of their own without a second look.
LOOKS: Final = (
    *("ls", "ls -la src", "pwd", "cat src/a.py", "head -n 5 src/a.py", "tail -3 src/a.py"),
    *("wc -l src/a.py", "grep -n x src/a.py", "rg -n 'x y' src", "find . -name '*.py'"),
    *("git status", "git log --oneline -5", "git diff HEAD", "git show --stat", "git branch -a"),
    *("echo done", 'echo "it is $HOME"', "printf '%s\\n' x", "date", "whoami", "uname -a", "true"),
    *("sort src/a.py", "uniq src/a.py", "cut -d: -f1 src/a.py", "tr a b", "sed -n 1,5p src/a.py"),
    *("diff src/a.py src/b.py", "stat src/a.py", "file src/a.py", "du -sh src", "which python"),
    *("test -f src/a.py", "[ -d src ]", "[[ -f src/a.py ]]", "cd src", "basename src/a.py"),
    *("cat <<< words", "cat src/a.py 2>/dev/null", "ls nowhere 2>&1", "CI=1 git status"),
)
# What nobody has allowed: programs, switches, variables, files that are written or outside.
HARM: Final = (
    *("rm -rf build", "curl http://x -o y", "wget x", "python3 -c 'x()'", "node -e x", "perl -e x"),
    *("dd if=/dev/zero of=x", "mv src/a.py y", "cp src/a.py y", "touch x", "mkdir x", "ln -s / x"),
    *("chmod 777 src", "kill -9 1", "nc -l 1", "ssh host ls", "sudo ls", "make", "npm install x"),
    *("git push", "git commit -m x", "git checkout .", "git -c core.pager=sh log", "git clean -fd"),
    *("git diff --output=x", "git grep -Osh x", "git config alias.x y", "git --exec-path=. status"),
    *("find . -delete", "find . -exec rm {} +", "find . -fprint x", "find . -ok rm {} \\;"),
    *("sort -o x src/a.py", "sort --compress-program=sh src/a.py", "uniq src/a.py x"),
    *("sed -i s/a/b/ src/a.py", "sed -n 'w x' src/a.py", "sed '1e rm' src/a.py", "tree -o x"),
    *("rg --pre sh x", "rg x --hostname-bin sh", "fd x -x rm", "xargs rm", "tee x", "date -s 1"),
    *("awk 'BEGIN{system(\"x\")}'", "echo x > src/b.py", "cat src/a.py >> ~/.bashrc", "> x"),
    *("ls > .git/hooks/pre-commit", "echo x >| .git/config", "cat /etc/passwd", "cat ~/.ssh/id"),
    *("head -1 /proc/self/environ", "cat ../outside", "ls /root", "grep -r x /etc", "rg x /"),
    *("PATH=. ls", "LD_PRELOAD=./x ls", "GIT_SSH_COMMAND=x git status", "export PATH=.", "IFS=x"),
    *("./script", "bash script", ". ./x", "source x", 'eval "$x"', "exec sh", "sh", "$x", "`x`"),
    *("trap 'rm x' EXIT", "alias ls=rm", "hash -p ./x ls", "enable -f ./x y", "coproc rm x"),
    *("ls $(rm x)", 'echo "`rm x`"', "diff <(rm x) src/a.py", "[[ -v a[$(rm x)] ]]"),
    *("printf -v 'y[$(rm x)]' z", "read x < /etc/shadow", "echo ${x:=$(rm x)}", "((a[$(rm x)]))"),
    *("r\\m x", "'rm' x", "\\rm x", "r''m x", "$'\\x72m' x", "{rm,x}", "/bin/r? x", "command rm x"),
    *("busybox rm x", "env -S 'rm x'", "timeout 5 rm x", "nohup rm x", "parallel rm ::: x"),
)
_HARMFUL: Final = frozenset({"harm"})
_WRAPPERS: Final = ("time {}", "timeout 5 {}", "nice -n 3 {}", "command {}", "env CI=1 {}", "! {}")
_SHELLS: Final = ("bash -c {}", "sh -c {}", "eval {}")


class Planter(Maker):
    """A seeded maker of commands that look; `harm` is the share of those parts that do more."""

    def __init__(self, seed: int, harm: float) -> None:
        super().__init__(seed, plain=True)
        self.harm = harm

    def make(self, depth: int = 3) -> Made:
        if depth <= 0 or self.random.random() < 0.3:
            return self.simple(depth)
        return self.random.choice(_KINDS)(self, depth - 1)

    def simple(self, depth: int) -> Made:
        if self.random.random() < self.harm:
            return Made(self.random.choice(HARM), _HARMFUL)
        if depth > 0 and self.random.random() < 0.2:
            inner = self.make(depth - 1)
            if inner.one_line and "\n" not in inner.text:
                form = self.pick("echo $({})", 'echo "now: $({})"', 'printf "%s" "$({})"')
                return Made(form.replace("{}", inner.text), inner.runs)
        return Made(self.random.choice(LOOKS), frozenset())


def _wrapped(maker: Maker, _depth: int) -> Made:
    inner = maker.simple(0)
    # Only a program can stand behind another: not a test, a redirection or an assignment.
    if not inner.text[0].isalpha() or inner.text.split("=")[0].isupper() or " <" in inner.text:
        return inner
    return Made(maker.pick(*_WRAPPERS).replace("{}", inner.text), inner.runs)


def _scripted(maker: Maker, depth: int) -> Made:
    import shlex

    inner = maker.make(min(depth, 1))
    return Made(maker.pick(*_SHELLS).replace("{}", shlex.quote(inner.text)), inner.runs)


_KINDS: Final[tuple[Callable[[Maker, int], Made], ...]] = (
    *(joined, joined, joined, joined, in_a_holder, _wrapped, _scripted, in_a_document, remarked),
)
