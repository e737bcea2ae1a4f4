"""Sessions of our own check without a single remark, however much happens in them."""

from pathlib import Path

from tests.whole.house import House
from tests.whole.test_tools import QUESTION, TODO, edit, furnish, multi, read, write

from steno.check.file_reports import check_files, find_all_files
from steno.llm.testserver.responders import ErrorReply, redacted_thinking, text, thinking, tool
from steno.llm.testserver.scripted_responder import ScriptedResponder

BUSY = ErrorReply(status=529, kind="overloaded_error", message="Overloaded")
TASK = {"description": "find it", "prompt": "look below", "subagent_type": "general-purpose"}


def remarks(house: House) -> list[tuple[str, str]]:
    """Return everything that a check has to say, be it ever so small."""
    found = find_all_files(str(house.config), [])
    files = [file for report in check_files(found, problems=[]) for file in report.files]
    assert files
    return [(each.id, each.message) for file in files for each in file.findings]


def test_a_chat_with_every_tool_checks_without_a_remark(tmp_path: Path) -> None:
    script = ScriptedResponder()
    house = House(tmp_path, script, effort="high")
    furnish(house)
    script.on("Summarize", "In short.")
    script.on("look below", [text("I look."), read("a.txt")]).then("Found.")
    script.on(
        "go",
        [thinking("hm"), redacted_thinking("Zm9v"), text("I look."), *map(read, ("a.txt", "none.txt"))],
        first=[BUSY],
    )
    script.then([read("picture.png"), read("book.ipynb"), read("paper.pdf")])
    script.then([edit("a.txt", "one", "1"), multi("a.txt", ("two", "2")), write("b.txt", "new")])
    script.then(tool("NotebookEdit", notebook_path="book.ipynb", cell_id="one", new_source="2"))
    script.then([tool("Glob", pattern="*"), tool("Grep", pattern="1")])
    script.then([tool("Bash", command="echo hi"), tool("Bash", command="false")])
    script.then(tool("Bash", command="sleep 60", run_in_background=True))
    script.then([tool("TodoWrite", todos=[TODO]), tool("TaskCreate", subject="s", description="d")])
    script.then([tool("TaskList"), tool("AskUserQuestion", questions=[QUESTION])])
    script.then([tool("Skill", skill="sewing"), tool("WebFetch", url="http://10.0.0.1", prompt="p")])
    script.then([tool("Agent", **TASK), tool("Agent", **TASK, run_in_background=True)])
    script.then([tool("EnterPlanMode")]).then("Done.")
    house.say("go and see @a.txt, @sub and @picture.png", "again")
    house.compact()
    house.say("and now")
    house.proves()
    assert remarks(house) == []
