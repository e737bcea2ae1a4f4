"""The figures: plausible, the same for the same requests, with a cache that remembers."""

from typing import Any

from tests.builders import image, png
from tests.llm.testserver.asking import assistant, body, tool, user

from steno.llm.testserver.request_handler import TokenMeter, output_tokens

_MARK = {"cache_control": {"type": "ephemeral"}}


def _long(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words * 200, **more}


def test_a_marked_beginning_is_written_once_and_read_from_then_on() -> None:
    meter = TokenMeter()
    system = [_long("be good ", **_MARK)]
    first = meter.usage(body(user("Hi."), system=system))
    assert first["cache_creation_input_tokens"] > 300
    assert first["cache_read_input_tokens"] == 0
    second = meter.usage(body(user("Another."), system=system))
    assert second["cache_read_input_tokens"] == first["cache_creation_input_tokens"]
    assert second["cache_creation_input_tokens"] == 0


def test_a_mark_that_moves_on_writes_only_what_is_new() -> None:
    meter = TokenMeter()
    first = meter.usage(body(user(_long("one ", **_MARK))))
    moved = body(user(_long("one ")), assistant("So."), user(_long("two ", **_MARK)))
    second = meter.usage(moved)
    assert second["cache_read_input_tokens"] == first["cache_creation_input_tokens"]
    assert 0 < second["cache_creation_input_tokens"] < second["cache_read_input_tokens"] + 100
    assert meter.usage(moved)["cache_creation_input_tokens"] == 0


def test_another_beginning_is_not_read() -> None:
    meter = TokenMeter()
    meter.usage(body(user(_long("one ", **_MARK)), tools=[tool()]))
    changed = meter.usage(body(user(_long("one ", **_MARK)), tools=[tool("Write")]))
    assert changed["cache_read_input_tokens"] == 0


def test_long_marks_are_counted_apart() -> None:
    hourly = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
    kept = TokenMeter().usage(body(user(_long("one ", **hourly))))["cache_creation"]
    assert kept["ephemeral_5m_input_tokens"] == 0
    assert kept["ephemeral_1h_input_tokens"] > 100


def test_a_picture_counts_by_its_sides_and_not_by_its_bytes() -> None:
    picture = image(png([[(1, 2, 3)] * 100] * 100))
    assert TokenMeter.count(body(user(picture))) < 40
    assert output_tokens([]) > 0
