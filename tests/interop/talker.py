"""Runs inside the network namespace: lets clients have conversations with the strict server.

    python talker.py [--alone] < talks.json > talked.json

Each has a home, a config folder, a temp folder, a project and a server of its own, and nothing of
this machine's environment.
"""

import json
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.interop.runner import SETTINGS, loopback_up, run, stop

from steno.llm.testserver.scripted_responder import parse_script_file
from steno.llm.testserver.server import run_server_in_thread


def main() -> None:
    """Have all conversations, one after the other."""
    signal.signal(signal.SIGTERM, stop)
    if "--alone" in sys.argv:
        loopback_up()
    talks: list[dict[str, Any]] = json.load(sys.stdin)
    json.dump([_alone(talk) for talk in talks], sys.stdout)


def _alone(talk: dict[str, Any]) -> dict[str, Any]:
    home = Path(os.path.realpath(tempfile.mkdtemp(prefix="steno-")))
    try:
        return _talk(home, talk)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _talk(home: Path, talk: dict[str, Any]) -> dict[str, Any]:
    project, config = home / "project", home / "config"
    for each in (project, config, home / "tmp"):
        each.mkdir()
    for folder, files in ((project, talk["files"]), (config, talk["config"])):
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    script = json.dumps(talk["script"]).replace("{project}", str(project)).encode()
    with run_server_in_thread(parse_script_file(script)) as server:
        names = {
            **SETTINGS,
            "ANTHROPIC_BASE_URL": server.url,
            "CLAUDE_CODE_TMPDIR": str(home / "tmp"),
            "CLAUDE_CONFIG_DIR": str(config),
            "HOME": str(home),
            "PATH": talk["path"],
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
            "STENO_HOME": str(home / "steno"),
            "TMPDIR": str(home / "tmp"),
        }
        code, out, error = run([*talk["command"], *talk["arguments"]], names, project)
    said = _records(out.encode())
    files = sorted((config / "projects").glob("*/*.jsonl"))
    records = [record for path in files for record in _records(path.read_bytes())]
    return {
        "rc": code,
        "err": error[:400],
        "lines": _placed(said, home),
        "records": _placed(records, home),
        "requests": _placed([each.body for each in server.requests], home),
        "refused": [str(each.refusal) for each in server.refused],
    }


def _records(data: bytes) -> list[Any]:
    return [json.loads(line) for line in data.splitlines() if line.startswith(b"{")]


def _placed(values: list[Any], home: Path) -> Any:
    """Return values with one name for the home that is different every time."""
    return json.loads(json.dumps(values).replace(str(home), "/home"))


if __name__ == "__main__":
    main()
