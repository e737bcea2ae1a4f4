"""The flows and examples of the two dialects, each as a file, and what is in it."""

from collections.abc import Callable
from typing import NamedTuple

from tests.published.forms import Client, Flat, Nested, call

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


class Known(NamedTuple):
    """A file, and what a reader of its description expects of it."""

    data: bytes
    prompts: tuple[str, ...]
    present: tuple[str, ...]
    """Words that are sent, in this order."""
    absent: tuple[str, ...] = ()
    """Words that are not."""


def linear() -> Known:
    made = Flat()
    made.user("Please help me write a Python script")
    made.says("I'll help you create a Python script.")
    made.user("Thanks, and tests?")
    made.says("Here they are.")
    prompts = ("Please help me write a Python script", "Thanks, and tests?")
    said = (prompts[0], "I'll help you", prompts[1], "Here they are.")
    return Known(made.data(), prompts, said)


def tool_usage() -> Known:
    made = Flat()
    made.user("Write it")
    made.says("I'll write it.")
    made.calls("Write", arguments={"file_path": "/path/to/script.py", "content": "#!/usr/bin/env"})
    made.result("File created successfully at: /path/to/script.py")
    made.says("It is there.")
    said = ("Write it", "I'll write it.", "Write", "File created", "It is there.")
    return Known(made.data(), ("Write it",), said)


def parallel_on_their_calls() -> Known:
    made = Flat()
    made.user("Look")
    one = made.calls("Read")
    two = made.calls("Grep", arguments={"pattern": "x"})
    three = made.calls("Glob", arguments={"pattern": "*"})
    made.result("first result", parentUuid=one)
    made.result("second result", parentUuid=two)
    made.result("third result", parentUuid=three)
    made.says("Seen.")
    said = ("Look", "Read", "Grep", "Glob", "first", "second", "third", "Seen.")
    return Known(made.data(), ("Look",), said)


def parallel_on_the_last() -> Known:
    made = Flat()
    made.user("Look")
    for tool in ("Read", "Grep"):
        made.calls(tool, arguments={"pattern": "x"})
    last = made.calls("Glob", arguments={"pattern": "*"})
    for text in ("first result", "second result", "third result"):
        made.result(text, parentUuid=last)
    made.says("Seen.")
    said = ("Look", "Read", "Grep", "Glob", "first", "second", "third", "Seen.")
    return Known(made.data(), ("Look",), said)


def parallel_in_a_row() -> Known:
    made = Flat()
    prompt = made.user("Look")
    for tool in ("Read", "Grep", "Glob"):
        made.calls(tool, arguments={"pattern": "x"}, parentUuid=prompt)
    for text in ("first result", "second result", "third result"):
        made.result(text)
    made.says("Seen.")
    said = ("Look", "Read", "Grep", "Glob", "first", "second", "third", "Seen.")
    return Known(made.data(), ("Look",), said)


def error_recovery() -> Known:
    made = Flat()
    made.user("Write to the protected path")
    made.says("First attempt.")
    made.calls("Write", arguments={"file_path": "/protected/path", "content": ""})
    made.fails("Error: Permission denied writing to /protected/path")
    made.says("Another way.")
    made.calls("Bash", arguments={"command": "tee /tmp/path"})
    made.result("success")
    said = ("First attempt.", "Write", "Permission denied", "Another way.", "Bash", "success")
    return Known(made.data(), ("Write to the protected path",), said)


def sidechain() -> Known:
    made = Flat()
    made.user("Improve the code")
    made.says("I ask a sub-agent.")
    own = {"isSidechain": True, "userType": "external"}
    made.user("Analyze this code for potential improvements", **own)
    made.says("Three improvements.", isSidechain=True)
    made.says("There are three.")
    said = ("Improve the code", "I ask a sub-agent.", "There are three.")
    return Known(made.data(), ("Improve the code",), said, ("Analyze this code", "Three improve"))


def compaction() -> Known:
    made = Flat()
    made.user("First question")
    made.says("First answer.")
    made.user("/compact")
    made.compacts("compacting")
    figures = {"preservedMessages": 15, "totalMessages": 150, "compressionRatio": 0.1}
    made.compacts("compacted", metadata=figures)
    made.says("The conversation is compacted.")
    said = ("First question", "First answer.", "/compact", "The conversation is compacted.")
    return Known(made.data(), ("First question", "/compact"), said)


