"""Install the commands `steno` and `stenolog` for this user from a checkout: `make install`.

Uses pipx or uv if one is on PATH, otherwise a virtual environment with links in `~/.local/bin`.
Needs only the standard library.
"""

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ("steno", "stenolog")


def main() -> int:
    """Install and print where the commands are."""
    try:
        directory = _install()
    except subprocess.CalledProcessError as error:
        command = " ".join(map(str, error.cmd))
        sys.exit(f"cannot install: `{command}` failed with exit code {error.returncode}")
    program = directory / ("steno.exe" if os.name == "nt" else "steno")
    version = subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout.strip()
    print(f"Installed {version} with the agent: {program}")
    if shutil.which("steno") is None:
        print(f'{directory} is not on PATH. Add it: export PATH="{directory}:$PATH"')
    return 0


def _install() -> Path:
    """Return the directory with the installed commands."""
    requirement = f"{ROOT}[agent]"
    if pipx := shutil.which("pipx"):
        print("Installing with pipx ...", flush=True)
        _run(pipx, "install", "--quiet", "--force", "--python", sys.executable, requirement)
        return Path(_output(pipx, "environment", "--value", "PIPX_BIN_DIR"))
    if uv := shutil.which("uv"):
        print("Installing with uv ...", flush=True)
        _run(uv, "tool", "install", "--quiet", "--reinstall", "--python", sys.executable, requirement)
        return Path(_output(uv, "tool", "dir", "--bin"))
    return _install_in_environment()


def _install_in_environment() -> Path:
    data = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    environment = data / "steno" / "venv"
    print(f"Installing in a virtual environment, {environment} ...", flush=True)
    venv.create(environment, with_pip=True, clear=True, symlinks=os.name != "nt")
    scripts = environment / ("Scripts" if os.name == "nt" else "bin")
    pip = [str(scripts / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    requirements = ROOT / "requirements"
    _run(*pip, "--require-hashes", "-r", str(requirements / "build.txt"), "-r", str(requirements / "agent.txt"))
    _run(*pip, "--no-deps", "--no-build-isolation", str(ROOT))
    if os.name == "nt":
        return scripts
    directory = Path.home() / ".local" / "bin"
    directory.mkdir(parents=True, exist_ok=True)
    for name in PROGRAMS:
        link = directory / name
        if link.exists() and not link.is_symlink():
            sys.exit(f"cannot install: {link} exists and is not a link")
        link.unlink(missing_ok=True)
        link.symlink_to(scripts / name)
    return directory


def _run(*command: str) -> None:
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)


def _output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
