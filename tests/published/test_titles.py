"""A session has one title everywhere, however its names and prompts are written."""

from pathlib import Path

import pytest
from tests.builders import image, session
from tests.conftest import NOW
from tests.published.surfaces import every_surface
from tests.web.explorer import explorer

LONG = "word   \n\n    indented    " * 60
WORDS = {
    "one\n  two\nthree": "one two three",
    LONG: " ".join(LONG.split())[:200].rstrip(),
    "a" * 199 + " bcd": "a" * 199,
    "é" * 300: "é" * 200,
    "\n" * 900 + "words": "words",
    " \n": "The prompt",
}
"""How a title is written, and what it is."""
NAMES = {"custom-title": "customTitle", "ai-title": "aiTitle", "last-prompt": "lastPrompt"}


def _named(kind: str, words: str, seed: str) -> bytes:
    made = session("2.1.42", seed=seed).turn("The prompt", "done")
    if kind == "summary":
        return made.summary(words, made.uuids()[-1]).bytes()
    return made.side({"type": kind, NAMES[kind]: words, "sessionId": made.session_id}).bytes()


@pytest.mark.parametrize("kind", [*NAMES, "summary", "prompt"])
def test_a_title_is_the_same_everywhere_however_it_is_written(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STENO_NOW", NOW)
    folder = tmp_path / "projects" / "-home-ada-work"
    folder.mkdir(parents=True)
    expected: dict[str, set[str]] = {}
    for number, (words, title) in enumerate(WORDS.items(), 1):
        path = folder / f"{number:08x}-0000-4000-8000-000000000000.jsonl"
        if kind != "prompt":
            path.write_bytes(_named(kind, words, str(number)))
        elif words.strip():
            made = session("2.1.42", seed=str(number)).turn(words, "done")
            path.write_bytes(made.bytes())
        else:
            made = session("2.1.42", seed=str(number)).user(words).turn("The prompt", "done")
            path.write_bytes(made.bytes())
        expected[str(path)] = {title}
    with explorer(str(tmp_path / "index"), str(tmp_path)) as found:
        said = every_surface(found.refresh())
    assert {path: {each.title for each in surfaces.values()} for path, surfaces in said.items()} == expected


@pytest.mark.parametrize(("words", "title"), [("And now?", "And now?"), ("", "(session)")])
def test_a_picture_without_words_names_no_session(
    words: str, title: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STENO_NOW", NOW)
    made = session("2.1.42").user([image(b"GIF89a")]).assistant("A dot.").done()
    path = tmp_path / "projects" / "-home-ada-work" / f"{made.session_id}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes((made.turn(words, "done") if words else made).bytes())
    with explorer(str(tmp_path / "index"), str(tmp_path)) as found:
        (said,) = every_surface(found.refresh()).values()
    assert {each.title for each in said.values()} == {title}
