"""Projects that moved, judged by the real client: it lists their sessions and goes on with them.

Run by `make interop`; `make interop-quick` takes the newest client.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from tests.interop.client import LIMIT, QUICK, client_of, namespace, path_for
from tests.interop.moving import FIRST
from tests.notation import PROMPT

import steno

pytestmark = [pytest.mark.interop, pytest.mark.timeout(LIMIT)]

NEWEST = "2.1.325"
OLDER = () if QUICK else ("2.0.76", "2.1.42", "2.1.200")
ROOT = Path(__file__).resolve().parent.parent.parent


def played(scene: str, version: str) -> Any:
    """Play a scene with a version of the client, alone."""
    alone = namespace()
    script = str(Path(__file__).with_name("moving.py"))
    command = [*alone, sys.executable, script, *(["--alone"] if alone else [])]
    ran = subprocess.run(
        [*command, scene, str(client_of(version)), path_for(), PROMPT],
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(Path(steno.__file__).parent.parent)]),
            "TMPDIR": tempfile.gettempdir(),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


@pytest.mark.parametrize("version", [NEWEST, *OLDER])
def test_the_client_goes_on_with_a_session_that_was_relocated(version: str) -> None:
    told = played("go-on", version)
    ours = told["first"]["id"]
    # Without it, the client knows of no session in the folder.
    assert told["without"]["id"] != ours
    assert told["folders"] == told["wanted"]
    for how in ("continued", "resumed"):
        assert told[how]["code"] == 0, told[how]["error"]
        assert told[how]["id"] == ours, how
        assert FIRST in json.dumps(told[how]["messages"]), how


def test_the_model_is_told_of_the_move() -> None:
    told = played("go-on", NEWEST)
    said = json.dumps(told["continued"]["messages"])
    assert f"working directory: {told['new']} (was " in said


def test_the_client_lists_what_was_relocated() -> None:
    told = played("pick", NEWEST)
    assert told["listed"], told["screen"]


def test_the_client_connects_to_the_server_of_histories() -> None:
    told = played("mcp", NEWEST)
    code, error, _ = told["added"]
    assert code == 0, error
    assert "Connected" in told["listed"][2]
