"""Runs inside the network namespace: projects move, and the real client goes on with their sessions.

    python moving.py [--alone] SCENE CLIENT PATH PROMPT > result.json

`go-on`: the client works in a folder, the folder is renamed, the sessions are relocated, the client
goes on. `pick`: the client's list of sessions, after a project moved. `mcp`: it connects to ours.
"""

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from tests.builders import session
from tests.interop.runner import SETTINGS, asked_of, loopback_up, run_client
from tests.interop.server import Server

from steno.format.paths import slug_for_path
from steno.store.relocate.execution import apply_plan
from steno.store.relocate.plan import plan_move

__all__ = ["FIRST", "GONE", "TITLE"]

FIRST: Final = "the first prompt"
TITLE: Final = "Lost and found"
GONE: Final = "/home/ada/moved away"
_PICKER: Final = 40


class Scene:
    """A home of its own, a client in it, and a project that was in one folder and is in another."""

    def __init__(self, home: Path, client: str, path: str) -> None:
        self.old, self.new, self.config = home / "before", home / "after it moved", home / "config"
        for each in (self.old, self.config, home / "tmp"):
            each.mkdir()
        self.client = client
        self.names = {
            **SETTINGS,
            "CLAUDE_CODE_TMPDIR": str(home / "tmp"),
            "CLAUDE_CONFIG_DIR": str(self.config),
            "HOME": str(home),
            "PATH": path,
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
            "STENO_HOME": str(home / "steno"),
            "TMPDIR": str(home / "tmp"),
        }
        os.environ["STENO_HOME"] = self.names["STENO_HOME"]
        # What was written a moment ago is taken for busy.
        os.environ["STENO_NOW"] = "2030-01-01T00:00:00Z"

    def asks(self, prompt: str, folder: Path, *options: str) -> dict[str, Any]:
        """Let the client work; return what it said and what it sent."""
        plain = ["-p", "--output-format", "json", prompt, *options]
        with Server() as server:
            names = {**self.names, "ANTHROPIC_BASE_URL": server.url}
            code, error, out = run_client([self.client, *plain], names, folder)
            told = json.loads(out) if not code else {}
            sent = asked_of(server, prompt)
        return {"code": code, "error": error, "id": told.get("session_id"), "messages": sent}


def go_on(scene: Scene, prompt: str) -> dict[str, Any]:
    """Have the client work, the folder renamed, the sessions follow, and the client go on."""
    first = scene.asks(FIRST, scene.old)
    scene.old.rename(scene.new)
    lost = shutil.copytree(scene.config, scene.config.with_name("not relocated"))
    names = scene.names
    scene.names = {**names, "CLAUDE_CONFIG_DIR": str(lost)}
    without = scene.asks(prompt, scene.new, "--continue")
    scene.names = names
    apply_plan(plan_move(str(scene.old), str(scene.new), str(scene.config)))
    on = scene.asks(prompt, scene.new, "--continue")
    again = scene.asks(prompt, scene.new, "--resume", str(first["id"]))
    folders = sorted(path.name for path in (scene.config / "projects").iterdir())
    return {
        "first": first,
        "without": without,
        "continued": on,
        "resumed": again,
        "folders": folders,
        "wanted": [slug_for_path(str(scene.new))],
        "new": str(scene.new),
    }


def pick(scene: Scene, _: str) -> dict[str, Any]:
    """Have a project follow, with the client's trust in it; then look at the client's own list."""
    import pexpect

    made = session(seed="pick", cwd=GONE).title(TITLE).user("Where is it?").assistant("Here.")
    folder = scene.config / "projects" / slug_for_path(GONE)
    folder.mkdir(parents=True)
    (folder / f"{made.session_id}.jsonl").write_bytes(made.bytes())
    state: dict[str, Any] = {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "customApiKeyResponses": {"approved": [SETTINGS["ANTHROPIC_API_KEY"]], "rejected": []},
        "projects": {GONE: {"hasTrustDialogAccepted": True, "allowedTools": []}},
    }
    (scene.config / ".claude.json").write_text(json.dumps(state))
    apply_plan(plan_move(GONE, str(scene.old), str(scene.config)))
    with Server() as server:
        names = {**scene.names, "ANTHROPIC_BASE_URL": server.url, "TERM": "xterm-256color"}
        picker = pexpect.spawn(
            scene.client,
            ["--resume"],
            env=names,
            cwd=str(scene.old),
            dimensions=(40, 120),
            encoding="utf-8",
            codec_errors="replace",
        )
        try:
            seen = picker.expect([TITLE, pexpect.TIMEOUT, pexpect.EOF], timeout=_PICKER)
            return {"listed": seen == 0, "screen": str(picker.before)[-2000:]}
        finally:
            picker.close(force=True)


def mcp(scene: Scene, _: str) -> dict[str, Any]:
    """Tell the client of our server, as people are told to, and ask whether it connects."""
    serve = [sys.executable, "-m", "steno", "mcp"]
    add = [scene.client, "mcp", "add", "steno", "--", *serve]
    return {
        "added": run_client(add, scene.names, scene.old),
        "listed": run_client([scene.client, "mcp", "list"], scene.names, scene.old),
    }


def main() -> None:
    """Play a scene in a home that is gone afterwards."""
    if "--alone" in sys.argv:
        loopback_up()
    name, client, path, prompt = (each for each in sys.argv[1:] if each != "--alone")
    home = Path(os.path.realpath(tempfile.mkdtemp(prefix="steno-")))
    try:
        played = {"go-on": go_on, "pick": pick, "mcp": mcp}[name]
        json.dump(played(Scene(home, client, path), prompt), sys.stdout)
    finally:
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main()
