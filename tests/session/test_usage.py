"""Tokens are counted once per response."""

from tests.builders import session, text, tool
from tests.session.open_sessions import opened

from steno.format.encode import encode_line
from steno.format.source import BytesSource
from steno.session.transcript import load
from steno.session.turns.usage import Totals, UsageCounter, totals_of, writes_placeholder_usage


def test_the_lines_of_one_response_are_counted_once() -> None:
    made = session().user("go").assistant(text("a"), text("b"), text("c"), output=7)
    found = opened(made).usage
    assert (found.messages, found.output) == (1, 7)


def test_the_largest_figure_of_a_response_counts_whatever_the_order() -> None:
    made = session("2.0.76").user("go").assistant(text("a"), text("b"), output=50)
    lines = made.lines()
    for data in (lines, [lines[0], lines[2], lines[1]]):
        transcript = load(BytesSource(b"\n".join(data)))
        assert totals_of(transcript, transcript.nodes).output == 50


def test_placeholder_figures_are_marked_as_estimates() -> None:
    assert opened(session("2.1.42").turn("go", "done")).usage.estimated
    assert not opened(session("2.1.325").turn("go", "done")).usage.estimated
    assert not opened(session("2.0.76").turn("go", "done")).usage.estimated
    assert not writes_placeholder_usage("next")


def test_what_the_client_said_itself_costs_nothing() -> None:
    made = session().user("go").fatal("API Error: 400 too long", status=400)
    assert opened(made).usage == Totals()


def test_sub_agents_are_part_of_the_bill_and_listed_by_model() -> None:
    made = session().user("go").assistant(tool("Agent", prompt="look", description="d"), output=3)
    made.agent(lambda agent: agent.assistant("seen", model="small", output=5))
    found = opened(made.assistant("done", output=2))
    assert found.usage.output == 10
    assert found.usage_by_model["small"].output == 5
    assert found.agents[0].usage.output == 5


def test_odd_figures_are_no_reason_to_fail() -> None:
    line = (
        b'{"type":"assistant","uuid":"a","message":{"id":"m","model":"x","content":[],'
        b'"usage":{"input_tokens":-4,"output_tokens":"many","cache_read_input_tokens":9}}}\n'
    )
    transcript = load(BytesSource(line))
    counter = UsageCounter()
    counter.add_nodes(transcript, transcript.nodes)
    for node in transcript.nodes:
        counter.add(transcript.record(node))
    assert counter.totals().input == 0


def test_figures_below_zero_are_none() -> None:
    line = (
        b'{"type":"assistant","uuid":"a","message":{"id":"m","model":"x","content":[],'
        b'"usage":{"input_tokens":-4,"output_tokens":7,"cache_read_input_tokens":-9}}}\n'
    )
    transcript = load(BytesSource(line))
    totals = totals_of(transcript, transcript.nodes)
    assert (totals.input, totals.output, totals.cache_read, totals.messages) == (0, 7, 0, 1)


def test_totals_add_up() -> None:
    both = Totals(1, 2, 3, 4, 5, 6) + Totals(1, 1, 1, 1, 1, 1, estimated=True)
    assert both == Totals(2, 3, 4, 5, 6, 7, estimated=True)
    assert (both.cache_write, both.context, both.total) == (11, 17, 20)


def test_of_lines_with_equal_output_the_last_one_counts() -> None:
    made = session().user("go").assistant(text("a"), text("b"), text("c"), output=7)
    records = made.records()
    lines = [each for each in records if each["type"] == "assistant"]
    for number, record in enumerate(lines):
        usage = record["message"]["usage"]
        record["message"]["usage"] = {**usage, "input_tokens": 100 + number, "output_tokens": 7}
    data = b"".join(encode_line(record) for record in records)
    transcript = load(BytesSource(data))
    found = totals_of(transcript, transcript.nodes)
    assert (found.messages, found.output, found.input) == (1, 7, 102)
    counter = UsageCounter()
    for node in transcript.nodes:
        counter.add(transcript.record(node))
    assert counter.totals().input == 102
