"""Other programs for Claude Code sessions, installed into a separate directory.

    python bench/peers.py --data FOLDER [--corpus FOLDER]

Installs the programs and prints what each of them read. They run with a separate home directory, with telemetry and
update checks disabled, and with a proxy that refuses every connection.
"""

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from measure import Failed, Run, run

SECONDS = 300
NOWHERE = "http://127.0.0.1:9"


class Unavailable(Exception):
    """A peer cannot be installed here."""


class Peer:
    """An installed program."""

    def __init__(self, binary: Path, version: str) -> None:
        self.binary = binary
        self.version = version

    def env(self, state: Path, config: Path) -> dict[str, str]:
        """Return an environment that exposes only one config directory."""
        home = state / "home"
        home.mkdir(parents=True, exist_ok=True)
        return {
            "PATH": os.defpath,
            "HOME": str(home),
            "CLAUDE_CONFIG_DIR": str(config),
            "DO_NOT_TRACK": "1",
            "NO_COLOR": "1",
            "HTTP_PROXY": NOWHERE,
            "HTTPS_PROXY": NOWHERE,
            "ALL_PROXY": NOWHERE,
        }


class Agentsview(Peer):
    """agentsview: sessions in SQLite, with a web interface."""

    def sync(self, state: Path, config: Path, *, memory: bool = False) -> Run:
        """Update its database once, without a server."""
        env = self.env(state, config) | {
            "CLAUDE_PROJECTS_DIR": str(config / "projects"),
            "AGENTSVIEW_DATA_DIR": str(state / "data"),
            "AGENTSVIEW_NO_DAEMON": "1",
            "AGENTSVIEW_TELEMETRY_ENABLED": "false",
            "AGENTSVIEW_DISABLE_UPDATE_CHECK": "1",
            "AGENTSVIEW_NO_BROWSER": "1",
        }
        (state / "data").mkdir(parents=True, exist_ok=True)
        return run([str(self.binary), "sync"], env, memory=memory)

    @staticmethod
    def synced(done: Run) -> int:
        """Return the number of files, including sub-agents, that a sync read.

        Raises:
            Failed: The output has no such number.
        """
        found = re.search(r"(\d+) sessions synced", done.output)
        if found is None:
            raise Failed("agentsview printed no number of synced sessions")
        return int(found[1])


class Ccusage(Peer):
    """ccusage: cost of sessions; its native program, without the JavaScript wrapper."""

    def report(self, state: Path, config: Path, kind: str = "daily", *, memory: bool = False) -> Run:
        """Report tokens and costs as JSON, with the bundled prices."""
        command = [str(self.binary), "claude", kind, "--offline", "--json"]
        return run(command, self.env(state, config), memory=memory)

    @staticmethod
    def output_tokens(done: Run) -> int:
        """Return the total output tokens of a report."""
        return int(json.loads(done.output)["totals"]["outputTokens"])


class Transcripts(Peer):
    """claude-code-transcripts: sessions as HTML pages."""

    def pages(self, state: Path, config: Path, out: Path) -> Run:
        """Write every session, including sub-agents, as pages."""
        source = ["--source", str(config / "projects"), "--output", str(out)]
        command = [str(self.binary), "all", *source, "--include-agents", "--quiet"]
        return run(command, self.env(state, config))


def transcripts(folder: Path) -> Transcripts:
    """Return claude-code-transcripts, installed with pip into a virtual environment.

    Raises:
        Unavailable: It cannot be installed.
    """
    place = folder / "peers" / "transcripts"
    pattern = "bin/claude-code-transcripts"
    if not any(place.glob(pattern)):
        _call([sys.executable, "-m", "venv", "--clear", str(place)])
        pip = [str(place / "bin" / "python"), "-m", "pip", "install", "--quiet"]
        _call([*pip, "--disable-pip-version-check", "claude-code-transcripts"])
    binary = _only(place, pattern)
    said = subprocess.run([str(binary), "--version"], check=True, capture_output=True, text=True)
    return Transcripts(binary, said.stdout.strip().rpartition(" ")[2])


