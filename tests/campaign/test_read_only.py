"""Commands that read leave every byte, time and mode under the session root as it was."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.campaign.size import report

from steno.demo.recording import write_demo

COMMANDS = (
    ("ls", "--all"),
    ("ls", "--json"),
    ("show", "last"),
    ("show", "last", "--json"),
    ("search", "the"),
    ("usage",),
    ("brief", "last"),
    ("files", "last"),
    ("check",),
    ("doctor",),
    ("drift",),
    ("sync",),
    ("archive",),
    ("export", "last", "--format", "markdown"),
)


def snapshot(root: Path) -> dict[str, tuple[int, int, int, str]]:
    """Return mode, size, time and hash of everything under a root."""
    found: dict[str, tuple[int, int, int, str]] = {}
    for path in [root, *sorted(root.rglob("*"))]:
        status = path.lstat()
        digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        name = str(path.relative_to(root))
        found[name] = (status.st_mode, status.st_size, status.st_mtime_ns, digest)
    return found


@pytest.mark.faults
@pytest.mark.timeout(300)
def test_no_reading_command_changes_anything_under_the_root(tmp_path: Path) -> None:
    root = Path(write_demo(str(tmp_path / "demo")).root)
    before = snapshot(root)
    env = {**os.environ, "CLAUDE_CONFIG_DIR": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
    for command in COMMANDS:
        ran = subprocess.run(
            [sys.executable, "-m", "steno", *command],
            env=env,
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode in (0, 1), (command, ran.stderr)
        assert "Traceback" not in ran.stderr, command
        assert snapshot(root) == before, command
    report("D14", f"{len(COMMANDS)} commands over {len(before)} files: nothing changed")
