"""Searching and reading the web, through the whole agent."""

import http.server
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.agent.session_harness import Whole

from steno.agent.agent_session import AgentSession
from steno.agent.side_query import parse_search_results
from steno.format.source import BytesSource
from steno.llm.testserver.replay_responder import ReplayResponder
from steno.llm.testserver.responders import ResponderRequest, error_reply, search, text, tool
from steno.llm.testserver.scripted_responder import ScriptedResponder
from steno.report.pricing import response_cost_function
from steno.session.session import Session
from steno.session.transcript import load

_PAGES = (("Tide tables", "https://tides.example/a"), ("Moon", "https://moon.example/b"))


def _is_search(asked: ResponderRequest) -> bool:
    return str(asked.body.get("tools", [{}])[0].get("type")).startswith("web_search")


def _script(found: Any, asks: dict[str, Any] | None = None, **how: Any) -> ScriptedResponder:
    """Return a script in which the model searches once, and the search is answered like that."""
    script = ScriptedResponder().on(_is_search, found, **how)
    script.on("find out", tool("WebSearch", query="when is high tide", **(asks or {})))
    return script.then("At noon, says [Tide tables](https://tides.example/a).")


def test_a_search_is_a_request_of_its_own_and_its_results_come_back(tmp_path: Path) -> None:
    script = _script(
        ["I look.", *search("high tide today", *_PAGES), "High tide is ", "at noon."],
        {"allowed_domains": ["tides.example", "moon.example"]},
    )
    whole = Whole(tmp_path, script, allowed=("WebSearch",))
    (ended,) = whole.say("find out")
    assert ended.reason == "done"
    asked = whole.bodies[1]
    assert asked["tools"] == [
        {
            "type": "web_search_20250305",
            "name": "web_search",
            "max_uses": 8,
            "allowed_domains": ["tides.example", "moon.example"],
        }
    ]
    assert "when is high tide" in asked["messages"][0]["content"][0]["text"]
    (outcome,) = whole.results
    detail = outcome.detail
    assert set(detail) == {"query", "results", "durationSeconds", "searchCount"}
    first, found, last = detail["results"]
    assert (first, last) == ("I look.", "High tide is at noon.")
    assert found["tool_use_id"].startswith("srvtoolu_")
    assert found["content"] == [{"title": t, "url": u} for t, u in _PAGES]
    assert detail["searchCount"] == 1
    assert 'Links: [{"title":"Tide tables","url":"https://tides.example/a"}' in str(outcome.content)
    whole.check()


def test_a_search_is_paid_for_with_what_it_costs_itself(tmp_path: Path) -> None:
    usage = {
        "input_tokens": 0,
        "output_tokens": 0,
        "cache_read_input_tokens": 0,
        "cache_creation_input_tokens": 0,
        "server_tool_use": {"web_search_requests": 3},
    }
    script = _script(search("tide", *_PAGES), usage=usage)
    whole = Whole(tmp_path, script, allowed=("WebSearch",))
    seen: list[dict[str, Any]] = []

    def price(_model: str, usage: dict[str, Any]) -> int:
        seen.append(usage)
        return (usage.get("server_tool_use") or {}).get("web_search_requests", 0) * 10_000

    whole.price = price
    (ended,) = whole.say("find out")
    assert ended.cost == 30_000
    assert len(seen) == 3


def test_the_price_of_searches_is_part_of_what_a_response_costs() -> None:
    from steno.report.pricing import PriceTable

    spent = response_cost_function(PriceTable())
    plain = {"input_tokens": 10, "output_tokens": 10}
    searched = {**plain, "server_tool_use": {"web_search_requests": 2}}
    model = "claude-opus-4-5-20251101"
    assert spent(model, searched) - spent(model, plain) == 20_000


def test_a_search_that_pauses_goes_on(tmp_path: Path) -> None:
    script = ScriptedResponder().on(_is_search, ["First.", search("tide")[0]], stop_reason="pause_turn")
    script.then([*search("tide", *_PAGES, tool_id="srvtoolu_2"), "Then."])

    async def look(started: AgentSession) -> list[Any]:
        search = started.agent.executor.context.search_web
        assert search is not None
        return await search("tide", [], [])

    whole = Whole(tmp_path, script)
    found = whole.play(look)
    assert [each if isinstance(each, str) else len(each["content"]) for each in found] == ["First.", 2, "Then."]
    assert [each["role"] for each in whole.bodies[1]["messages"]] == ["user", "assistant"]
    assert list(whole.server.refused) == []


def test_a_search_that_fails_is_told_to_the_model(tmp_path: Path) -> None:
    script = _script(search("tide", error_code="max_uses_exceeded"))
    whole = Whole(tmp_path, script, allowed=("WebSearch",))
    whole.say("find out")
    assert "max_uses_exceeded" in str(whole.results[0].content)
    assert whole.results[0].detail["searchCount"] == 0
    refused = _script(error_reply(400, "web search is not enabled"))
    other = Whole(tmp_path, refused, allowed=("WebSearch",))
    (ended,) = other.say("find out")
    assert ended.reason == "done"
    assert other.results[0].is_error
    assert "not enabled" in str(other.results[0].content)


