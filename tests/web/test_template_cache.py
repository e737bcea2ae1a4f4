"""Templates are compiled once, and again only after changes."""

import os
from pathlib import Path
from types import CodeType

import pytest
from jinja2 import DictLoader, Environment

from steno.web.template_cache import TemplateCache


class Counted(Environment):
    """Counts what is compiled."""

    compiled = 0

    def _compile(self, source: str, filename: str) -> CodeType:
        self.compiled += 1
        return super()._compile(source, filename)


@pytest.fixture
def reader(tmp_path: Path) -> Path:
    path = tmp_path / "reader.py"
    path.write_text("autoescape = True")
    return path


def drawn(reader: Path, text: str = "{{ 6 * 7 }}") -> tuple[str, int]:
    environment = Counted(
        loader=DictLoader({"page": text}), bytecode_cache=TemplateCache(str(reader)), auto_reload=False
    )
    return environment.get_template("page").render(), environment.compiled


def test_a_template_is_compiled_once(reader: Path) -> None:
    assert drawn(reader) == ("42", 1)
    assert drawn(reader) == ("42", 0)


def test_another_text_is_compiled_again(reader: Path) -> None:
    drawn(reader)
    assert drawn(reader, "{{ 6 * 8 }}") == ("48", 1)


def test_another_way_of_reading_them_is_noticed(reader: Path) -> None:
    drawn(reader)
    reader.write_text("autoescape = False")
    assert drawn(reader) == ("42", 1)


@pytest.mark.parametrize("place", [0, 20, -1])
def test_what_was_damaged_is_compiled_again(reader: Path, place: int) -> None:
    drawn(reader)
    (kept,) = Path(os.environ["STENO_HOME"], "templates").iterdir()
    data = bytearray(kept.read_bytes())
    data[place] ^= 1
    kept.write_bytes(data)
    assert drawn(reader) == ("42", 1)
    assert drawn(reader) == ("42", 0)


def test_a_folder_that_takes_nothing_costs_only_time(
    reader: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("STENO_HOME", str(tmp_path / "file" / "below"))
    assert [drawn(reader), drawn(reader)] == [("42", 1), ("42", 1)]
