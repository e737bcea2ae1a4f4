"""Build the wheel and the sdist, and try both in clean environments: `make dist`.

Each is installed with every Python from 3.11 on that is on PATH, the wheel also with pipx and `uvx` where
present. Packages come from the index that pip is configured with.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
DIST: Final = ROOT / "dist"
_VERSIONS: Final = ("3.11", "3.12", "3.13", "3.14")
_COMMANDS: Final = (["--version"], ["demo"], ["ls", "--demo"], ["search", "--demo", "tag"], ["show", "--demo", "last"])


def main() -> int:
    """Build and try the packages; print one line per environment."""
    shutil.rmtree(DIST, ignore_errors=True)
    _run([sys.executable, "-m", "build", "--no-isolation", "--outdir", str(DIST), str(ROOT)])
    (wheel,), (sdist,) = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
    for package in (wheel, sdist):
        print(f"built {package.name} ({package.stat().st_size / 1e6:.1f} MB)")
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch)
        for python in _pythons():
            for package in (wheel, sdist):
                environment = home / f"{python.name}-{package.suffix[1:]}"
                _run([str(python), "-m", "venv", str(environment)])
                _run([str(environment / "bin" / "python"), "-m", "pip", "install", "-q", str(package)])
                _try([str(environment / "bin" / "steno")], home, f"{python.name}, {package.name}")
                _run([str(environment / "bin" / "stenolog"), "--version"])
        env = {"PIPX_HOME": str(home / "pipx"), "PIPX_BIN_DIR": str(home / "bin")}
        if pipx := shutil.which("pipx"):
            _run([pipx, "install", str(wheel)], env)
            _try([str(home / "bin" / "steno")], home, "pipx install")
        if uvx := shutil.which("uvx"):
            _try([uvx, "--from", str(wheel), "steno"], home, "uvx --from")
    return 0


def _pythons() -> Iterator[Path]:
    for version in _VERSIONS:
        found = shutil.which(f"python{version}")
        works = found and subprocess.run([found, "-c", ""], check=False, capture_output=True).returncode == 0
        if found and works:
            yield Path(found)


def _try(program: list[str], home: Path, name: str) -> None:
    for arguments in _COMMANDS:
        _run([*program, *arguments], {"CLAUDE_CONFIG_DIR": str(home / "claude"), "STENO_HOME": str(home / "state")})
    print(f"ok: {name}")


def _run(command: list[str], env: dict[str, str] | None = None) -> None:
    completed = subprocess.run(
        command,
        check=False,
        capture_output=True,
        text=True,
        cwd=tempfile.gettempdir(),
        env={**os.environ, **(env or {})},
    )
    if completed.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{completed.stdout}{completed.stderr}")


if __name__ == "__main__":
    sys.exit(main())