def test_domains_both_ways_are_refused_before_anything_is_asked(tmp_path: Path) -> None:
    both = {"allowed_domains": ["a.example"], "blocked_domains": ["b.example"]}
    script = _script("never", both)
    whole = Whole(tmp_path, script, allowed=("WebSearch",))
    whole.say("find out")
    assert whole.results[0].is_error
    assert len(whole.bodies) == 2


def test_nobody_searches_without_leave(tmp_path: Path) -> None:
    whole = Whole(tmp_path, _script("never"))
    whole.say("find out")
    assert len(whole.refused) == 1
    assert len(whole.bodies) == 2


def test_words_between_results_are_told_apart() -> None:
    call, result = (each.block for each in search("q", ("T", "u"), tool_id="srvtoolu_1"))
    blocks = [{"type": "thinking", "thinking": "hm", "signature": "s"}, call, result]
    assert parse_search_results(blocks) == [{"tool_use_id": "srvtoolu_1", "content": [{"title": "T", "url": "u"}]}]
    assert parse_search_results([]) == []


# Blocks of the server's own tools in the conversation itself


def test_blocks_of_the_servers_tools_are_sent_back_untouched_and_replayed(tmp_path: Path) -> None:
    script = ScriptedResponder().on("look", ["I look.", *search("tide", *_PAGES), "At noon."])
    script.on("and then", "At six.")
    whole = Whole(tmp_path, script)
    whole.say("look", "and then")
    sent = whole.bodies[1]["messages"][1]["content"]
    assert [each["type"] for each in sent] == ["text", "server_tool_use", "web_search_tool_result", "text"]
    assert sent[2]["tool_use_id"] == sent[1]["id"]
    assert sent[2]["content"][0]["encrypted_content"]
    whole.check()
    session = Session(load(BytesSource(Path(whole.path).read_bytes())))
    again = Whole(tmp_path, ReplayResponder([session]))
    again.say("look", "and then")
    assert again.bodies[1]["messages"][1]["content"] == sent
    again.check()


def test_a_call_of_the_server_that_was_cut_off_is_not_sent_back(tmp_path: Path) -> None:
    script = ScriptedResponder().on("look", ["I look.", search("tide")[0], text("never" * 400)], cut_after=1500)
    script.on("Go on exactly", "At noon.").on("and then", "At six.")
    whole = Whole(tmp_path, script)
    whole.say("look", "and then")
    kinds = [block["type"] for body in whole.bodies for message in body["messages"] for block in message["content"]]
    assert "server_tool_use" not in kinds
    assert list(whole.server.refused) == []


def test_a_recorded_search_is_answered_again_by_the_replay(tmp_path: Path) -> None:
    script = _script(["I look.", *search("tide", *_PAGES), "At noon."])
    whole = Whole(tmp_path, script, allowed=("WebSearch",))
    whole.say("find out")
    session = Session(load(BytesSource(Path(whole.path).read_bytes())))
    mind = ReplayResponder([session])
    again = Whole(tmp_path, mind, allowed=("WebSearch",))
    again.say("find out")
    assert again.results[0].detail["results"] == whole.results[0].detail["results"]
    assert mind.differences == []
    again.check()


# Pages


class _Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        data = b"<html><title>Tides</title><body><p>High tide is at noon.</p></body></html>"
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Say nothing."""


@contextmanager
def _served() -> Generator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Page)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/tides"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _fetches(url: str) -> ScriptedResponder:
    script = ScriptedResponder().on(lambda asked: "High tide is at noon" in asked.prompt, "Noon, it says.")
    return script.on("read it", tool("WebFetch", url=url, prompt="When?")).then("At noon.")


@pytest.mark.parametrize("allowed", [True, False])
def test_a_page_is_read_and_asked_about_but_none_of_this_machine(tmp_path: Path, *, allowed: bool) -> None:
    with _served() as url:
        whole = Whole(tmp_path, _fetches(url), allowed=("WebFetch(domain:127.0.0.1)",))

        async def act(started: AgentSession) -> None:
            if allowed:
                started.agent.executor.context.page_cache.allow_loopback = True
            await started.agent.run_turn("read it")

        whole.play(act)
    (outcome,) = whole.results
    whole.check()
    if not allowed:
        assert outcome.is_error
        assert "private or local address" in str(outcome.content)
        assert len(whole.bodies) == 2
        return
    assert outcome.content == "Noon, it says."
    assert set(outcome.detail) == {"bytes", "code", "codeText", "result", "durationMs", "url"}
    assert (outcome.detail["code"], outcome.detail["url"]) == (200, url)
    assert len(whole.bodies) == 3


def test_pages_need_leave_for_their_host(tmp_path: Path) -> None:
    url = "https://tides.example/"
    whole = Whole(tmp_path, _fetches(url), allowed=("WebFetch(domain:moon.example)",))
    whole.say("read it")
    assert len(whole.refused) == 1
    assert len(whole.bodies) == 2
