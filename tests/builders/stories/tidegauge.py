"""The tide-gauge chart library: an upside-down chart, an old laptop, a rewind and its fork."""

from typing import Final

from tests.builders.blocks import Json, thinking, tool
from tests.builders.builder import Session
from tests.builders.stories.kit import bash, begin, edit, grep, read, write

__all__ = ["stories"]

_CWD: Final = "/home/ada/tidegauge"
_CHART: Final = f"{_CWD}/src/tidegauge/chart.py"
_SMOOTH: Final = f"{_CWD}/src/tidegauge/smooth.py"

_CHART_CODE: Final = '''"""Draw a day of water levels as an SVG path."""

from tidegauge.series import Series

HEIGHT = 240
WIDTH = 960


def project(level: float, low: float, high: float) -> float:
    """Return the height on the page for a water level."""
    span = high - low or 1.0
    return HEIGHT * (level - low) / span


def path(series: Series) -> str:
    """Return the SVG path of a series."""
    low, high = min(series.levels), max(series.levels)
    step = WIDTH / max(len(series.levels) - 1, 1)
    points = [
        f"{i * step:.1f},{project(level, low, high):.1f}"
        for i, level in enumerate(series.levels)
    ]
    return "M" + " L".join(points)
'''

_SMOOTH_CODE: Final = '''"""Take the chop out of a series of water levels."""


def moving_average(levels: list[float], window: int = 5) -> list[float]:
    """Return the mean of each level and its neighbours."""
    half = window // 2
    out: list[float] = []
    for i in range(len(levels)):
        near = levels[max(i - half, 0) : i + half + 1]
        out.append(sum(near) / len(near))
    return out
'''

_FAILURE: Final = """\
....F..                                                                  [100%]
=================================== FAILURES ===================================
_________________________ test_a_surge_keeps_its_peak __________________________

    def test_a_surge_keeps_its_peak():
        day = load("2026-10-28")
>       assert max(moving_average(day.levels)) == pytest.approx(4.2, abs=0.05)
E       assert 3.61 == 4.2 ± 0.05

tests/test_smooth.py:27: AssertionError
=========================== short test summary info ============================
FAILED tests/test_smooth.py::test_a_surge_keeps_its_peak - assert 3.61 == 4.2 ± 0.05
1 failed, 6 passed in 0.31s"""


def stories() -> list[Session]:
    """Return the sessions of this project, oldest first."""
    upside_down = _upside_down()
    gaps = _gaps(upside_down)
    storm = _storm_surge()
    fork = _fork(storm)
    resumed = _resumed()
    return [upside_down, gaps, storm, fork, resumed, _cleared(resumed)]


def _upside_down() -> Session:
    """The oldest client: a sub-agent inline in the file, a to-do list, an edit."""
    made = begin("1.0.128", seed="tide-1", cwd=_CWD, start="2026-11-02T08:41:10.000Z")
    made.have(_CHART, _CHART_CODE)
    made.user("The tide chart is drawn upside down: high water is at the bottom. Please fix it.")
    made.assistant("I'll look at how levels are placed on the page.", read(_CHART)).result()
    task = tool(
        "Task",
        description="Find callers of project()",
        prompt="Find every caller of `project` in src/ and tests/ and say what each expects.",
        subagent_type="general-purpose",
    )
    made.assistant("Before I change it, I want to know who relies on it.", task)
    made.agent(_callers)
    todos = ["Flip the projection", "Cover it with a test"]
    made.assistant(_todo(todos, done=0)).result()
    old, new = "HEIGHT * (level - low) / span", "HEIGHT * (high - level) / span"
    made.assistant(edit(_CHART, old, new)).result()
    made.assistant(bash("python -m pytest -q tests/test_chart.py", "Run the chart tests"))
    made.wait(2).result("5 passed in 0.29s")
    made.assistant(_todo(todos, done=2)).result()
    return made.assistant(
        "Fixed. SVG counts `y` from the top, so the projection has to measure from **high** "
        "water downwards:\n\n```python\nreturn HEIGHT * (high - level) / span\n```\n\n"
        "Only `path()` calls it, and its five tests pass."
    ).exit()