def restoration() -> Known:
    made = Flat()
    made.user("First question")
    made.says("First answer.")
    made.compacts("compacting")
    figures = {"preservedMessages": 1, "totalMessages": 2, "compressionRatio": 0.5}
    made.compacts("compacted", metadata=figures)
    made.compacts("restoring")
    made.compacts("restored")
    made.user("Second question")
    made.says("Second answer.")
    said = ("First question", "First answer.", "Second question", "Second answer.")
    return Known(made.data(), ("First question", "Second question"), said)


def dropped_by_compaction() -> Known:
    made = Flat()
    made.user("Old question")
    made.says("Old answer.")
    made.user("Kept question")
    made.says("Kept answer.")
    figures = {"preservedMessages": 2, "totalMessages": 4, "compressionRatio": 0.5}
    made.compacts("compacted", metadata=figures)
    made.user("New question")
    made.says("New answer.")
    said = ("2 of 4 messages", "Kept question", "Kept answer.", "New question", "New answer.")
    prompts = ("Old question", "Kept question", "New question")
    return Known(made.data(), prompts, said, ("Old question", "Old answer."))


def flags() -> Known:
    made = Flat()
    made.user("Keep this")
    made.says("Kept.")
    made.user("Deleted prompt", isDeleted=True)
    made.calls("Bash", arguments={"command": "deleted-command"}, isDeleted=True)
    made.result("deleted output")
    made.user("Stopped prompt")
    made.says("Half an ans", isAborted=True)
    made.add("system", "Configuration", subtype="meta", isMeta=True)
    made.add("system", "Status update")
    made.user("Go on")
    made.says("It failed.", subtype="error")
    said = ("Keep this", "Kept.", "Stopped prompt", "Half an ans", "interrupted", "Go on")
    absent = ("Deleted prompt", "deleted-command", "deleted output", "Configuration")
    return Known(made.data(), ("Keep this", "Stopped prompt", "Go on"), said, absent)


def edited() -> Known:
    made = Flat()
    made.user("Question 1")
    second = made.says("Answer 2")
    made.user("Question 3")
    made.says("Answer 4")
    made.user("Question 3, edited", parentUuid=second)
    made.says("Answer 4, new")
    said = ("Question 1", "Answer 2", "Question 3, edited", "Answer 4, new")
    return Known(made.data(), ("Question 1", "Question 3, edited"), said)


def no_parents() -> Known:
    made = Flat()
    made.user("Alone")
    made.says("Answer.")
    made.calls("Read")
    made.result("its result")
    for record in made.records:
        record.pop("parentUuid", None)
    return Known(made.data(), ("Alone",), ("Alone", "Answer.", "Read", "its result"))


def development() -> Known:
    made = Nested()
    made.human("Fix the bug in auth.py")
    made.says("I'll examine the file", call("toolu_1", "Read", file_path="auth.py"))
    made.result("toolu_1", "def login(): pass")
    made.says("Found the issue", call("toolu_2", "Edit", file_path="auth.py"))
    made.result("toolu_2", "File updated successfully")
    said = ("Fix the bug", "I'll examine", "Read", "def login", "Found", "Edit", "File updated")
    return Known(made.data(), ("Fix the bug in auth.py",), said)


def delegation() -> Known:
    made = Nested()
    made.human("Find all bugs")
    asked = call("toolu_1", "Task", subagent_type="bug-hunter", prompt="Find bugs in auth module")
    owner = made.says("Delegating to specialist", asked)
    own = {"isSidechain": True, "userType": "external"}
    made.human("Find bugs in auth module", **own)
    made.says("Analyzing...", call("toolu_2", "Read", file_path="auth.py"), isSidechain=True)
    made.result("toolu_2", "file contents", isSidechain=True)
    made.says("Found 3 issues...", isSidechain=True)
    made.result("toolu_1", "The agent's findings", parentUuid=owner)
    made.says("Three issues.")
    said = ("Find all bugs", "Delegating", "The agent's findings", "Three issues.")
    return Known(made.data(), ("Find all bugs",), said, ("Analyzing...", "file contents"))


def compact_messages() -> Known:
    made = Nested()
    made.human("Early question")
    made.says("Early answer.")
    made.add("compact_prelude", "Previous message content...", parentUuid=None)
    made.add("compact_recap", "Summary of compacted conversation...")
    made.human("Late question")
    made.says("Late answer.")
    said = ("Previous message content", "Summary of compacted", "Late question", "Late answer.")
    prompts = ("Early question", "Late question")
    return Known(made.data(), prompts, said, ("Early question", "Early answer."))


