"""`steno chat` in a project that is not to be believed."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from steno.llm.testserver.server import Server

KEY = "canary-key-of-nobody"


class Chat:
    """`steno chat` in a hostile project, with programs that tell when they are run."""

    def __init__(self, folder: Path, server: Server) -> None:
        self.project = folder / "project"
        self.project.mkdir()
        self.home = folder / "home"
        self.marks = folder / "marks"
        self.marks.mkdir()
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.server = server
        self.code = 0

    def program(self, path: Path) -> str:
        """Make a program that leaves a mark."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\ntouch {self.marks}/{path.name}\n", encoding="utf-8")
        path.chmod(0o755)
        return str(path)

    def file(self, name: str, value: Any) -> None:
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")

    def __call__(self, *arguments: str, code: int | None = 0, env: dict[str, str] | None = None) -> str:
        ran = subprocess.run(
            [sys.executable, "-m", "steno", "chat", *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            cwd=self.project,
            env={
                "PATH": f"{self.bin}:{os.environ['PATH']}",
                "HOME": str(self.home),
                "CLAUDE_CONFIG_DIR": str(self.home / ".claude"),
                "STENO_HOME": str(self.home / "steno"),
                "ANTHROPIC_BASE_URL": self.server.url,
                "ANTHROPIC_API_KEY": KEY,
                **(env or {}),
            },
            check=False,
        )
        assert "Traceback" not in ran.stderr
        assert code is None or ran.returncode == code, ran.stderr
        self.code = ran.returncode
        return ran.stdout
