"""Output styles."""

from pathlib import Path

from steno.agent.context.system_prompt import (
    BUILT_IN_STYLES,
    DEFAULT_STYLE,
    OutputStyle,
    discover_output_styles,
    find_output_style,
)

PIRATE = "---\nname: Pirate\ndescription: Arr\nkeep-coding-instructions: true\n---\nTalk so.\n"


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def find(tmp_path: Path, *, trusted: bool = True) -> tuple[OutputStyle, ...]:
    env = {"CLAUDE_CONFIG_DIR": str(tmp_path / "config")}
    return discover_output_styles(str(tmp_path / "work"), trusted=trusted, env=env)[0]


def test_there_are_three_without_any_file(tmp_path: Path) -> None:
    assert find(tmp_path) == BUILT_IN_STYLES
    assert [style.name for style in BUILT_IN_STYLES] == ["default", "Explanatory", "Learning"]
    assert all(style.prompt for style in BUILT_IN_STYLES[1:])


def test_a_file_says_what_a_style_is(tmp_path: Path) -> None:
    path = write(tmp_path / "config/output-styles/pirate.md", PIRATE)
    write(tmp_path / "config/output-styles/plain.md", "Plainly.")
    styles = find(tmp_path)
    assert find_output_style(styles, "Pirate") == OutputStyle(
        name="Pirate", description="Arr", prompt="Talk so.", keeps_base_prompt=True, origin="user", path=str(path)
    )
    plain = find_output_style(styles, "plain")
    assert plain is not None
    assert (plain.prompt, plain.keeps_base_prompt) == ("Plainly.", False)


def test_the_projects_own_stands_before_the_users_once_it_is_trusted(tmp_path: Path) -> None:
    write(tmp_path / "config/output-styles/pirate.md", PIRATE)
    write(tmp_path / "work/.claude/output-styles/pirate.md", PIRATE)
    for trusted, origin in ((True, "project"), (False, "user")):
        style = find_output_style(find(tmp_path, trusted=trusted), "Pirate")
        assert style is not None
        assert style.origin == origin


def test_a_style_is_picked_by_its_name() -> None:
    assert find_output_style(BUILT_IN_STYLES, "") is DEFAULT_STYLE
    assert find_output_style(BUILT_IN_STYLES, "learning") is BUILT_IN_STYLES[2]
    assert find_output_style(BUILT_IN_STYLES, "nosuch") is None