def active_branch() -> Known:
    made = Nested()
    made.human("Question")
    fork = made.says("Answer.")
    made.human("New branch", is_active=True)
    made.says("New branch's answer.", is_active=True)
    made.human("Old branch", parentUuid=fork, is_active=False)
    made.says("Old branch's answer.", is_active=False)
    said = ("Question", "Answer.", "New branch", "New branch's answer.")
    return Known(made.data(), ("Question", "New branch"), said, ("Old branch",))


def pictures() -> Known:
    made = Nested()
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    made.human([{"type": "text", "text": "What is this?"}, image])
    made.says("One pixel.")
    return Known(made.data(), ("What is this?",), ("What is this?", "image/png", "One pixel."))


def failed_and_deleted() -> Known:
    made = Nested()
    made.human("Run it")
    made.says(call("toolu_1", "Bash", command="make"), call("toolu_2", "Bash", command="make test"))
    results = [
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": "it failed"},
        {"type": "tool_result", "tool_use_id": "toolu_2", "content": "no tests"},
    ]
    made.add("tool_result", results, isError=True)
    made.human("Never mind", isDeleted=True)
    made.says("A deleted answer.", isDeleted=True)
    made.human("Again")
    made.says("Stopp", isAborted=True)
    said = ("Run it", "make", "make test", "it failed", "no tests", "Again", "Stopp", "interrupted")
    return Known(made.data(), ("Run it", "Again"), said, ("Never mind", "A deleted answer."))


def deleted_root() -> Known:
    made = Flat()
    made.user("Deleted root", isDeleted=True)
    made.user("Kept beginning.")
    made.says("Begun.")
    made.user("Go on")
    one = made.calls("Bash", arguments={"command": "first"})
    two = made.calls("Bash", arguments={"command": "deleted-call"}, isDeleted=True)
    made.result("first result", parentUuid=one)
    made.result("result of the deleted", parentUuid=two)
    made.says("Seen.")
    said = ("Kept beginning.", "Begun.", "Go on", "first", "first result", "Seen.")
    absent = ("Deleted root", "deleted-call", "result of the deleted")
    return Known(made.data(), ("Kept beginning.", "Go on"), said, absent)


def error_among_parallel() -> Known:
    made = Flat()
    made.user("Look")
    calls = [made.calls("Bash", arguments={"command": name}) for name in ("one", "two", "three")]
    made.result("first result", parentUuid=calls[-1])
    made.fails("second failed", parentUuid=calls[-1])
    made.result("third result", parentUuid=calls[-1])
    made.says("Seen.")
    said = ("Look", "one", "two", "three", "first result", "second failed", "third", "Seen.")
    return Known(made.data(), ("Look",), said)


def compacted_twice() -> Known:
    made = Flat()
    made.user("First")
    made.says("One.")
    made.compacts("compacting")
    made.compacts("compacted", metadata={"preservedMessages": 8, "totalMessages": 8})
    made.user("Second")
    made.says("Two.")
    made.compacts("compacted", metadata={"preservedMessages": 1, "totalMessages": 6})
    made.compacts("restoring")
    made.compacts("restored")
    made.user("Third")
    made.says("Three.")
    said = ("First", "One.", "Second", "Two.", "Third", "Three.")
    return Known(made.data(), ("First", "Second", "Third"), said)


def deep_forks() -> Known:
    made = Nested()
    made.human("Root")
    one = made.says("Fork one.")
    made.human("Left early", is_active=False)
    made.says("Left early's answer.")
    made.human("Kept early", parentUuid=one)
    two = made.says("Fork two.")
    made.human("Left late", is_active=False)
    made.says("Left late's answer.", is_active=False)
    made.human("Kept late", parentUuid=two, is_active=True)
    three = made.says("Fork three.")
    made.human("Left last")
    made.human("Kept last", parentUuid=three)
    made.says("The end.", is_active=True)
    said = ("Root", "Fork one.", "Kept early", "Fork two.", "Kept late", "Kept last", "The end.")
    absent = ("Left early", "Left late", "Left last")
    return Known(made.data(), ("Root", "Kept early", "Kept late", "Kept last"), said, absent)