def _callers(agent: Session) -> None:
    agent.assistant(grep(r"project\(", f"{_CWD}/src"))
    agent.result(
        "src/tidegauge/chart.py:9:def project(level: float, low: float, high: float)\n"
        'src/tidegauge/chart.py:20:        f"{i * step:.1f},{project(level, low, high)'
    )
    agent.assistant("`project` has one caller, `path()` in the same file. Nothing else uses it.")


def _todo(items: list[str], *, done: int) -> Json:
    states = ["completed" if i < done else "in_progress" if i == done else "pending" for i in range(len(items))]
    rows = [
        {"content": item, "status": state, "activeForm": f"{item} …"} for item, state in zip(items, states, strict=True)
    ]
    return tool("TodoWrite", todos=rows)


def _gaps(before: Session) -> Session:
    """An interruption; the title of the session before lies in this file."""
    made = begin("1.0.128", seed="tide-2", cwd=_CWD, start="2026-11-02T15:20:00.000Z")
    made.have(_CHART, before.room.files[_CHART])
    made.summary("Tide chart drawn upside down", before.uuids()[-1])
    made.user("When the gauge was offline the line jumps straight across. Leave a gap instead.")
    made.assistant(
        "Let me see what an outage looks like in the data.", bash("head -40 data/2026-10-28.csv", "Show an outage")
    )
    made.wait(1).result("time,level\n03:10,1.92\n03:20,1.97\n03:30,\n03:40,\n05:00,2.61\n05:10,2.58")
    made.assistant(bash("python scripts/replay.py --all", "Replay the whole archive")).wait(21)
    made.interrupt()
    made.user("Not the whole archive, that takes an hour. One day is enough.")
    made.assistant(bash("python scripts/replay.py --day 2026-10-28", "Replay one day"))
    made.result("144 readings, 9 missing, longest gap 80 min")
    made.assistant(
        edit(
            _CHART,
            '    return "M" + " L".join(points)\n',
            "    # A missing level starts a new stroke instead of a line across the gap.\n"
            '    return " ".join("M" + " L".join(stroke) for stroke in _strokes(points))\n',
        )
    ).result()
    return made.assistant(
        "An empty level now ends the stroke and the next reading starts a new one. "
        "The 28th shows two gaps, 03:30 and 11:50."
    ).exit()


def _storm_surge() -> Session:
    """The newest client with everything around it: hooks, tasks, a queued prompt, a rewind."""
    made = begin(seed="tide-3", cwd=_CWD, branch="surge", start="2026-11-07T09:02:00.000Z", permission="acceptEdits")
    made.have(_SMOOTH, _SMOOTH_CODE).have(_CHART, _CHART_CODE)
    made.hook("SessionStart", "./.claude/hooks/branch.sh", said="branch surge, 2 ahead of main")
    made.user("Smooth the curve a little, but a storm surge must stay visible.")
    made.assistant(
        thinking("A plain moving average flattens exactly the peaks that matter."),
        "Let me look at the smoothing first.",
        read(_SMOOTH),
    )
    made.hook("PreToolUse", "./.claude/hooks/allow.sh", tool="Read").result()
    made.assistant(_tasks("Compare filters on the October surge")).result()
    made.assistant(_tasks("Draw the surge as its own layer")).result()
    made.assistant(
        "I'd widen the window to nine readings.", edit(_SMOOTH, "window: int = 5", "window: int = 9")
    ).result().hook("PostToolUse", "./.claude/hooks/format.sh", tool="Edit", said="1 file formatted")
    made.assistant(bash("python -m pytest -q", "Run the tests")).enqueue(
        "Use the 28th of October as the reference, it had the surge."
    )
    made.wait(4).result(f"Exit code 1\n{_FAILURE}", error=True).absorb()
    made.assistant(
        "The widest window eats the surge of the 28th: 4.2 m becomes 3.6 m. I could lower the weight of the neighbours."
    )
    made.hook("Stop", "./.claude/hooks/notify.sh").stop_hook_summary("./.claude/hooks/notify.sh")
    made.done()
    _abandoned(made)
    return _median(made).title("Smooth the curve, keep the surge").exit()


