"""A small real task on the scripted server: no key, no network, real tools in a throwaway folder."""

import os
import sys
from typing import Final

from steno.model.server.minds import text, thinking, tool
from steno.model.server.script import Script

__all__ = ["PROMPT", "lay_out", "script"]

PROMPT: Final = "The test of the temperature table fails. Find out why and mend it."
_CODE: Final = '''\
"""Temperatures, as people write them."""


def to_fahrenheit(celsius: float) -> float:
    """Return the same temperature in degrees Fahrenheit."""
    return celsius * 5 / 9 + 32
'''
_TEST: Final = """\
import unittest

from temperature import to_fahrenheit


class Table(unittest.TestCase):
    def test_known_points(self) -> None:
        for celsius, fahrenheit in ((0, 32), (100, 212), (-40, -40)):
            self.assertEqual(to_fahrenheit(celsius), fahrenheit)


if __name__ == "__main__":
    unittest.main()
"""


def lay_out(folder: str) -> None:
    """Write the project that the task is about."""
    for name, words in (("temperature.py", _CODE), ("test_temperature.py", _TEST)):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(words)


def script(folder: str) -> Script:
    """Return what the model says; what the tools find is real."""
    path = os.path.join(folder, "temperature.py")
    run = f"{sys.executable} -m unittest -q"
    return (
        Script()
        .on(
            "temperature table",
            [
                text("I run the test and look at the code beside it."),
                tool("Bash", command=run, description="Run the tests"),
                tool("Read", file_path=path),
                tool("Grep", pattern="to_fahrenheit", output_mode="files_with_matches"),
            ],
        )
        .then(
            [
                thinking(
                    "A degree Celsius is 9/5 of a degree Fahrenheit. The fraction is upside down."
                ),
                text("The fraction is upside down: it should be 9 / 5."),
                tool(
                    "Edit",
                    file_path=path,
                    old_string="celsius * 5 / 9 + 32",
                    new_string="celsius * 9 / 5 + 32",
                ),
            ]
        )
        .then(tool("Bash", command=run, description="Run the tests again"))
        .then(
            "Mended: `to_fahrenheit` multiplied by 5/9 instead of 9/5. The test passes now; nothing "
            "else was changed."
        )
    )
