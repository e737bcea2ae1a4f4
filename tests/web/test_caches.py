"""Caches: one computation per key, eviction of the oldest, concurrent use."""

import threading

from steno.web.state.caches import LruCache


def test_an_answer_is_worked_out_once() -> None:
    few, asked = LruCache(), list[int]()
    for _ in range(3):
        assert few.get("name", lambda: asked.append(1) or "answer") == "answer"
    assert asked == [1]


def test_the_oldest_go_first() -> None:
    few = LruCache(2)
    for name in "abc":
        few.get(name, lambda name=name: name)
    assert few.get("c", lambda: "again") == "c"
    assert few.get("a", lambda: "again") == "again"


def test_an_answer_that_makes_room_for_itself_meanwhile_is_given_all_the_same() -> None:
    few = LruCache(2)

    def push_out() -> str:
        # As other threads do while this one is at work.
        for name in "bcd":
            few.get(name, lambda name=name: name)
        return "mine"

    assert few.get("a", push_out) == "mine"


def test_two_who_ask_at_once_do_not_wait_for_each_other() -> None:
    few = LruCache()
    begun, go_on = threading.Event(), threading.Event()

    def slow() -> str:
        begun.set()
        assert go_on.wait(60)
        return "slow"

    waiting = threading.Thread(target=few.get, args=("a", slow))
    waiting.start()
    try:
        assert begun.wait(60)
        assert few.get("b", lambda: "quick") == "quick"
    finally:
        go_on.set()
        waiting.join()
    assert few.get("a", lambda: "again") == "slow"
