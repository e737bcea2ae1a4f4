"""Where the context went: the figures are the recorded ones, the shares follow the records."""

from tests.builders import Session, session, tool
from tests.session.open_sessions import opened

from steno.report.context_usage import CONTEXT_SOURCES, ContextUsage, context_usage


def context(made: Session) -> ContextUsage:
    found = opened(made)
    return context_usage(found.transcript, found.turns())


def parts(found: ContextUsage, place: int = -1) -> dict[str, int]:
    return dict(zip(CONTEXT_SOURCES, found.points[place].parts, strict=True))


def test_the_parts_add_up_to_what_was_recorded() -> None:
    made = session(full=True)
    for number in range(6):
        made.user(f"question {number}").assistant(tool("Bash", command="ls"))
        made.result("x" * 4000).assistant("done").done()
    found = context(made)
    said = opened(made)
    assert len(found.points) == 6
    for point, turn in zip(found.points, said.turns(), strict=True):
        usages = [usage for node in turn.nodes if (usage := said.transcript.record(node).usage) is not None]
        assert abs(point.total - usages[-1].context) <= len(CONTEXT_SOURCES)


def test_what_was_read_counts_as_files_and_what_was_printed_as_output() -> None:
    made = session(full=True).user("go")
    made.assistant(tool("Read", file_path="/a.py")).result("a" * 8000)
    made.assistant(tool("Bash", command="b")).result("b" * 4000)
    made.assistant("fine").done()
    shares = parts(context(made))
    assert shares["files"] > 1.5 * shares["output"] > 0
    assert shares["output"] > shares["prompts"]


def test_the_system_prompt_is_what_the_first_request_had_beyond_its_records() -> None:
    made = session(full=True).turn("hello", "hi")
    shares = parts(context(made))
    whole = sum(shares.values())
    assert shares["system"] > 0.9 * whole


def test_a_compaction_leaves_its_summary_and_forgets_the_rest() -> None:
    made = session(full=True).user("go").assistant(tool("Read", file_path="/a.py"))
    made.result("a" * 20_000).assistant("done").done()
    made.compact("what was kept " * 20).turn("on", "yes")
    found = context(made)
    assert len(found.cuts) == 1
    assert parts(found, 0)["files"] == 0 or found.points[0].turn < found.cuts[0]
    last = parts(found)
    assert last["summary"] > 0
    assert last["files"] == 0


def test_nothing_asked_is_nothing_held() -> None:
    assert context(session(full=True).user("hello")).latest is None


def test_a_picture_weighs_what_a_picture_weighs_and_not_its_letters() -> None:
    from tests.builders import image, png

    made = session(full=True).user([image(png([[(0, 0, 0)] * 64] * 64))]).assistant("seen").done()
    made.turn("and now", "words")
    shares = parts(context(made))
    assert shares["prompts"] <= 3000
