"""A made-up session with every kind of thing that can be inside a step."""

from tests.builders import (
    Json,
    Session,
    document,
    image,
    pdf,
    png,
    raw,
    redacted_thinking,
    session,
    text,
    thinking,
    tool,
)

__all__ = ["PICTURE", "every_kind"]

PICTURE = png(
    [
        [(30 + 8 * x, 90 + 5 * y, 160) if (x // 4 + y // 4) % 2 else (240, 240, 230) for x in range(24)]
        for y in range(24)
    ]
)
_FILE = "/home/ada/ledgerfold/ledgerfold/ingest/batch.py"
_OLD = '''def import_batch(rows, store):
    """Write the rows that are not stored yet; return how many were new."""
    seen = store.fingerprints(rows.account)
    new = 0
    for row in rows:
        key = fingerprint(row.date, row.amount, row.memo)
        if key in seen:
            continue
        store.add(row, key)
        new += 1
    return new
'''
_NEW = '''def import_batch(rows, store):
    """Write the rows that are not stored yet; return how many were new."""
    seen = store.fingerprints(rows.account)
    nth = Counter()  # equal rows on one day are real: count them
    new = 0
    for row in rows:
        nth[row.identity] += 1
        key = fingerprint(*row.identity, nth=nth[row.identity])
        if key in seen:
            continue
        store.add(row, key)
        seen.add(key)
        new += 1
    return new
'''
_RUN = (
    "\x1b[1m===== test session starts =====\x1b[0m\n"
    + "".join(f"tests/ingest/test_{n}.py \x1b[32m.\x1b[0m\n" for n in range(60))
    + "\x1b[31mE       assert 41 == 0\x1b[0m\n\x1b[31;1m1 failed\x1b[0m, \x1b[32m60 passed\x1b[0m in 0.84s"
)


def every_kind() -> Session:
    """Return the session."""
    one = session(full=True, seed="inside").have(_FILE, _OLD)
    _files(one)
    _commands(one)
    _finds(one)
    _lists(one)
    _talk(one)
    _asides(one)
    return one


def _files(one: Session) -> None:
    one.user("Look at the importer.")
    one.assistant(thinking("Old rows have **no count**.\n\n- so `nth` is needed"))
    one.assistant(thinking(""), redacted_thinking(), "I look.")
    file: Json = {"filePath": _FILE, "content": _OLD, "numLines": 11, "startLine": 54}
    one.assistant(tool("Read", file_path=_FILE)).result(detail={"type": "text", "file": {**file, "totalLines": 88}})
    one.assistant(tool("Read", file_path="/home/ada/chart.png")).result(
        [image(PICTURE)],
        detail={
            "type": "image",
            "file": {"base64": image(PICTURE)["source"]["data"], "type": "image/png", "originalSize": 1800},
        },
    )
    cells = [
        {"cellType": "markdown", "source": "# Tides\n\nA *note*.", "cell_id": "a1"},
        {"cellType": "code", "source": "x = 1\nprint(x)", "cell_id": "b2", "language": "python"},
    ]
    one.assistant(tool("Read", file_path="/home/ada/tides.ipynb")).result(
        "cells", detail={"type": "notebook", "file": {"filePath": "/home/ada/tides.ipynb", "cells": cells}}
    )
    one.assistant(tool("Read", file_path="/home/ada/table.pdf")).result(
        [document(pdf("tide table"))],
        detail={"type": "pdf", "file": {"filePath": "/home/ada/table.pdf", "originalSize": 48_310}},
    )
    patch = {"oldStart": 54, "newStart": 54, "oldLines": 11, "newLines": 14, "lines": _patch()}
    one.assistant(tool("Edit", file_path=_FILE, old_string="new = 0", new_string="nth = Counter()"))
    one.result(
        detail={
            "filePath": _FILE,
            "structuredPatch": [patch],
            "userModified": True,
            "originalFile": _OLD,
            "oldString": "",
            "newString": "",
        }
    )
    one.assistant(tool("Write", file_path="/home/ada/new.sql", content="SELECT 1;\nSELECT 2;\n"))
    one.result(
        detail={
            "type": "create",
            "filePath": "/home/ada/new.sql",
            "content": "SELECT 1;\nSELECT 2;\n",
            "structuredPatch": [],
        }
    )
    edits = [{"old_string": "a", "new_string": "b"}, {"old_string": "c", "new_string": "d"}]
    one.assistant(tool("MultiEdit", file_path="/home/ada/x.txt", edits=edits))
    one.result("done", detail={"filePath": "/home/ada/x.txt", "originalFileContents": "a\nz\nc\n"})
    one.assistant(tool("NotebookEdit", notebook_path="/home/ada/t.ipynb", cell_id="b2", new_source="x = 2"))
    one.result(
        "done",
        detail={
            "new_source": "x = 2",
            "old_source": "x = 1",
            "cell_type": "code",
            "cell_id": "b2",
            "edit_mode": "replace",
            "language": "python",
        },
    )


def _patch() -> list[str]:
    from steno.web.render.diff import diff_texts

    return list(diff_texts(_OLD, _NEW, context=20)[0].lines)


def _commands(one: Session) -> None:
    one.assistant(tool("Bash", command="uv run pytest -q", description="Run the tests"))
    one.result(f"Exit code 1\n{_RUN}", error=True)
    one.assistant(tool("Bash", command="make all"))
    one.result(
        detail={
            "stdout": "10%\r50%\r100%\n\x1b[38;5;208mready\x1b[0m",
            "stderr": "warning: \x1b[33mold\x1b[0m",
            "interrupted": False,
            "isImage": False,
        }
    )
    one.assistant(tool("Bash", command="yes")).saved("y\n" * 3000)
    one.assistant(tool("Bash", command="serve", run_in_background=True))
    one.result(
        "started", detail={"stdout": "", "stderr": "", "interrupted": False, "isImage": False, "backgroundTaskId": "b1"}
    )
    one.assistant(tool("TaskOutput", task_id="b1"))
    one.result(
        "x",
        detail={
            "retrieval_status": "success",
            "task": {
                "task_id": "b1",
                "status": "running",
                "description": "serve",
                "output": "listening\n",
                "exitCode": None,
            },
        },
    )


def _finds(one: Session) -> None:
    hits = "src/a.py:12:def f():\nsrc/a.py-13-    return 1\nsrc/b.py:7:f()"
    one.assistant(tool("Grep", pattern="f\\(", path="src", output_mode="content"))
    one.result(hits, detail={"mode": "content", "content": hits, "numLines": 3, "numFiles": 0, "filenames": []})
    one.assistant(tool("Grep", pattern="zzz"))
    one.result("No files found", detail={"mode": "files_with_matches", "filenames": [], "numFiles": 0})
    names = [f"/home/ada/ledgerfold/src/module_{n}.py" for n in range(90)]
    one.assistant(tool("Glob", pattern="**/*.py"))
    one.result("x", detail={"filenames": names, "numFiles": 90, "truncated": True, "durationMs": 3})
    one.assistant(tool("LS", path="/home/ada")).result("- /home/ada/\n  - a.py\n  - b.py\n")
    one.assistant(tool("WebFetch", url="https://example.org/tides", prompt="When is high tide?"))
    one.result(
        "High at **noon**.",
        detail={
            "url": "https://example.org/tides",
            "code": 200,
            "codeText": "OK",
            "bytes": 4096,
            "durationMs": 820,
            "result": "High at **noon**.",
        },
    )
    pages = [{"title": "Tides", "url": "https://example.org/"}, {"title": "Bad", "url": "javascript:alert(1)"}]
    one.assistant(tool("WebSearch", query="tides"))
    one.result(
        "x",
        detail={
            "query": "tides",
            "durationSeconds": 1.2,
            "results": [{"tool_use_id": "s", "content": pages}, "Two pages say *noon*."],
        },
    )
    one.assistant(tool("ToolSearch", query="cron"))
    one.result("x", detail={"matches": ["CronCreate", "CronList"], "query": "cron", "total_deferred_tools": 12})


def _lists(one: Session) -> None:
    def todo(words: str, status: str) -> Json:
        return {"content": words, "status": status, "activeForm": words}

    old = [todo("Read how migrations are run", "in_progress"), todo("Failing test", "completed")]
    new = [
        todo("Read how migrations are run", "completed"),
        todo("Failing test", "completed"),
        todo("Number old rows by account, day, id", "in_progress"),
        todo("Describe it", "pending"),
    ]
    one.assistant(tool("TodoWrite", todos=new)).result("ok", detail={"oldTodos": old, "newTodos": new})
    one.assistant(tool("TaskCreate", subject="Plot", description="Draw it")).result()
    one.assistant(tool("TaskCreate", subject="Print", description="Put it on paper")).result()
    one.assistant(tool("TaskUpdate", taskId="1", status="completed")).result()
    one.assistant(tool("TaskList")).result()


def _talk(one: Session) -> None:
    question: Json = {
        "question": "Which colour?",
        "header": "Colour",
        "multiSelect": False,
        "options": [{"label": "Blue", "description": "like ink"}, {"label": "Green", "description": ""}],
    }
    one.assistant(tool("AskUserQuestion", questions=[question]))
    one.result("Blue", detail={"questions": [question], "answers": {"Which colour?": "Blue"}})
    one.assistant(tool("ExitPlanMode", plan="# Plan\n\n1. One file\n2. One line")).result(
        "Approved", detail={"plan": "# Plan\n\n1. One file\n2. One line", "isAgent": False, "filePath": "/p.md"}
    )
    one.assistant(tool("Skill", skill="changelog", args="--all")).result(
        "Launching", detail={"success": True, "commandName": "changelog"}
    )
    one.assistant(tool("mcp__journal__write", entry={"mood": "calm", "words": ["a", "b"]}, at=3))
    one.result([text('{"ok": true, "id": 7}'), image(PICTURE)])
    one.assistant(tool("Sparkle", wish="x" * 500)).result("done")
    one.assistant(raw("zzz_block", shape=[1, 2, {"deep": "x"}]))

    def look(agent: Session) -> None:
        agent.assistant("I look.", tool("Read", file_path=_FILE)).result()
        agent.assistant("One real case: `merge.py:77` joins by memo alone.")

    brief = "Find every comparison of rows that ignores the date.\n\nReport file and line."
    one.assistant(tool(one.gen.agent_tool, description="Look", prompt=brief, subagent_type="Explore"))
    one.agent(look)
    one.assistant(tool("Bash", command="rm -rf build")).deny()


def _asides(one: Session) -> None:
    one.hook("PreToolUse", "./pre.sh", said='{"decision": "block", "reason": "not today"}', tool="Bash")
    one.api_error(529, "Overloaded").api_error(500, "Broken", 2)
    one.assistant("At last.", tool("Bash", command="sleep 9")).enqueue("Mention the *migration*.")
    one.result("slept").absorb()
    one.mention("a.py", "x = 2\n").informational("A notice.")
    one.attach(
        "nested_memory",
        path="/m.md",
        displayPath="m.md",
        content={"path": "/m.md", "type": "Project", "content": "# Rules\n\nBe *kind*."},
    )
    one.attach("todo_reminder", itemCount=1, content=[{"content": "Plot", "status": "pending"}])
    one.attach("zzz_new", odd={"a": [1, 2, 3]}, words="hello")
    one.assistant("So.").done().stop_hook_summary("./stop.sh", errors=("it broke",))
    one.command("context", says="\x1b[1mContext\x1b[0m 12k", local=True)
    one.user("Fail.").fatal("API Error: 400 bad request", status=400)
    one.compact("All that *was*.", keep=2).user("Go on.").assistant("Yes.").done()
