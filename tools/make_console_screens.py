"""Draw screens of the console for the docs: `docs/images/console-*.svg`.

The real program runs in a pty against the scripted server; pyte renders the terminal. Times and IDs differ between
runs, so these images are created when needed, not checked.

python -m tools.make_console_screens
"""

import io
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.text import Text
from tests.console.terminal import ENTER, Terminal
from tools.make_screens import FOLDER, THEME, own_faces

from steno.llm.testserver.responders import text, thinking, tool
from steno.llm.testserver.scripted_responder import ScriptedResponder

COLUMNS: Final = 100
_COLOURS: Final = {"brown": "yellow"}
_TRAITS: Final = {"blink": "dim", "italics": "italic"}


_TIDE: Final = """\
Every tide is a **sum of waves**, one for each motion of moon and sun. The largest are:

| wave | from | degrees an hour |
|------|------|-----------------|
| M2 | the moon | 28.98 |
| S2 | the sun | 30.00 |

`predict` adds them up:

```python
def predict(hour: float) -> float:
    return sum(w.height * cos(w.speed * hour - w.phase) for w in WAVES)
```

- It is good to **5 cm** in calm weather.
- Storms are not in it.
"""
_PLAN: Final = """\
## One axis for both curves

1. Make the axis once, in `draw`, and hand it to each curve.
2. Let `Curve.add` take an axis instead of making one.
3. Run the tests; the picture of the legend changes.
"""


def picture(console: Terminal, name: str) -> str:
    """Return the screen of a terminal as an image."""
    drawn = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, legacy_windows=False)
    for row in console.cells():
        line = Text()
        for letter, colour, traits in row:
            names = [_TRAITS.get(each, each) for each in traits]
            names += [] if colour == "default" else [_COLOURS.get(colour, colour)]
            line.append(letter, " ".join(names))
        drawn.print(line, soft_wrap=True)
    return own_faces(drawn.export_svg(title="", theme=THEME, unique_id=f"steno-{name}"))


def permission(console: Terminal) -> None:
    """Show a permission prompt."""
    (console.project / "axis.py").write_text("def draw(axis):\n    return axis\n", encoding="utf-8")
    console.open()
    console.say("Draw both curves on one axis, then push it.")
    console.sees("Permission", "git push")


def work(console: Terminal) -> None:
    """Show work in progress: finished steps, a diff, a failure, a to-do list, a running test."""
    (console.project / "axis.py").write_text(
        "def draw(axis):\n    for curve in curves:\n        axis = Axis(curve)\n    return axis\n", encoding="utf-8"
    )
    rules = ("test:\n\t@echo 2 failed, 29 passed; false\n", "slow:\n\t@echo collecting; sleep 60\n")
    (console.project / "Makefile").write_text("".join(rules), encoding="utf-8")
    console.open("--permission-mode", "acceptEdits", "--allowedTools", "Bash(make:*)")
    console.say("Share the axis between the curves.")
    console.sees("collecting")
    console.send("and then the legend, please" + ENTER)
    console.sees("queued")


def answer(console: Terminal) -> None:
    """Show an answer in Markdown: text, a table, code, and its usage."""
    console.open()
    console.say("How is the tide predicted?")
    console.told("30.00")
    console.idle()


def plan(console: Terminal) -> None:
    """Show a plan that waits for approval."""
    console.open("--permission-mode", "plan")
    console.say("Plan how the axis is shared.")
    console.sees("Approve this plan?")


def sessions(console: Terminal) -> None:
    """Show the list of sessions, with a preview and an abandoned branch."""
    console.open()
    for said, wait in (
        ("Draw the measured curve.", "It is drawn."),
        ("Put the prediction on an axis of its own.", "It has its own axis."),
    ):
        console.say(said)
        console.told(wait)
        console.idle()
    console.say("/rewind")
    console.sees("Rewind to a prompt", "axis of its own")
    console.send(ENTER)
    console.sees("Restore:")
    console.send("c")
    console.told("kept as an abandoned branch")
    console.waits(lambda: console.text.count("› Put the prediction") > 1)
    console.send("\x15Put both on one axis." + ENTER)
    console.told("They share it.")
    console.idle()
    console.say("/rename Charts on one axis")
    console.told("Renamed to")
    for said, wait in (("Why does the test fail?", "off by a day"), ("Tag the release.", "v1.4")):
        console.say("/clear")
        console.waits(lambda: console.text.rstrip().endswith("? for shortcuts"))
        console.idle()
        console.say(said)
        console.told(wait)
        console.idle()
    console.say("/clear")
    console.waits(lambda: console.everything.count("New session.") == len(("why", "tag", "end")))
    console.idle()
    console.say("/resume")
    console.sees("Resume a session")
    console.send("\x1b[B\x1b[B")
    console.sees("1 abandoned branch")


def script() -> ScriptedResponder:
    """Return the script of the model."""
    return (
        ScriptedResponder()
        .on("tide predicted", _TIDE)
        .on("measured curve", "It is drawn.")
        .on("axis of its own", "It has its own axis.")
        .on("both on one axis", "They share it.")
        .on("Why does the test", "The table is off by a day.")
        .on("Tag the release", "It is tagged as v1.4.")
        .on("Plan how", [text("I have looked at it."), tool("ExitPlanMode", plan=_PLAN)])
        .on(
            "both curves",
            [
                thinking("The axis is made once per curve. It should be shared."),
                text("Both curves can share **one time axis**. I look first."),
                tool("Read", file_path="axis.py"),
                tool("Glob", pattern="*.py"),
            ],
        )
        .then(
            [
                text("The measured curve goes on top. Now I commit and push it."),
                tool("Bash", command="git status --short && git push origin main"),
            ]
        )
        .on(
            "Share the axis",
            [
                text("The axis is made anew for each curve. I make it once."),
                tool("TodoWrite", todos=todos("completed", "in_progress", "pending")),
                tool("Read", file_path="axis.py"),
                tool(
                    "Edit",
                    file_path="axis.py",
                    old_string="        axis = Axis(curve)",
                    new_string="        axis.add(curve)",
                ),
                tool("Bash", command="make test", description="Run the tests"),
            ],
        )
        .then([text("Two tests fail. I look at them alone."), tool("Bash", command="make slow")])
    )


def todos(*states: str) -> list[dict[str, str]]:
    """Return a to-do list."""
    things = ("Share the axis", "Run the tests", "Write it down")
    return [
        {"content": thing, "status": state, "activeForm": thing} for thing, state in zip(things, states, strict=True)
    ]


SCREENS: Final[dict[str, tuple[int, Callable[[Terminal], None]]]] = {
    "console-permission": (30, permission),
    "console-work": (34, work),
    "console-answer": (34, answer),
    "console-plan": (30, plan),
    "console-resume": (30, sessions),
}


def main() -> None:
    """Draw all screens."""
    for name, (rows, act) in SCREENS.items():
        with (
            tempfile.TemporaryDirectory() as folder,
            Terminal(Path(folder), script(), columns=COLUMNS, rows=rows) as console,
        ):
            act(console)
            path = FOLDER / f"{name}.svg"
            path.write_text(picture(console, name), encoding="utf-8")
            print(f"wrote {path}")


if __name__ == "__main__":
    main()
