"""The demo task of `steno chat`: scripted model responses, real tools in a temporary project."""

import os
import sys
from typing import Final

from steno.agent.config.agent_options import AgentOptions
from steno.llm.testserver.responders import text, thinking, tool
from steno.llm.testserver.scripted_responder import ScriptedResponder

PROMPT: Final = "The test of the temperature table fails. Find out why and mend it."
_MODULE_SOURCE: Final = '''\
"""Temperatures, as people write them."""


def to_fahrenheit(celsius: float) -> float:
    """Return the same temperature in degrees Fahrenheit."""
    return celsius * 5 / 9 + 32
'''
_TEST_SOURCE: Final = """\
import unittest

from temperature import to_fahrenheit


class Table(unittest.TestCase):
    def test_known_points(self) -> None:
        for celsius, fahrenheit in ((0, 32), (100, 212), (-40, -40)):
            self.assertEqual(to_fahrenheit(celsius), fahrenheit)


if __name__ == "__main__":
    unittest.main()
"""


def prepare_demo() -> AgentOptions:
    """Make a folder with a project and a config folder; return the options to work on it."""
    import tempfile

    demo_folder = tempfile.mkdtemp(prefix="steno-demo-")
    folder, config = os.path.join(demo_folder, "project"), os.path.join(demo_folder, "config")
    os.mkdir(folder)
    _write_project(folder)
    options = AgentOptions(cwd=folder, config=config, env=dict(os.environ))
    options.allowed = (f"Bash({sys.executable} -m unittest:*)",)
    return options


def _write_project(folder: str) -> None:
    for name, content in (("temperature.py", _MODULE_SOURCE), ("test_temperature.py", _TEST_SOURCE)):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(content)


def build_script(folder: str) -> ScriptedResponder:
    """Return what the model says; what the tools find is real."""
    path = os.path.join(folder, "temperature.py")
    test_command = f"{sys.executable} -m unittest -q"
    return (
        ScriptedResponder()
        .on(
            "temperature table",
            [
                text("I run the test and look at the code beside it."),
                tool("Bash", command=test_command, description="Run the tests"),
                tool("Read", file_path=path),
                tool("Grep", pattern="to_fahrenheit", output_mode="files_with_matches"),
            ],
        )
        .then(
            [
                thinking("A degree Celsius is 9/5 of a degree Fahrenheit. The fraction is upside down."),
                text("The fraction is upside down: it should be 9 / 5."),
                tool("Edit", file_path=path, old_string="celsius * 5 / 9 + 32", new_string="celsius * 9 / 5 + 32"),
            ]
        )
        .then(tool("Bash", command=test_command, description="Run the tests again"))
        .then(
            "Mended: `to_fahrenheit` multiplied by 5/9 instead of 9/5. The test passes now; nothing else was changed."
        )
    )
