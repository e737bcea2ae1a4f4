"""Commands of the user's and the project's own."""

import asyncio
from pathlib import Path

import pytest

from steno.agent.config.skills import (
    ExpandedPrompt,
    SlashCommand,
    discover_commands,
    expand_prompt,
    find_command,
    invocation_text,
    parse_command,
    parse_invocation,
)


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def fill(body: str, arguments: str = "", head: str = "", **names: str) -> str:
    text = f"---\n{head}\n---\n{body}" if head else body
    return asyncio.run(expand_prompt(parse_command(text, "x"), arguments, variables=names)).text


@pytest.mark.parametrize(
    ("body", "arguments", "text"),
    [
        ("Say $ARGUMENTS.", 'big "wide world"', 'Say big "wide world".'),
        ("$0 then $1", 'big "wide world"', "big then wide world"),
        ("$ARGUMENTS[1]-$ARGUMENTS[0]", "a b", "b-a"),
        ("$0 $1 $2", "a b", "a b $2"),
        ("$ARGUMENTS", "", ""),
        ("no place", "", "no place"),
        ("no place\n", "one two", "no place\n\n\nARGUMENTS: one two"),
        ("$0", "it's", "it's"),
        ("costs $5 or $x", "a", "costs $5 or $x"),
        ("$ARGUMENTS", "$0 $ARGUMENTS !`ls`", "$0 $ARGUMENTS !`ls`"),
        ("$ARGUMENTSX", "", "$ARGUMENTSX"),
    ],
)
def test_arguments_are_filled_in(body: str, arguments: str, text: str) -> None:
    assert fill(body, arguments) == text


def test_words_can_have_names() -> None:
    head = "arguments: [issue, issue_title]"
    assert fill("$issue: $issue_title $issues", "12 'a b'", head) == "12: a b $issues"


def test_names_of_the_session_are_filled_in() -> None:
    assert fill("${CLAUDE_SESSION_ID} ${HOME}", CLAUDE_SESSION_ID="s1") == "s1 ${HOME}"


def run(body: str, arguments: str = "") -> tuple[ExpandedPrompt, list[str]]:
    ran: list[str] = []

    async def shell(line: str) -> str:
        ran.append(line)
        return f"<out {len(ran)} $0 !`again` @file>\n"

    return asyncio.run(expand_prompt(parse_command(body, "x"), arguments, shell=shell)), ran


def test_commands_run_through_whoever_judges_them() -> None:
    filled, ran = run("Now: !`git status $0` and\n!`ls`\nend", "-s")
    assert ran == ["git status -s", "ls"]
    assert filled.text == ("Now: <out 1 $0 !`again` @file> and\n<out 2 $0 !`again` @file>\nend")
    assert filled.mentions == ()


def test_a_block_of_commands_runs_as_one() -> None:
    filled, ran = run("before\n```!\nnode -v\nls\n```\nafter")
    assert ran == ["node -v\nls"]
    assert filled.text == "before\n<out 1 $0 !`again` @file>\nafter"


@pytest.mark.parametrize("body", ["x!`ls`", "`ls`", "!ls", "```\nls\n```", "! `ls`", "```!\nls"])
def test_nothing_else_is_run(body: str) -> None:
    filled, ran = run(body)
    assert not ran
    assert filled.text == body


def test_a_hostile_file_takes_no_time() -> None:
    for text in ("```!\n", "!`", " !`a", "$ARGUMENTS[", "${", "$"):
        body = text * (500_000 // len(text))
        filled, _ = run(body)
        assert filled.text


def test_what_the_user_typed_is_never_run() -> None:
    filled, ran = run("$ARGUMENTS", "!`rm -rf /`")
    assert not ran
    assert filled.text == "!`rm -rf /`"


def test_without_anybody_to_run_them_commands_are_left_out() -> None:
    assert fill("a !`ls` b") == "a [not run] b"


def test_files_are_named_and_not_read() -> None:
    filled, _ = run("Look at @src/a.py and `@no`: $ARGUMENTS", "@b.txt")
    assert filled.mentions == ("src/a.py", "b.txt")


def test_the_head_says_what_a_command_is() -> None:
    text = (
        "---\ndescription: Says hello\nargument-hint: [who]\nmodel: haiku\n"
        "allowed-tools: Bash(git add:*), Read\ndisable-model-invocation: true\n---\nHi $0\n"
    )
    assert parse_command(text, "hello", "/p", "project") == SlashCommand(
        name="hello",
        body="Hi $0\n",
        path="/p",
        scope="project",
        description="Says hello",
        argument_hint="[who]",
        allowed_tools=("Bash(git add:*)", "Read"),
        model="haiku",
        model_may_call=False,
    )


def test_without_a_description_the_first_line_tells() -> None:
    assert parse_command("\n# Do it\nnow", "x").description == "Do it"


def test_commands_are_found_with_their_folders_in_their_names(tmp_path: Path) -> None:
    write(tmp_path / "config/commands/hello.md", "user hello")
    write(tmp_path / "config/commands/git/push.md", "push")
    write(tmp_path / "work/.claude/commands/hello.md", "project hello")
    write(tmp_path / "work/.claude/commands/web/page.md", "page")
    write(tmp_path / "work/.claude/commands/readme.txt", "no")
    env = {"CLAUDE_CONFIG_DIR": str(tmp_path / "config")}
    commands, notes = discover_commands(str(tmp_path / "work"), trusted=True, env=env)
    assert [(one.name, one.scope) for one in commands] == [
        ("git:push", "user"),
        ("hello", "user"),
        ("web:page", "project"),
    ]
    assert not notes
    commands, _ = discover_commands(str(tmp_path / "work"), trusted=False, env=env)
    assert [one.name for one in commands] == ["git:push", "hello"]


def test_a_loop_of_links_ends(tmp_path: Path) -> None:
    write(tmp_path / "work/.claude/commands/x.md", "x")
    (tmp_path / "work/.claude/commands/loop").symlink_to(tmp_path / "work")
    env = {"CLAUDE_CONFIG_DIR": str(tmp_path / "config")}
    commands, _ = discover_commands(str(tmp_path / "work"), trusted=True, env=env)
    assert [one.name for one in commands] == ["x"]


def test_a_command_is_found_by_the_end_of_its_name_if_only_one_has_it() -> None:
    commands = [parse_command("", name) for name in ("a:x", "b:x", "c:y", "y:z", "z")]

    def found(name: str) -> str:
        command = find_command(commands, name)
        return "" if command is None else command.name

    assert [found(name) for name in ("a:x", "x", "y", "z", "q")] == ["a:x", "", "c:y", "z", ""]


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("/hello", ("hello", "")),
        ("/hello big world ", ("hello", "big world")),
        ("/a:b-c x\ny", ("a:b-c", "x\ny")),
        ("hello /x", None),
        ("/usr/bin/x is broken", None),
        ("/", None),
        ("", None),
    ],
)
def test_a_prompt_may_call_a_command(text: str, call: tuple[str, str] | None) -> None:
    assert parse_invocation(text) == call


def test_a_session_keeps_the_call_in_its_own_form() -> None:
    assert invocation_text("hello", "big world") == (
        "<command-message>hello</command-message>\n<command-name>/hello</command-name>\n"
        "<command-args>big world</command-args>"
    )
    assert "args" not in invocation_text("hello")
