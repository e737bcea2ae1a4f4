"""Sessions that use all the builder can do, in a version's own way."""

from tests.builders.builder import Session, document, image, pdf, png, redacted_thinking, session, text, thinking, tool

__all__ = ["everything"]

_FILE = "/home/ada/tidegauge/a.py"


def everything(version: str) -> list[Session]:
    """Return sessions of one version: bare and full, in the terminal and not, forked, cleared."""
    made: list[Session] = []
    for full in (False, True):
        for entrypoint in ("cli", "sdk-cli"):
            one = session(version, full=full, entrypoint=entrypoint, seed=f"{full}{entrypoint}")
            _tools(one)
            _agents(one)
            _asides(one)
            _ends(one)
            fork = one.fork(traced=True).user("Another way.").assistant("Fine.").done()
            cleared = one.clear().user("Anew.").assistant("Yes.", tool("Read", file_path=_FILE))
            made += [one, fork, cleared.result().assistant("Read.").done()]
    return made


def _tools(one: Session) -> None:
    one.hook("SessionStart", "./start.sh", said="welcome")
    one.user("Look at the gauge.").hook("UserPromptSubmit", "./prompt.sh", said="noted")
    calls = (tool("Read", file_path=_FILE), tool("Bash", command="ls"), tool("Grep", pattern="x"))
    one.assistant(thinking("Where to begin?"), redacted_thinking(), "I look.", *calls)
    one.hook("PreToolUse", "./pre.sh", tool="Read")
    one.results("x = 1\n", "a.py", "a.py").hook("PostToolUse", "./post.sh", tool="Grep")
    one.assistant(tool("Edit", file_path=_FILE, old_string="x = 1", new_string="x = 2"))
    one.result().hook_context("PostToolUse", "Run the tests.", tool="Edit")
    one.assistant(tool("Write", file_path="/home/ada/tidegauge/b.py", content="y = 1\n")).result()
    one.assistant(tool("Glob", pattern="*.py")).result("a.py\nb.py")
    if one.gen.tail:
        one.assistant(tool("TaskCreate", subject="Plot", description="Draw it")).result()
        one.assistant(tool("TaskUpdate", taskId="1", status="completed")).result()
        one.assistant(tool("TaskList")).result()
    else:
        todo = {"content": "Plot", "status": "pending", "activeForm": "Plotting"}
        one.assistant(tool("TodoWrite", todos=[todo])).result()
    one.assistant(tool("Bash", command="false")).result("Exit code 1", error=True)
    one.assistant(tool("Bash", command="yes")).saved("y\n" * 3000)
    one.assistant("All done.").hook("Stop", "./stop.sh", said="bye")
    if one.gen.tail:
        one.stop_hook_summary("./stop.sh")
    one.done()


def _agents(one: Session) -> None:
    name = one.gen.agent_tool
    one.user([text("See the picture."), image(png([[(0, 0, 0)]]))])
    first = tool(name, description="Look", prompt="Look around", subagent_type="Explore")
    second = tool(name, description="Plan", prompt="Plan it", subagent_type="Plan")

    def look(agent: Session) -> None:
        agent.assistant("I look.", tool("Read", file_path=_FILE)).result()
        agent.hook("PostToolUse", "callback", tool="Read")
        agent.assistant(tool("Bash", command="ls")).result("a.py").assistant("There is a.py.")

    def delegate(agent: Session) -> None:
        agent.assistant(first).agent(look).assistant("It was looked at.")

    one.assistant(first, second).agent(look).agent(delegate)
    one.assistant(first).agent(look, background=one.gen.layout != "inline")
    if one.gen.layout != "inline":
        one.assistant("I wait.").notify()
    one.assistant("Thank you.").done()
    if one.gen.layout == "beside":
        one.warmup()


def _asides(one: Session) -> None:
    sleep = tool("Bash", command="sleep 9")
    one.user("Be slow.").assistant("I am.", sleep)
    if one.version in {"1.0.128", "2.1.29"}:
        one.result("slept")
    else:
        one.enqueue("Hurry.").result("slept").absorb()
        one.assistant("Ready.").enqueue("And then?").dequeue()
    one.assistant("Nothing.").user("Once more.").assistant(sleep).interrupt()
    one.user("Again.").assistant(sleep).deny().interrupt()
    one.command("model", "opus", says="Set.").shell("ls", "a.py")
    if one.gen.tail:
        one.rename("The gauge").ai_title("Gauge").mention("a.py", "x = 2\n")
    elif one.version in {"2.0.76", "2.1.42"}:
        one.title("The gauge")
    elif one.version == "1.0.128":
        one.summary("The gauge")
    one.meta([document(pdf("tide table"))])


def _ends(one: Session) -> None:
    if one.gen.latest:
        one.user("Try.").api_error(529, "Overloaded").api_error(500, "Broken", 2)
        one.assistant("At last.").informational("A notice.").worktree("side")
    one.user("Fail.").fatal("API Error: 400", status=400)
    one.user("And?").assistant("So.").rewind(0).user("Begin anew.").assistant("Yes.").done()
    one.compact("All that was.", keep=2).command("compact", says="Compacted")
    one.user("Where were we?").assistant("Here.").exit()
