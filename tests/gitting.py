"""A git repository for tests, with a clock and a name of its own."""

import os
import subprocess
from pathlib import Path

__all__ = ["Repo"]


class Repo:
    """A repository in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.run("init", "-q")

    def run(self, *words: str, when: str = "2026-01-01T00:00:00Z", who: str = "Ada") -> str:
        """Let git do something, as somebody at some time."""
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_NAME": who,
            "GIT_AUTHOR_EMAIL": "x@example.org",
            "GIT_COMMITTER_NAME": who,
            "GIT_COMMITTER_EMAIL": "x@example.org",
            "GIT_AUTHOR_DATE": when,
            "GIT_COMMITTER_DATE": when,
        }
        done = subprocess.run(["git", *words], cwd=self.folder, env=env, check=True, capture_output=True, text=True)
        return done.stdout

    def commit(self, message: str, *, when: str = "2026-01-01T00:00:00Z", who: str = "Ada") -> str:
        """Commit everything; return the commit's hash."""
        self.run("add", "-A")
        self.run("commit", "-q", "-m", message, when=when, who=who)
        return self.run("rev-parse", "HEAD").strip()

    def write(self, name: str, text: str) -> Path:
        """Write a file."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def sign(self, commit: str) -> None:
        """Give the last commit a signature that somebody would have to check."""
        head, _, message = self.run("cat-file", "commit", commit).partition("\n\n")
        signature = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----"
        raw = self.folder / ".git" / "signed"
        raw.write_text(f"{head}\n{signature}\n\n{message}")
        signed = self.run("hash-object", "-t", "commit", "-w", str(raw)).strip()
        self.run("update-ref", "HEAD", signed)
