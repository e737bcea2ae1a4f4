"""Every config file is read, refused or changed exactly as recorded."""

import os
import tomllib
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from tests.recorded_answers import assert_recorded, plain

from steno.errors import BadRequest, StenoError, Unreadable, Unwritable
from steno.store.atomic import read_cache, read_private, write_cache, write_private
from steno.store.config import Config, parse_config, read_config, set_config
from steno.store.discovery import read_regular_file
from steno.store.environment import config_dir, demo_dir, home_dir, steno_home

ANSWERS: Final = Path(__file__).with_name("answers")
TEXTS: Final = (
    "",
    "# nothing\n",
    "[check]\n",
    "[other]\n",
    "check = 1\n",
    "[check]\nsilence = []\n",
    '[check]\nsilence = ["a.b", "c.*"]\n',
    '[check]\nsilence = "a.b"\n',
    "[check]\nsilence = [1]\n",
    '[check]\nother = 1\nsilence = ["x"]\n',
    '[check.severity]\n"tools.x" = "info"\n',
    '[check.severity]\n"tools.x" = 3\n',
    '[check.severity]\ntools.x = "info"\n',
    "[check]\nseverity = 3\n",
    '[index]\nroots = ["~/a", "/b"]\n',
    '[index]\nroots = "~/a"\n',
    "[index]\nroots = [3]\n",
    "[index]\nroots = []\nmore = 1\n",
    "index = []\n",
    "[archive]\non = true\n",
    "[archive]\non = 1\n",
    "[archive]\nlevel = 0\n",
    "[archive]\nlevel = 1\n",
    "[archive]\nlevel = 19\n",
    "[archive]\nlevel = 20\n",
    "[archive]\nlevel = true\n",
    "[archive]\nlevel = 3.0\n",
    "[archive]\nlevel = 5\non = false\n",
    "[archive]\nway = 5\n",
    "archive = true\n",
    '[usage]\nprices = "p.json"\n',
    '[usage]\nprices = "/etc/p.json"\n',
    '[usage]\nprices = "~/p.json"\n',
    '[usage]\nprices = ""\n',
    "[usage]\nprices = 3\n",
    "[usage]\ncost = 3\n",
    "usage = 3\n",
    *(f'[console]\ntheme = "{name}"\n' for name in ("colour", "plain", "reader", "odd", "")),
    *(f'[console]\nkeys = "{name}"\n' for name in ("emacs", "vi", "odd", "")),
    '[console]\nmodel = "any model"\n',
    "[console]\nmodel = 3\n",
    "[console]\nkeys = 3\n",
    "[console]\nsize = 3\n",
    "console = 3\n",
    "x = \n",
    "[check\n",
    "a = 1\n\n[b\n\n",
    'a = "x\n',
    "a = 1\na = 2\n",
    "# level\n[archive]\n# level = 3\nsub-level = 1\nlevel = 0\n",
    "\ufeff[archive]\nlevel = 2\n",
    '[check]\nsilence = ["a"]\n[usage]\nprices = "x"\n[console]\ntheme = "plain"\nkeys = "vi"\n',
)


def _parsed(text: str) -> object:
    try:
        made = parse_config("/home/ada/config.toml", text)
    except BadRequest as error:
        return _without_reason(plain(error), text)
    fields = plain(made)
    new = plain(Config())
    del fields["text"]
    return {name: value for name, value in fields.items() if new[name] != value}


def _without_reason(said: dict[str, Any], text: str) -> dict[str, Any]:
    """Return an error without what the parser of TOML says, which is not ours."""
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        said["says"] = said["says"].rpartition(": ")[0]
    return said


def test_every_text_is_read_as_recorded() -> None:
    # The home folder is another in each run.
    home = str(Path("~").expanduser())
    answers = {text: _parsed(text) for text in TEXTS}
    shown: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(plain(answers)).replace(home.encode(), b"~"))
    assert_recorded(ANSWERS / "config.json", shown)


