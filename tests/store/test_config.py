"""The config file: what it may say, and how it is told that it says something else."""

import os
import re
import tomllib
from pathlib import Path

import pytest
from tests.docs.pages import DOCS, fences, read

from steno.errors import BadRequest, Unreadable, Unwritable
from steno.store.config import CONFIG_FILE, CONFIG_KEYS, read_config, set_config
from steno.store.environment import steno_home


def write(text: str | bytes) -> Path:
    folder = Path(steno_home())
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / CONFIG_FILE
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_no_file_says_nothing() -> None:
    config = read_config()
    assert (config.silence, config.severity) == ((), {})


def test_rules_can_be_silent_or_weigh_something_else() -> None:
    write('[check]\nsilence = ["time.*"]\n[check.severity]\n"tools.unanswered" = "warning"\n')
    config = read_config()
    assert config.silence == ("time.*",)
    assert config.severity == {"tools.unanswered": "warning"}


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("[check]\nsilence = [\n", 3, "config.toml"),
        ("[check\n", 1, "config.toml"),
        ("\n\n[chekc]\n", 3, "chekc"),
        ("[check]\n\nsilnce = []\n", 3, "check.silnce"),
        ('[check]\nsilence = "time.*"\n', 2, "list"),
        ("[check]\nsilence = [1]\n", 2, "list"),
        ("check = 3\n", 1, "table"),
        ('[check]\n# severity\nseverity = "high"\n', 3, "table"),
        ('[check.severity]\n\n"line.bom" = 3\n', 3, "line.bom"),
        ("[check.severity]\nline.bom = 'error'\n", 2, "line"),
        (b"[check]\n# \xff\n", 2, "UTF-8"),
        ('[console]\ntheme = "pink"\n', 2, "colour, plain, reader"),
        ("[console]\nkeys = 3\n", 2, "emacs, vi"),
        ("[console]\nmodel = []\n", 2, "model name"),
        ('[console]\nfont = "x"\n', 2, "console.font"),
    ],
)
def test_what_means_nothing_is_named_with_its_line(text: str | bytes, line: int, words: str) -> None:
    path = write(text)
    with pytest.raises(BadRequest) as refused:
        read_config()
    assert f"{path}, line {line}: " in str(refused.value)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_that_cannot_be_read_is_not_taken_for_none() -> None:
    (Path(steno_home()) / CONFIG_FILE).mkdir(parents=True)
    with pytest.raises(Unreadable, match="cannot read"):
        read_config()


def test_a_file_without_end_is_refused() -> None:
    path = write("# x\n")
    os.truncate(path, 2 << 20)
    with pytest.raises(BadRequest, match="larger than"):
        read_config()


def test_every_key_is_in_the_reference() -> None:
    page = read(DOCS / "reference" / "configuration.md")
    assert re.findall(r"^\| `([\w.]+)` \|", page, re.MULTILINE) == list(CONFIG_KEYS)


def test_the_example_of_the_reference_is_a_config_file() -> None:
    (example,) = [
        body for language, body, _ in fences(read(DOCS / "reference" / "configuration.md")) if language == "toml"
    ]
    write(example)
    config = read_config()
    said = tomllib.loads(example)["check"]
    assert config.silence == tuple(said["silence"])
    assert config.severity == said["severity"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '[console]\nmodel = "a\\"b"\n'),
        ("# mine", '# mine\n\n[console]\nmodel = "a\\"b"\n'),
        (
            '[ console ] # here\ntheme = "plain"\n[usage]\n',
            '[ console ] # here\nmodel = "a\\"b"\ntheme = "plain"\n[usage]\n',
        ),
        (
            '[console]\n# model = "x"\n  model = "y" # z\n\n[archive]\non = true\n',
            '[console]\n# model = "x"\nmodel = "a\\"b"\n\n[archive]\non = true\n',
        ),
    ],
)
def test_a_choice_is_written_and_all_else_stays(before: str, after: str) -> None:
    path = write(before)
    assert set_config("console", "model", 'a"b').model == 'a"b'
    assert path.read_text() == after
    assert path.stat().st_mode & 0o077 == 0
    assert read_config().model == 'a"b'


@pytest.mark.parametrize("odd", ['console = { model = "x" }\n', 'console.model = "x"\n', '[console]\n"model" = "x"\n'])
def test_a_file_that_is_written_otherwise_is_left_alone(odd: str) -> None:
    path = write(odd)
    with pytest.raises((BadRequest, Unwritable)):
        set_config("console", "model", "y")
    assert path.read_text() == odd
