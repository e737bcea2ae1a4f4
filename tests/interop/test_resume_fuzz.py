"""Fresh random sessions, resumed by the real client, against what is predicted.

Run by `make interop`. Needs the scripts beside the shared corpus, npm, and the right to make
namespaces; the client sees a folder and a network of its own with nothing but loopback.
"""

import json
import os
import secrets
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.notation import notation, without_prompt

from steno.format.source import BytesSource
from steno.session.session import Session
from steno.session.transcript import load

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1800)]

VERSION = "2.1.325"
CASES = int(os.environ.get("STENO_INTEROP_CASES", "300"))
SEED = int(os.environ.get("STENO_INTEROP_SEED", "0")) or secrets.randbelow(1_000_000)


@pytest.fixture(scope="module")
def oracle(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not (shared / "oracle" / "install.sh").exists():
        pytest.skip("no scripts to run the real client with")
    if not shutil.which("npm") or not shutil.which("unshare") or os.geteuid() != 0:
        pytest.skip("the real client needs npm, unshare and root")
    folder = tmp_path_factory.mktemp("oracle")
    subprocess.run(
        [shared / "oracle" / "install.sh", folder, VERSION], check=True, capture_output=True
    )
    return folder


def test_fresh_random_sessions_are_predicted(oracle: Path) -> None:
    out = oracle / "cases.jsonl"
    script = [oracle / "bin" / "ns.sh", "fuzz", oracle / "bin" / "fuzz.py"]
    arguments = [VERSION, str(CASES), str(SEED), str(out)]
    subprocess.run([*script, *arguments], check=True, capture_output=True)
    wrong: list[str] = []
    lines = out.read_bytes().splitlines()
    for line in lines:
        case = json.loads(line)
        got = notation(Session(load(BytesSource(case["before"].encode()))).as_resumed(VERSION))
        if got != without_prompt(case["msgs"]):
            wrong.append(f"{case['name']} {case['ops']}")
    assert len(lines) == CASES
    assert len(wrong) <= CASES // 100, f"seed {SEED}: {wrong}"
