"""Ways to run a command confined: each mechanism, as an administrator and as another user."""

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

import steno
from steno.permissions.sandbox.policy import SandboxPolicy

MECHANISMS = ("both", "namespaces", "landlock", "landlock-4", "landlock-1")
NOBODY = 65534
ENV = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
_DRIVER = Path(__file__).with_name("driver.py")


class Done(msgspec.Struct):
    """What came of a command."""

    code: int | None = None
    out: str = ""
    err: str = ""
    error: str = ""
    """Why it was not run."""


class Box:
    """A process that runs commands as one user, with one mechanism."""

    def __init__(self, mechanism: str, user: int, python: str) -> None:
        self.mechanism = mechanism
        self.user = user
        self.home = Path(tempfile.mkdtemp(prefix="steno-box-"))
        self.home.chmod(0o755)
        source = Path(steno.__file__ or "").parent.parent
        packages = Path(msgspec.__file__ or "").parent.parent
        as_user: dict[str, Any] = {}
        if user != os.geteuid():
            as_user = {"user": user, "group": user, "extra_groups": ()}
            os.chown(self.home, user, user)
        self._process = subprocess.Popen(
            [python, "-I", "-c", _BOOT, str(source), str(packages), str(_DRIVER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd="/",
            env={**ENV, "HOME": str(self.home), "STENO_CONFINEMENT": "" if mechanism == "both" else mechanism},
            **as_user,
        )

    @property
    def landlock_alone(self) -> bool:
        return self.mechanism.startswith("landlock")

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(
        self,
        argv: Sequence[str],
        policy: SandboxPolicy,
        *,
        confined: bool = True,
        env: dict[str, str] | None = None,
        pass_fds: Sequence[int] = (),
    ) -> Done:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        asked = {
            "argv": list(argv),
            "policy": msgspec.structs.asdict(policy),
            "env": ENV if env is None else env,
            "confined": confined,
            "pass_fds": list(pass_fds),
        }
        self._process.stdin.write(json.dumps(asked).encode() + b"\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the driver ended"
        return Done(**json.loads(line))

    def bash(self, script: str, policy: SandboxPolicy, **more: Any) -> Done:
        return self.ask(["bash", "-c", script], policy, **more)

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()
        shutil.rmtree(self.home, ignore_errors=True)


_BOOT = "import sys, runpy; sys.path[:0] = sys.argv[1:3]; runpy.run_path(sys.argv[3], run_name='__main__')"


def python_for_everyone() -> str | None:
    """Return a Python like this one that other users can run too."""
    for path in (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}"):
        real = Path(path).resolve()
        if real.exists() and all(stat.S_IMODE(each.stat().st_mode) & 0o001 for each in (real, *real.parents)):
            return str(path)
    return None


def as_user(box: Box) -> dict[str, Any]:
    """Return the arguments that start a process as the user of a box."""
    return {} if box.user == os.geteuid() else {"user": box.user, "group": box.user}


def folder_for() -> Iterator[Path]:
    """Yield a new folder that all users can enter."""
    path = Path(tempfile.mkdtemp(prefix="steno-case-")).resolve()
    path.chmod(0o755)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def give(path: Path, box: Box) -> None:
    """Make the user of a box the owner of everything below a path."""
    if box.user == os.geteuid():
        return
    for parent, folders, files in os.walk(path):
        os.chown(parent, box.user, box.user)
        for name in (*folders, *files):
            os.chown(Path(parent) / name, box.user, box.user, follow_symlinks=False)


class World:
    """A folder with a project, things outside of it, and the policy for the project."""

    def __init__(self, base: Path, box: Box) -> None:
        self.base = base
        self.work = base / "work"
        self.scratch = base / "scratch"
        self.outside = base / "outside"
        for folder in (self.work / "hidden", self.work / "sub", self.scratch, self.outside):
            folder.mkdir(parents=True)
        for path in ("open.txt", "secret.txt", "hidden/inner.txt", "sub/more.txt"):
            (self.work / path).write_text(f"content of {path}\n", encoding="utf-8")
        (self.outside / "secret.txt").write_text("outside\n", encoding="utf-8")
        (self.work / "link").symlink_to(self.outside)
        (self.work / "secret-link").symlink_to("secret.txt")
        os.link(self.work / "secret.txt", self.work / "sub" / "other-name")
        os.link(self.work / "hidden" / "inner.txt", self.work / "sub" / "other-inner")
        give(base, box)
        self.policy = SandboxPolicy(
            cwd=str(self.work),
            readable=(str(self.work),),
            scratch=str(self.scratch),
            denied=(str(self.work / "secret.txt"), str(self.work / "hidden")),
        )

    def plain_policy(self) -> SandboxPolicy:
        return SandboxPolicy(cwd=str(self.work), readable=(str(self.work),), scratch=str(self.scratch))
