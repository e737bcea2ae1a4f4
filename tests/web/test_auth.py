"""Authentication of the explorer."""

import socket

import pytest
from tests.web.explorer import Explorer


def test_a_reader_who_is_let_in_sees_the_page(demo: Explorer) -> None:
    answer = demo.get("/")
    assert answer.status == 200
    assert "<h1>Sessions</h1>" in answer.text


def test_without_the_cookie_there_is_nothing(demo: Explorer) -> None:
    assert demo.ask("/").status == 401


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "localhost:1", ""])
def test_a_name_from_elsewhere_gets_nothing(demo: Explorer, host: str) -> None:
    assert demo.ask("/", headers={"host": host, "cookie": demo.cookie}).status == 421


def test_a_code_works_once_and_leads_to_the_page_that_was_asked_for(demo: Explorer) -> None:
    way = demo.server.login_url("/usage").removeprefix(demo.base)
    first = demo.ask(way)
    assert first.status == 200
    assert demo.cookie in first.headers["set-cookie"]
    assert first.headers["refresh"] == "0; url=/usage"
    assert demo.ask(way).status == 401


def test_what_is_ready_is_sent_at_once(demo: Explorer) -> None:
    """Accepted sockets are told not to wait only where the listening one names its protocol."""
    assert demo.server._socket.proto == socket.IPPROTO_TCP


@pytest.mark.parametrize("way", ["/", "/usage", "/nowhere", "/static/x/steno.js", "/live?after=x"])
def test_no_answer_lets_a_page_run_a_script_of_its_own(demo: Explorer, way: str) -> None:
    policy = demo.get(way).headers["content-security-policy"]
    parts = (rule.strip().partition(" ") for rule in policy.split(";") if rule.strip())
    rules = {name: value for name, _, value in parts}
    assert rules["default-src"] == "'none'"
    assert rules.get("script-src", "'none'") in ("'self'", "'none'")
    assert "unsafe" not in policy
    assert rules["frame-ancestors"] == "'none'"
    assert rules["base-uri"] == "'none'"