def _tasks(subject: str) -> Json:
    return tool("TaskCreate", subject=subject, description=subject, activeForm=f"{subject} …")


def _abandoned(made: Session) -> None:
    made.user("Then weight the neighbours with a Gaussian.")
    made.assistant(
        write(
            f"{_CWD}/src/tidegauge/gauss.py",
            '"""A bell-shaped window."""\n\nimport math\n\n\n'
            "def weights(window: int, sigma: float) -> list[float]:\n"
            "    half = window // 2\n"
            "    raw = [math.exp(-(i**2) / (2 * sigma**2)) for i in range(-half, half + 1)]\n"
            "    return [w / sum(raw) for w in raw]\n",
        )
    ).result()
    made.assistant(bash("python scripts/compare.py --day 2026-10-28 --sigma 1.5", "Compare"))
    made.wait(3).result("filter    peak   error\nmean      3.61   0.59\ngauss     3.94   0.26")
    made.assistant("Better, but a quarter of a metre of the peak is still gone.").done()


def _median(made: Session) -> Session:
    made.rewind(1).user("Use a median filter, it keeps edges.")
    made.assistant(
        thinking("A median keeps steps and drops spikes; a surge is a step."),
        "A median of five readings drops single spikes and keeps a surge whole.",
        edit(_SMOOTH, "window: int = 9", "window: int = 5"),
    )
    made.result()
    made.assistant(
        edit(
            _SMOOTH, "        out.append(sum(near) / len(near))\n", "        out.append(sorted(near)[len(near) // 2])\n"
        )
    ).result()
    made.assistant(
        tool("TaskUpdate", taskId="1", status="completed"),
        bash("python scripts/compare.py --day 2026-10-28", "Compare the filters"),
    )
    made.result().result("filter    peak   error\nmean      3.61   0.59\nmedian    4.20   0.00")
    return made.assistant(
        "| filter | peak | error |\n|---|---|---|\n| mean | 3.61 m | 0.59 m |\n"
        "| **median** | **4.20 m** | **0.00 m** |\n\nThe surge stays at its full 4.20 m, and the "
        "chop of the calm days is gone. The second task, a layer for the surge, is still open."
    ).done()


def _fork(storm: Session) -> Session:
    made = storm.fork("tide-4", traced=True).wait(3600)
    made.user("Try the same with a window of seven, on the side.")
    made.assistant(edit(_SMOOTH, "window: int = 5", "window: int = 7")).result()
    made.assistant(bash("python scripts/compare.py --day 2026-10-28 --window 7", "Compare"))
    made.result("filter    peak   error\nmedian7   4.13   0.07")
    return made.assistant("Seven loses 7 cm of the peak and gains nothing visible. Five it is.").exit()


def _resumed() -> Session:
    """Begun with one client, resumed with the next."""
    made = begin("2.1.42", seed="tide-5", cwd=_CWD, start="2026-11-13T16:48:00.000Z")
    made.have(f"{_CWD}/README.md", "# tidegauge\n\nCharts of water levels.\n")
    made.user("What is missing for a first release?")
    made.assistant(
        "I'll check the project's files.", read(f"{_CWD}/README.md"), bash("git tag --list", "List the tags")
    ).result().result("")
    made.assistant("Three things: a version, a changelog and wheels for the data files.")
    made.resume("2.1.325", hours=15)
    made.user("Write the changelog, then.")
    made.assistant(
        write(f"{_CWD}/CHANGELOG.md", "# Changes\n\n## 0.1.0\n\n- First release: charts of one day.\n")
    ).result()
    return made.assistant("Written. It says one thing per line, newest release first.").exit()


def _cleared(before: Session) -> Session:
    made = before.wait(240).clear("tide-6")
    made.user("Tag the release, but do not push.")
    made.assistant(bash("git tag -a v0.1.0 -m 'tidegauge 0.1.0'", "Tag the release")).result("")
    return made.assistant("Tagged `v0.1.0` here. Nothing was pushed.").done()
