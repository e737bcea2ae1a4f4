"""Number of modules that the main flows use, counted by a profiler including setup."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.builders.builder import session, text, tool

from steno.llm.testserver.responders import tool as tool_call
from steno.llm.testserver.scripted_responder import ScriptedResponder
from steno.llm.testserver.server import run_server_in_thread

_PROFILE = Path(__file__).with_name("flow_profile.py")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    folders = {"HOME": tmp_path, "CLAUDE_CONFIG_DIR": tmp_path / ".claude", "STENO_HOME": tmp_path / "steno"}
    return {**os.environ, **{name: str(folder) for name, folder in folders.items()}}


@pytest.fixture
def session_path(tmp_path: Path) -> Path:
    path = tmp_path / ".claude" / "projects" / "-tmp-project" / "11111111-2222-4333-8444-555555555555.jsonl"
    path.parent.mkdir(parents=True)
    recorded = session(full=True).user("Which files are there?").assistant(tool("Bash", command="ls"))
    path.write_bytes(recorded.result("a.txt").assistant(text("Only **a.txt**.")).bytes())
    return path


def modules_called(environment: dict[str, str], cwd: Path, *arguments: str) -> list[str]:
    output = cwd / "modules.json"
    command = [sys.executable, str(_PROFILE), str(output), *arguments]
    completed = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stderr
    modules: list[str] = json.loads(output.read_text())
    return modules


def packages_of(modules: list[str]) -> set[str]:
    return {module.split("/")[0] for module in modules if "/" in module}


@pytest.mark.usefixtures("session_path")
def test_show_passes_few_modules(environment: dict[str, str], tmp_path: Path) -> None:
    modules = modules_called(environment, tmp_path, "show", "last")
    assert "session/turns/turn_builder.py" in modules
    assert len(modules) <= 40, modules
    assert packages_of(modules) == {"cli", "format", "report", "sanitize", "session", "store"}


def test_a_sync_of_an_appended_line_passes_few_modules(
    environment: dict[str, str], tmp_path: Path, session_path: Path
) -> None:
    modules_called(environment, tmp_path, "sync")
    lines = session_path.read_bytes().splitlines(keepends=True)
    record = json.loads(lines[-1])
    record |= {"uuid": "99999999-2222-4333-8444-555555555555", "parentUuid": record.get("uuid")}
    session_path.write_bytes(b"".join(lines) + json.dumps(record).encode() + b"\n")
    modules = modules_called(environment, tmp_path, "sync")
    assert "index/sync/batch_writer.py" in modules
    assert len(modules) <= 45, modules


def test_a_headless_turn_passes_few_modules(environment: dict[str, str], tmp_path: Path) -> None:
    config = Path(environment["CLAUDE_CONFIG_DIR"])
    config.mkdir()
    hook = {"matcher": "Bash", "hooks": [{"type": "command", "command": "cat > /dev/null; echo checked"}]}
    settings = {"permissions": {"allow": ["Bash(touch *)"]}, "hooks": {"PreToolUse": [hook]}}
    (config / "settings.json").write_text(json.dumps(settings))
    project = tmp_path / "project"
    project.mkdir()
    script = ScriptedResponder().on("go", [tool_call("Bash", command="touch made.txt", description="Make a file")])
    with run_server_in_thread(script.then("Done.")) as server:
        address = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "key"}
        modules = modules_called({**environment, **address}, project, "chat", "-p", "go")
    assert (project / "made.txt").exists()
    assert {"agent/hooks/dispatcher.py", "permissions/permission_rules.py", "tools/builtin/bash.py"} <= set(modules)
    assert len(modules) <= 80, modules
