"""Settings of the client as hostile or damaged files have them."""

from typing import Any

import pytest

from steno.format.client_settings import read_hooks, read_servers

DEFAULT_HOOK_TIMEOUT = 60.0
_TOO_LARGE = int("1" + 400 * "0")


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (5, 5.0),
        (0.5, 0.5),
        (_TOO_LARGE, None),
        (0, None),
        (-3, None),
        (True, None),
        ("7", None),
        (None, None),
        ([], None),
    ],
)
def test_a_timeout_that_is_not_a_positive_number_is_the_default(value: Any, seconds: float | None) -> None:
    hook = {"type": "command", "command": "true", "timeout": value}
    (read,) = read_hooks({"hooks": {"Stop": [{"hooks": [hook]}]}})
    assert read.timeout == (DEFAULT_HOOK_TIMEOUT if seconds is None else seconds)
    (server,) = read_servers({"mcpServers": {"one": {"command": "x", "timeout": value}}})
    assert server.timeout == (0.0 if seconds is None else seconds / 1000)
