"""A client generated from the OpenAPI document reads every endpoint of a running explorer."""

import importlib
import subprocess
import sys
import sysconfig
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.cli.commands.test_explore import running
from tests.cli.conftest import Steno, steno
from tools.make_api_docs import FOLDER

from steno.demo.recording import write_demo
from steno.store.environment import demo_dir
from steno.web.api.openapi import ENDPOINTS

__all__ = ["steno"]

_WORD = "0123456789abcdef0123456789abcdef"
_PACKAGE = "generated_steno_client"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """Generate the client from the document in the reference, and import it."""
    folder = tmp_path_factory.mktemp("client")
    generator = Path(sysconfig.get_path("scripts")) / "openapi-python-client"
    made = subprocess.run(
        [
            *(generator, "generate", "--path", FOLDER / "openapi.json", "--meta", "none"),
            *("--output-path", folder / _PACKAGE),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stdout + made.stderr
    assert "WARNING" not in made.stdout
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module(_PACKAGE)
    finally:
        sys.path.remove(str(folder))


def test_a_generated_client_reads_every_endpoint(client: ModuleType, steno: Steno, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(_WORD)
    token.chmod(0o600)
    # The index is there before the first request.
    write_demo(demo_dir())
    assert steno("sync", "--demo").code == 0
    with running("explore", "--demo", "--no-open", "--token-file", str(token)) as (address, _):
        parts = urlsplit(address)
        base = f"{parts.scheme}://{parts.netloc}"
        with client.AuthenticatedClient(base_url=base, token=_WORD) as authenticated:
            found = _every_endpoint(authenticated)
        with client.Client(base_url=base) as stranger:
            refused = _call("list_sessions", stranger)
    assert {type(value).__name__ for value in found.values()} == {each.response.__name__ for each in ENDPOINTS}
    assert found["list_sessions"].total == len(found["list_sessions"].sessions) > 10
    assert found["get_session"].key == found["list_sessions"].sessions[0].key
    assert found["list_turns"].turns
    assert found["search"].hits[0].excerpt.matches
    assert found["get_usage"].rows[0].model
    assert (type(refused).__name__, refused.error.code) == ("ErrorResponse", "unauthorized")


def _every_endpoint(client: Any) -> dict[str, Any]:
    sessions = _call("list_sessions", client)
    file = _call("list_files", client).files[0].id
    key = sessions.sessions[0].key
    holes = {"key": key, "tag": file, "id": key}
    queries: dict[str, dict[str, Any]] = {"search": {"q": "the"}, "get_usage": {"by": "model"}}
    return {
        each.name: _call(
            each.name,
            client,
            *(holes[name] for name in holes if f"{{{name}}}" in each.path),
            **queries.get(each.name, {}),
        )
        for each in ENDPOINTS
    }


def _call(name: str, client: Any, *path: str, **query: Any) -> Any:
    tag = next(each.tag for each in ENDPOINTS if each.name == name)
    module = importlib.import_module(f"{_PACKAGE}.api.{tag}.{name}")
    if "by" in query:
        kinds = importlib.import_module(f"{_PACKAGE}.models")
        query["by"] = kinds.GetUsageBy(query["by"])
    return module.sync(*path, client=client, **query)
