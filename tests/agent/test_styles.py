"""Output styles."""

from pathlib import Path

from steno.agent.styles import DEFAULT, STYLES, Style, discover_styles, pick_style

PIRATE = "---\nname: Pirate\ndescription: Arr\nkeep-coding-instructions: true\n---\nTalk so.\n"


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def find(tmp_path: Path, *, trusted: bool = True) -> tuple[Style, ...]:
    env = {"CLAUDE_CONFIG_DIR": str(tmp_path / "config")}
    return discover_styles(str(tmp_path / "work"), trusted=trusted, env=env)[0]


def test_there_are_three_without_any_file(tmp_path: Path) -> None:
    assert find(tmp_path) == STYLES
    assert [style.name for style in STYLES] == ["default", "Explanatory", "Learning"]
    assert all(style.prompt for style in STYLES[1:])


def test_a_file_says_what_a_style_is(tmp_path: Path) -> None:
    path = write(tmp_path / "config/output-styles/pirate.md", PIRATE)
    write(tmp_path / "config/output-styles/plain.md", "Plainly.")
    styles = find(tmp_path)
    assert pick_style(styles, "Pirate") == Style(
        name="Pirate",
        description="Arr",
        prompt="Talk so.",
        keeps_coding=True,
        origin="user",
        path=str(path),
    )
    plain = pick_style(styles, "plain")
    assert plain is not None
    assert (plain.prompt, plain.keeps_coding) == ("Plainly.", False)


def test_the_projects_own_stands_before_the_users_once_it_is_trusted(tmp_path: Path) -> None:
    write(tmp_path / "config/output-styles/pirate.md", PIRATE)
    write(tmp_path / "work/.claude/output-styles/pirate.md", PIRATE)
    for trusted, origin in ((True, "project"), (False, "user")):
        style = pick_style(find(tmp_path, trusted=trusted), "Pirate")
        assert style is not None
        assert style.origin == origin


def test_a_style_is_picked_by_its_name() -> None:
    assert pick_style(STYLES, "") is DEFAULT
    assert pick_style(STYLES, "learning") is STYLES[2]
    assert pick_style(STYLES, "nosuch") is None