def results_out_of_order() -> Known:
    made = Nested()
    made.human("Prüfe das 日本 🙂")
    owner = made.says(*(call(f"toolu_{n}", "Read", file_path=f"{n}.py") for n in (1, 2, 3)))
    for number in (3, 1, 2):
        made.result(f"toolu_{number}", f"result {number}", parentUuid=owner)
    made.says("Fertig ✓")
    said = ("Prüfe das 日本 🙂", "result 3", "result 1", "result 2", "Fertig ✓")
    return Known(made.data(), ("Prüfe das 日本 🙂",), said)


def in_a_clients_file() -> Known:
    made = Client()
    made.user("Client's question")
    made.says("Looking.")
    made.says(call("toolu_1", "Read", file_path="a"))
    block = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "result of 004"}
    stamp = 1767261602500
    made.raw(type="tool_result", timestamp=stamp, message={"type": "message", "content": [block]})
    made.says("Client's answer.")
    made.user("Client's second")
    made.says("Trying.")
    made.says(call("toolu_2", "Bash", command="make"))
    made.raw(type="system", subtype="error", message="error of 000", isError=True)
    made.raw(type="user", message="Deleted of 000", isDeleted=True)
    made.raw(type="assistant", message="Deleted answer", isDeleted=True)
    made.raw(type="user", message="Flat question")
    made.says("The end.")
    prompts = ("Client's question", "Client's second", "Flat question")
    said = (prompts[0], "result of 004", prompts[1], "error of 000", prompts[2], "The end.")
    return Known(made.data(), prompts, said, ("Deleted of 000", "Deleted answer"))


def compacted_after_a_compaction() -> Known:
    """The second one says that it keeps more than the first one left."""
    made = Flat()
    made.user("Old question")
    made.says("Old answer.")
    made.user("Kept question")
    made.says("Kept answer.")
    made.compacts("compacted", metadata={"preservedMessages": 2, "totalMessages": 4})
    made.user("New question")
    made.says("New answer.")
    made.compacts("compacted", metadata={"preservedMessages": 5, "totalMessages": 5})
    made.user("Last question")
    made.says("Last answer.")
    prompts = ("Old question", "Kept question", "New question", "Last question")
    said = ("Kept question", "Kept answer.", "New question", "New answer.", "Last question")
    return Known(made.data(), prompts, said, ("Old question", "Old answer."))


def restored_after_two_compactions() -> Known:
    made = Flat()
    for number in ("First", "Second"):
        made.user(f"{number} question")
        made.says(f"{number} answer.")
        made.compacts("compacting")
        made.compacts("compacted", metadata={"preservedMessages": 0, "totalMessages": 2})
    made.compacts("restoring")
    made.compacts("restored")
    made.user("Third question")
    made.says("Third answer.")
    prompts = ("First question", "Second question", "Third question")
    return Known(made.data(), prompts, (*prompts, "Third answer."))


def interrupted_among_parallel() -> Known:
    made = Flat()
    made.user("Two at once")
    made.calls("Bash", arguments={"command": "stopped"}, isAborted=True)
    two = made.calls("Bash", arguments={"command": "finished"})
    made.result("finished result", parentUuid=two)
    made.user("Go on")
    made.says("Gone on.")
    said = ("Two at once", "stopped", "finished", "interrupted", "finished result", "Gone on.")
    return Known(made.data(), ("Two at once", "Go on"), said)


def result_behind_a_sub_agent() -> Known:
    """Results of the main conversation hang on the last record of a sub-agent."""
    made = Flat()
    made.user("Delegate")
    made.calls("Task", arguments={"prompt": "Look"})
    made.user("Look", isSidechain=True, userType="external")
    made.says("A sub-agent's answer.", isSidechain=True)
    made.result("First report.")
    made.says("One is done.")
    made.calls("Task", arguments={"prompt": "Read"})
    made.user("Read", isSidechain=True, userType="external", parentUuid=None)
    made.calls("Bash", isSidechain=True)
    made.result("A sub-agent's result.", isSidechain=True)
    made.fails("Second report.")
    made.says("Two are done.")
    said = ("Delegate", "First report.", "One is done.", "Second report.", "Two are done.")
    absent = ("A sub-agent's answer.", "A sub-agent's result.")
    return Known(made.data(), ("Delegate",), said, absent)


