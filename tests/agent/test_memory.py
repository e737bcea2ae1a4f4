"""What the model should always know."""

import os
from pathlib import Path

import pytest

from steno.agent.context.system_prompt import Memory, blank_code, import_mentions, load_memory


class Place:
    """A home and a project two folders below it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = root / "home"
        self.project = root / "home" / "code" / "app"
        self.project.mkdir(parents=True)

    def write(self, path: str, text: str) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
        return file

    def load(self, *, trusted: bool = True, outside: bool | None = None) -> Memory:
        return load_memory(
            str(self.project),
            trusted=trusted,
            allow_outside=outside,
            env={"HOME": str(self.home)},
            managed=str(self.root / "etc"),
        )

    def texts(self, *, trusted: bool = True, outside: bool | None = None) -> list[str]:
        return [part.text for part in self.load(trusted=trusted, outside=outside).files]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_without_files_there_is_nothing(place: Place) -> None:
    assert place.load() == Memory()


def test_files_are_read_from_the_farthest_to_the_nearest(place: Place) -> None:
    place.write("home/code/app/CLAUDE.local.md", "7 local")
    place.write("home/code/app/.claude/CLAUDE.md", "6 dot")
    place.write("home/code/app/CLAUDE.md", "5 project")
    place.write("home/code/CLAUDE.md", "4 parent")
    place.write("CLAUDE.md", "3 root")
    place.write("home/.claude/CLAUDE.md", "2 user")
    place.write("etc/CLAUDE.md", "1 managed")
    memory = place.load()
    assert [part.text[0] for part in memory.files] == list("1234567")
    assert [part.kind for part in memory.files][-3:] == ["project", "project", "local"]
    places = [memory.text.index(part.text) for part in memory.files]
    assert places == sorted(places)
    assert str(place.project / "CLAUDE.md") in memory.text


def test_nothing_of_a_project_or_above_it_counts_before_it_is_trusted(place: Place) -> None:
    place.write("home/.claude/CLAUDE.md", "user")
    place.write("home/code/CLAUDE.md", "parent")
    place.write("home/code/app/CLAUDE.md", "project")
    place.write("home/code/app/CLAUDE.local.md", "local")
    place.write("home/code/app/.claude/rules/a.md", "rule")
    assert place.texts(trusted=False) == ["user"]


def test_agents_md_counts_where_there_is_no_claude_md(place: Place) -> None:
    place.write("home/code/AGENTS.md", "parent agents")
    place.write("home/code/app/AGENTS.md", "agents")
    assert place.texts() == ["parent agents", "agents"]
    place.write("home/code/app/CLAUDE.md", "claude")
    assert place.texts() == ["parent agents", "claude"]


def test_claude_md_may_bring_in_agents_md(place: Place) -> None:
    place.write("home/code/app/AGENTS.md", "agents")
    place.write("home/code/app/CLAUDE.md", "@AGENTS.md")
    assert place.texts() == ["@AGENTS.md", "agents"]


def test_a_file_brings_in_others_relative_to_itself(place: Place) -> None:
    place.write("home/code/app/CLAUDE.md", "See @docs/a.md, and (@docs/with\\ space.md).")
    place.write("home/code/app/docs/a.md", "a, then @b.md")
    place.write("home/code/app/docs/b.md", "b")
    place.write("home/code/app/docs/with space.md", "c")
    memory = place.load()
    assert [part.text for part in memory.files][1:] == ["a, then @b.md", "b", "c"]
    assert memory.files[2].importer.endswith("docs/a.md")


def test_the_home_folder_may_be_named(place: Place) -> None:
    place.write("home/mine.md", "mine")
    place.write("home/.claude/CLAUDE.md", "@~/mine.md")
    assert place.texts(trusted=False) == ["@~/mine.md", "mine"]


def test_a_loop_ends(place: Place) -> None:
    place.write("home/code/app/CLAUDE.md", "@a.md")
    place.write("home/code/app/a.md", "@CLAUDE.md @a.md @./a.md")
    assert len(place.texts()) == 2


def test_imports_end_five_deep(place: Place) -> None:
    place.write("home/code/app/CLAUDE.md", "@1.md")
    for number in range(1, 9):
        place.write(f"home/code/app/{number}.md", f"@{number + 1}.md")
    memory = place.load()
    assert [Path(part.path).stem for part in memory.files] == ["CLAUDE", "1", "2", "3", "4", "5"]
    assert "6.md" in str(memory.notes[0])


@pytest.mark.parametrize(
    "text",
    [
        "`@a.md`",
        "``x ` @a.md``",
        "```\n@a.md\n```",
        "~~~md\n@a.md\n~~~\n",
        "```\n@a.md\n",
        "````\n```\n@a.md\n````",
        "me@a.md",
        "<!-- @a.md -->",
    ],
)
def test_code_and_comments_bring_in_nothing(place: Place, text: str) -> None:
    place.write("home/code/app/CLAUDE.md", text)
    place.write("home/code/app/a.md", "a")
    assert len(place.texts()) == 1


def test_what_follows_code_is_text_again(place: Place) -> None:
    place.write("home/code/app/CLAUDE.md", "```\ncode\n```\n` alone, @a.md")
    place.write("home/code/app/a.md", "a")
    assert place.texts()[1:] == ["a"]


def test_comments_among_people_are_not_for_the_model(place: Place) -> None:
    place.write("home/code/app/CLAUDE.md", "one\n<!-- not\nthis -->\ntwo\n```\n<!-- this -->\n```\n")
    assert place.texts() == ["one\ntwo\n```\n<!-- this -->\n```\n"]
    place.write("home/code/app/CLAUDE.md", "a <!-- x --> b\n<!-- y --><!-- z -->\nc <!-- d")
    assert place.texts() == ["a  b\n\nc <!-- d"]


def test_a_hostile_file_takes_no_time(place: Place) -> None:
    for text in ("<!--\n", "`" * 3 + "\n", "` ``", "@a ", "[", "<!-- --> "):
        place.write("home/code/app/CLAUDE.md", text * (200_000 // len(text)))
        assert len(place.load().files) == 1


def test_a_file_that_is_not_there_is_only_a_name(place: Place) -> None:
    place.write("home/code/app/CLAUDE.md", "@param @someone @~nobody/x @. @" + "x" * 5000)
    memory = place.load()
    assert len(memory.files) == 1
    assert not memory.notes


def test_files_elsewhere_are_brought_in_only_where_that_is_allowed(place: Place) -> None:
    place.write("elsewhere/key", "secret")
    place.write("home/code/app/CLAUDE.md", f"@{place.root}/elsewhere/key @../../../elsewhere/key")
    assert place.texts()[1:] == ["secret"]
    memory = place.load(outside=False)
    assert len(memory.files) == 1
    assert "outside" in str(memory.notes[0])


def test_a_link_to_elsewhere_is_elsewhere(place: Place) -> None:
    secret = place.write("elsewhere/key", "secret")
    (place.project / "CLAUDE.md").symlink_to(secret)
    assert place.texts() == ["secret"]
    assert place.texts(outside=False) == []


def test_rules_without_paths_always_count(place: Place) -> None:
    place.write("home/code/app/.claude/rules/b.md", "b")
    place.write("home/code/app/.claude/rules/sub/a.md", "a")
    place.write("home/code/app/.claude/rules/c.md", "---\npaths: src/**\n---\nc")
    place.write("home/.claude/rules/mine.md", "mine")
    assert place.texts() == ["mine", "b", "a"]


def test_the_config_folder_is_not_also_the_projects_own(place: Place) -> None:
    place.write("home/.claude/CLAUDE.md", "user")
    place.project = place.home
    assert place.texts() == ["user"]


def test_a_file_beside_the_config_folder_is_read(place: Place) -> None:
    place.write("home/.claude/CLAUDE.md", "user")
    place.write("home/CLAUDE.md", "home")
    place.write("home/code/app/CLAUDE.md", "project")
    assert place.texts() == ["user", "home", "project"]


def test_too_much_is_cut_and_said(place: Place) -> None:
    place.write("home/code/app/CLAUDE.md", "x" * 300_000)
    memory = place.load()
    assert len(memory.files[0].text) == 256 * 1024
    assert "truncated" in str(memory.notes[0])
    for number in range(8):
        place.write(f"home/code/app/.claude/rules/{number}.md", "y" * 250_000)
    memory = place.load()
    assert sum(len(part.text) for part in memory.files) <= 1 << 20
    assert "size limit of all memory files" in str(memory.notes[-1])


def test_bytes_that_are_no_text_are_left_out_and_a_mark_at_the_start_is_no_text(place: Place) -> None:
    (place.project / "CLAUDE.md").write_bytes(b"\xef\xbb\xbfhi\r\n@pic")
    (place.project / "pic").write_bytes(b"\x89PNG\x00\x01")
    memory = place.load()
    assert [part.text for part in memory.files] == ["hi\n@pic"]
    assert "not a text file" in str(memory.notes[0])


def test_a_pipe_is_not_waited_for(place: Place) -> None:
    os.mkfifo(place.project / "CLAUDE.md")
    assert place.load() == Memory()


def test_prose_keeps_every_place(place: Place) -> None:
    del place
    text = "a `b` c\n```\ncode\n```\nd ``e ` f`` g `"
    assert len(blank_code(text)) == len(text)
    assert blank_code(text).split() == ["a", "c", "d", "g", "`"]
    assert import_mentions('@a "@b" `@c` @a x@d') == ("a", 'b"')
