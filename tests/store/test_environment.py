"""Where things are, by the environment alone."""

import os

import pytest

from steno.errors import BadRequest
from steno.store import environment

ADA = {"HOME": "/home/ada"}


def test_the_config_folder_is_below_home_unless_it_is_named() -> None:
    assert environment.config_dir(ADA, "linux") == "/home/ada/.claude"
    assert environment.config_dir({**ADA, "CLAUDE_CONFIG_DIR": "/x/cfg"}, "linux") == "/x/cfg"
    assert environment.config_dir({**ADA, "CLAUDE_CONFIG_DIR": ""}, "linux") == "/home/ada/.claude"


@pytest.mark.parametrize(
    ("platform", "env", "folder"),
    [
        ("linux", ADA, "/home/ada/.local/share/steno"),
        ("linux", {**ADA, "XDG_DATA_HOME": "/data/"}, "/data/steno"),
        ("linux", {**ADA, "XDG_DATA_HOME": "relative"}, "/home/ada/.local/share/steno"),
        ("linux", {**ADA, "XDG_DATA_HOME": "/data", "STENO_HOME": "/s"}, "/s"),
        ("linux", {"HOME": "/"}, "/.local/share/steno"),
        ("darwin", ADA, "/home/ada/Library/Application Support/steno"),
        ("win32", {"LOCALAPPDATA": "C:\\L", "XDG_DATA_HOME": "/data"}, "C:\\L\\steno"),
        ("win32", {"USERPROFILE": "C:\\U", "HOME": "/h"}, "C:\\U\\AppData\\Local\\steno"),
    ],
)
def test_stenos_own_files_lie_where_the_system_keeps_data(platform: str, env: dict[str, str], folder: str) -> None:
    assert environment.steno_home(env, platform) == folder


def test_the_demo_lies_with_stenos_own_files() -> None:
    assert environment.demo_dir({"STENO_HOME": "/s"}, "linux") == "/s/demo"


def test_the_environment_of_the_process_is_the_default() -> None:
    assert environment.config_dir() == os.environ["CLAUDE_CONFIG_DIR"]
    assert environment.steno_home() == os.environ["STENO_HOME"]
    assert environment.demo_dir().startswith(os.environ["STENO_HOME"])


def test_without_a_home_the_caller_is_told_what_to_set() -> None:
    with pytest.raises(BadRequest) as caught:
        environment.config_dir({}, "linux")
    assert "HOME" in caught.value.hint
    assert environment.config_dir({"CLAUDE_CONFIG_DIR": "/x"}, "linux") == "/x"
