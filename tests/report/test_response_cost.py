"""What a stretch of a session cost: every response once, at the price of its model."""

from tests.builders import Session, session, tool
from tests.session.open_sessions import opened

from steno.report.pricing import Cost, Price, PriceTable, Rates, cost_of_nodes, costs_by_model
from steno.session.turns.usage import UsageCounter

_RATES = Rates(1_000_000, 5_000_000, 1_250_000, 2_000_000, 100_000, 0)
_PRICES = PriceTable([("*", (Price(_RATES),))])


def told(made: Session) -> tuple[Cost, int]:
    found = opened(made)
    cost = cost_of_nodes(found.transcript, found.transcript.nodes, _PRICES)
    totals = found.usage
    exact = (
        totals.input
        + totals.output * 5
        + totals.cache_write_5m * 1.25
        + totals.cache_write_1h * 2
        + totals.cache_read * 0.1
    )
    return cost, round(exact)


def test_a_response_of_several_lines_is_paid_once() -> None:
    made = session(full=True).user("go").assistant("I look.", tool("Bash", command="ls"))
    made.result("x").assistant("done").done()
    cost, exact = told(made)
    assert abs(cost.micro_dollars - exact) <= 2
    assert cost.unpriced == 0


def test_turns_and_branches_add_up_to_the_whole() -> None:
    made = session(full=True).turn("one", "ok").turn("two", "no").rewind(1).turn("three", "yes")
    found = opened(made)
    pieces = [turn.nodes for turn in found.turns()] + [each.nodes for each in found.branches]
    costs = [cost_of_nodes(found.transcript, nodes, _PRICES).micro_dollars for nodes in pieces]
    whole = cost_of_nodes(found.transcript, found.transcript.nodes, _PRICES).micro_dollars
    assert len(costs) == 3
    assert sum(costs) == whole > 0


def test_a_model_without_a_price_is_said_to_have_none() -> None:
    made = session(full=True).turn("one", "ok")
    found = opened(made)
    cost = cost_of_nodes(found.transcript, found.transcript.nodes, PriceTable([("other", ())]))
    known = cost_of_nodes(found.transcript, found.transcript.nodes, PriceTable([("*", ())]))
    assert known.amount is None
    assert known.unpriced == 1
    assert cost.micro_dollars >= 0


def test_shares_are_by_model_and_the_dearest_comes_first() -> None:
    made = session(full=True).turn("one", "ok")
    made.user("two").assistant("longer", output=5000, model="claude-sonnet-5-5").done()
    found = opened(made)
    counter = UsageCounter()
    counter.add_nodes(found.transcript, found.transcript.nodes)
    shares = costs_by_model(counter, _PRICES)
    assert len(shares) == 2
    assert shares[0].model == "claude-sonnet-5-5"
    assert shares[0].cost.micro_dollars >= shares[1].cost.micro_dollars