def agentsview(folder: Path) -> Agentsview:
    """Return agentsview, installed with pip into a virtual environment in the directory.

    Raises:
        Unavailable: It cannot be installed.
    """
    place = folder / "peers" / "agentsview"
    pattern = "lib/python*/site-packages/agentsview/bin/agentsview"
    if not any(place.glob(pattern)):
        _call([sys.executable, "-m", "venv", "--clear", str(place)])
        pip = [str(place / "bin" / "python"), "-m", "pip", "install", "--quiet"]
        _call([*pip, "--disable-pip-version-check", "agentsview"])
    binary = _only(place, pattern)
    return Agentsview(binary, _version(binary))


def ccusage(folder: Path) -> Ccusage:
    """Return ccusage, installed with npm in the directory.

    Only the package of this platform is installed, in its latest version: it may be older than the package that wraps
    it.

    Raises:
        Unavailable: It cannot be installed.
    """
    place = folder / "peers" / "ccusage"
    pattern = "node_modules/@ccusage/*/bin/ccusage"
    if not any(place.glob(pattern)):
        npm = shutil.which("npm")
        if npm is None:
            raise Unavailable("ccusage needs npm")
        place.mkdir(parents=True, exist_ok=True)
        machine = {"x86_64": "x64", "AMD64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
        quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier"]
        patience = ["--fetch-retries=1", "--fetch-timeout=30000"]
        package = f"@ccusage/ccusage-{sys.platform}-{machine}"
        _call([npm, "install", "--prefix", str(place), *quiet, *patience, package])
    binary = _only(place, pattern)
    binary.chmod(0o755)
    return Ccusage(binary, _version(binary))


def _call(command: list[str]) -> None:
    name = Path(command[0]).name
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{name} timed out after {SECONDS} s") from None
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if "error" in line.lower()]
        raise Unavailable(f"{name}: {said[0][:120] if said else 'installation failed'}")


def _only(place: Path, pattern: str) -> Path:
    found = sorted(place.glob(pattern))
    if len(found) != 1:
        raise Unavailable(f"no program {pattern} in the installed package")
    return found[0]


def _version(binary: Path) -> str:
    said = subprocess.run([str(binary), "--version"], check=True, capture_output=True, text=True)
    found = re.search(r"\d+\.\d+\.\d+", said.stdout)
    return found[0] if found else "unknown version"


def sessions(config: Path) -> int:
    """Return the number of files agentsview should read: of sub-agents, only those in their own directory."""
    files = config.glob("projects/**/*.jsonl")
    return sum(not file.name.startswith("agent-") or file.parent.name == "subagents" for file in files)


def proof(folder: Path, corpus: Path) -> list[str]:
    """Return a line per peer with the amount it read and the expected amount."""
    config, lines = corpus / ".claude", list[str]()
    truth = json.loads((corpus / "truth.json").read_bytes())["totals_dedup_last"]["output_tokens"]
    with tempfile.TemporaryDirectory(dir=folder, prefix="state-") as state:
        try:
            views = agentsview(folder)
            read = views.synced(views.sync(Path(state), config))
            again = views.synced(views.sync(Path(state), config))
            lines.append(f"agentsview {views.version}: {read} files read of {sessions(config)}, then {again}")
        except (Unavailable, Failed) as problem:
            lines.append(f"agentsview: {problem}")
        try:
            costs = ccusage(folder)
            tokens = costs.output_tokens(costs.report(Path(state), config, "session"))
            lines.append(f"ccusage {costs.version}: {tokens} output tokens of {truth}")
        except (Unavailable, Failed) as problem:
            lines.append(f"ccusage: {problem}")
    return lines


def main() -> None:
    """Install all peers and print what they read."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="directory to install into")
    parser.add_argument("--corpus", type=Path, help="generated corpus (default: generate 20 MB)")
    options = parser.parse_args()
    from run import generated

    options.data.mkdir(parents=True, exist_ok=True)
    corpus = options.corpus or generated(options.data, 20)
    print("\n".join(proof(options.data, corpus)))


if __name__ == "__main__":
    main()