def compacted_before_a_result() -> Known:
    made = Flat()
    made.user("Old question")
    made.says("Old answer.")
    made.user("Kept question")
    made.calls("Bash", arguments={"command": "make"})
    made.compacts("compacting")
    made.compacts("compacted", metadata={"preservedMessages": 2, "totalMessages": 4})
    made.result("made")
    made.says("Done.")
    said = ("Kept question", "make", "made", "Done.")
    return Known(made.data(), ("Old question", "Kept question"), said, ("Old question", "Old ans"))


def interruption_is_kept() -> Known:
    """A compaction keeps a call that was interrupted, and so what says that it was."""
    made = Flat()
    made.user("Old question")
    made.says("Old answer.")
    made.user("Kept question")
    made.calls("Bash", arguments={"command": "stopped"}, isAborted=True)
    made.user("/compact")
    made.compacts("compacting")
    made.compacts("compacted", metadata={"preservedMessages": 3, "totalMessages": 5})
    made.user("New question")
    made.says("New answer.")
    prompts = ("Old question", "Kept question", "/compact", "New question")
    said = ("Kept question", "stopped", "interrupted", "/compact", "New question", "New answer.")
    return Known(made.data(), prompts, said, ("Old answer.",))


def deleted_outcome_first() -> Known:
    """The outcome that is not deleted is the one of the call."""
    made = Flat()
    made.user("Look")
    one = made.calls("Bash", arguments={"command": "one"})
    made.result("deleted outcome", isDeleted=True)
    made.result("first result", parentUuid=one)
    made.says("Seen.")
    said = ("Look", "one", "first result", "Seen.")
    return Known(made.data(), ("Look",), said, ("deleted outcome",))


FLAT: tuple[Callable[[], Known], ...] = (
    linear,
    tool_usage,
    parallel_on_their_calls,
    parallel_on_the_last,
    parallel_in_a_row,
    error_recovery,
    sidechain,
    compaction,
    restoration,
    dropped_by_compaction,
    flags,
    edited,
    no_parents,
    deleted_root,
    error_among_parallel,
    compacted_twice,
    compacted_after_a_compaction,
    restored_after_two_compactions,
    interrupted_among_parallel,
    result_behind_a_sub_agent,
    compacted_before_a_result,
    interruption_is_kept,
    deleted_outcome_first,
)


def results_of_a_deleted_call() -> Known:
    """One record has the results of two calls, and one of these is deleted."""
    made = Nested()
    made.human("Run both")
    made.says(call("toolu_1", "Bash", command="kept-call"))
    made.says(call("toolu_2", "Bash", command="deleted-call"), isDeleted=True)
    results = [
        {"type": "tool_result", "tool_use_id": "toolu_2", "content": "deleted result"},
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": "kept result"},
    ]
    made.add("tool_result", results)
    made.says("Both ran.")
    said = ("Run both", "kept-call", "kept result", "Both ran.")
    return Known(made.data(), ("Run both",), said, ("deleted-call", "deleted result"))


def late_results() -> Known:
    """The user asks on while calls run; their results come later."""
    made = Nested()
    made.human("First question")
    made.says(call("toolu_1", "Bash", command="slow"), call("toolu_2", "Bash", command="slower"))
    made.human("Second question")
    made.says("Second answer.", call("toolu_3", "Read", file_path="a"))
    made.result("toolu_3", "read")
    made.result("toolu_2", "slower result")
    made.result("toolu_1", "slow result")
    made.says("Third answer.")
    prompts = ("First question", "Second question")
    said = (prompts[0], "slower result", "slow result", prompts[1], "read", "Third answer.")
    return Known(made.data(), prompts, said)


def result_behind_a_compaction() -> Known:
    made = Nested()
    made.human("Early question")
    made.says("Early answer.", call("toolu_1", "Bash", command="early"))
    made.add("compact_prelude", "Previous message content...", parentUuid=None)
    made.add("compact_recap", "Summary of compacted conversation...")
    made.result("toolu_1", "early result")
    made.says("Late answer.")
    made.human("Late question")
    made.says("Last answer.")
    prompts = ("Early question", "Late question")
    said = ("Previous message content", "Summary of compacted", "Late answer.", *prompts[1:])
    return Known(made.data(), prompts, said, ("Early question", "Early answer."))


NESTED: tuple[Callable[[], Known], ...] = (
    development,
    delegation,
    compact_messages,
    active_branch,
    pictures,
    failed_and_deleted,
    deep_forks,
    results_out_of_order,
    results_of_a_deleted_call,
    late_results,
    result_behind_a_compaction,
)
FILES = {each.__name__: each for each in (*FLAT, *NESTED)}