def test_a_config_file_is_read_from_its_place(tmp_path: Path) -> None:
    path = Path(steno_home()) / "config.toml"
    assert read_config() == Config(str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\xef\xbb\xbf[archive]\nlevel = 7\n")
    assert read_config().archive_level == 7
    assert read_config(str(path)).archive_level == 7
    path.write_bytes(b"# a\n# b\n\xff\n")
    with pytest.raises(BadRequest) as refused:
        read_config()
    assert str(refused.value) == f"{path}, line 3: not UTF-8"
    path.write_bytes(b"#" * (1 << 20))
    assert read_config().archive_level == 3
    path.write_bytes(b"#" * ((1 << 20) + 1))
    with pytest.raises(BadRequest) as refused:
        read_config()
    assert str(refused.value) == f"{path} is larger than 1 MB"
    path.unlink()
    path.mkdir()
    with pytest.raises(Unreadable) as unreadable:
        read_config()
    assert str(unreadable.value) == f"cannot read {path}: not a regular file"
    deep = tmp_path / "deep.toml"
    deep.write_text("a = " + "[" * 3000 + "]" * 3000)
    with pytest.raises(BadRequest):
        read_config(str(deep))


def test_the_line_of_a_word_is_the_first_outside_of_comments() -> None:
    made = Config("/c", text="# on\nson = 1\non-x = 2\n  on = 3 # level\nlevel = 4\n")
    assert [made.line_of(word) for word in ("on", "son", "level", "absent", "x")] == [4, 2, 5, 1, 1]
    error = made.error_at("level", "is odd", "do this")
    assert (str(error), error.hint) == ("/c, line 5: is odd", "do this")


SETS: Final = (
    "",
    "\n",
    "# note",
    "[console]\n",
    "[console]",
    " [ console ] # mine\n",
    '[console]\ntheme = "colour"\n',
    '[console]\nkeys = "vi"\n  theme   =  "colour" # why\nmodel = "m"\n',
    '[archive]\non = true\n[console]\nkeys = "vi"\n[check]\n',
    "[archive]\non = true\n",
    '[console]\n[check]\nsilence = ["theme = 1"]\n',
    '[check]\nsilence = ["x"]\n\n[console]\nmodel = "m"\n\n\n',
    'console.theme = "colour"\n',
    'console = { theme = "colour" }\n',
    '[console]\n"theme" = "colour"\n',
    '[console]\nmodel = """\n[x]\n"""\n',
    "[broken\n",
)  # fmt: skip


def test_a_key_is_set_and_all_else_stays_letter_by_letter() -> None:
    path = Path(steno_home()) / "config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    answers: dict[str, object] = {}
    for text in SETS:
        path.write_text(text)
        try:
            made = set_config("console", "theme", "plain")
        except StenoError as error:
            said = _without_reason(plain(error), f"{text}\n[console]\ntheme = 1")
            said["says"] = said["says"].replace(str(path), "config.toml")
            answers[text] = said
            assert path.read_text() == text
            continue
        assert made.theme == read_config().theme == "plain"
        assert made.text == path.read_text()
        answers[text] = path.read_text()
    assert_recorded(ANSWERS / "config_set.json", answers)


def test_what_is_set_already_is_not_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    set_config("console", "model", 'a "b" \\ é')
    assert read_config().model == 'a "b" \\ é'
    path = Path(steno_home()) / "config.toml"
    os.utime(path, (1, 1))
    set_config("console", "model", 'a "b" \\ é')
    assert path.stat().st_mtime == 1

    def refuse(name: str, data: bytes) -> bool:
        return bool(name and data) and False

    monkeypatch.setattr("steno.store.config.write_private", refuse)
    with pytest.raises(Unwritable, match="cannot write"):
        set_config("console", "model", "other")


# Private files


def test_private_files_hold_what_was_written_and_are_their_owners(tmp_path: Path) -> None:
    assert read_private("a/b") is None
    assert write_private("a/b", b"one")
    path = Path(steno_home()) / "a" / "b"
    assert (path.read_bytes(), read_private("a/b")) == (b"one", b"one")
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert write_private("a/b", b"2")
    assert [each.name for each in path.parent.iterdir()] == ["b"]
    assert path.read_bytes() == b"2"
    assert not write_private("a/b/c", b"x")
    path.unlink()
    path.mkdir()
    assert not write_private("a/b", b"x")
    assert tmp_path


def test_caches_are_checked_and_damaged_ones_set_aside() -> None:
    path = Path(steno_home()) / "cache"
    assert read_cache("cache") is None
    assert write_cache("cache", b"data")
    assert read_cache("cache") == b"data"
    raw = path.read_bytes()
    assert raw.startswith(b"steno-cache 1 ")
    assert raw.endswith(b"\ndata")
    assert len(raw) == len(b"steno-cache 1 ") + 33 + 4
    for damage in (raw[:-1], raw + b"x", raw.replace(b"data", b"dota"), b"", b"x"):
        path.write_bytes(damage)
        assert read_cache("cache") is None
        assert not path.exists()
    aside = [each for each in path.parent.iterdir() if each.name.startswith("cache.damaged-")]
    assert len(aside) == 3
    path.write_bytes(b'{"old": 1}')
    assert read_cache("cache") is None
    assert path.exists()
    assert write_cache("cache", b"")
    assert read_cache("cache") == b""
    path.unlink()
    path.mkdir()
    assert read_cache("cache") is None
    assert not path.exists()


def test_a_plain_file_is_read_up_to_a_size(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"x" * (1 << 20))
    assert read_regular_file(str(path), 1 << 20) == path.read_bytes()
    path.write_bytes(b"x" * ((1 << 20) + 1))
    with pytest.raises(BadRequest) as large:
        read_regular_file(str(path), 1 << 20)
    assert str(large.value) == f"{path} is larger than 1 MB"
    for name, said in (("none", "no such file or directory"), (".", "not a regular file")):
        with pytest.raises(Unreadable) as refused:
            read_regular_file(str(tmp_path / name), 1 << 20)
        assert str(refused.value) == f"cannot read {tmp_path / name}: {said}"


# Places


def test_places_follow_the_environment_of_each_system() -> None:
    """What each variable means on each system, and what counts where several are set."""
    variables: dict[str, dict[str, str]] = {
        "nothing": {},
        "home": {"HOME": "/h"},
        "home with an end": {"HOME": "/h/"},
        "empty home": {"HOME": ""},
        "profile": {"USERPROFILE": "C:\\u"},
        "profile and home": {"USERPROFILE": "C:\\u\\", "HOME": "/h"},
        "local data": {"USERPROFILE": "C:\\u", "LOCALAPPDATA": "D:\\l"},
        "data home": {"HOME": "/h", "XDG_DATA_HOME": "/d"},
        "relative data home": {"HOME": "/h", "XDG_DATA_HOME": "d"},
        "own": {"HOME": "/h", "STENO_HOME": "/s", "CLAUDE_CONFIG_DIR": "/c"},
        "own, empty": {"HOME": "/h", "STENO_HOME": "", "CLAUDE_CONFIG_DIR": ""},
    }
    answers: dict[str, object] = {}
    for name, env in variables.items():
        for platform in ("linux", "darwin", "win32"):
            made: list[object] = []
            for ask in (home_dir, config_dir, steno_home, demo_dir):
                try:
                    made.append(ask(env, platform))
                except BadRequest as error:
                    made.append(f"{error} / {error.hint}")
            answers[f"{name}, {platform}"] = made
    assert_recorded(ANSWERS / "places.json", answers)
