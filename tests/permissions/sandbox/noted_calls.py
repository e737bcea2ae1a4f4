"""Stand where system calls are made, and note them."""

import os
from typing import Any


class Library:
    """Stands where the C library is called, and notes the calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.fails: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> int:
            plain = [getattr(each, "value", each) for each in arguments]
            self.calls.append((name, *plain))
            return -1 if name in self.fails else 0

        return call


class LandlockCalls:
    """Notes the rules that are added, by path."""

    def __init__(self, abi: int) -> None:
        self.abi = abi
        self.made: list[tuple[int, ...]] = []
        self.rules: dict[str, int] = {}
        self.restricted = 0

    def call(self, number: int, *arguments: Any) -> int:
        if number == 444 and arguments[0] is None:
            assert arguments[1:] == (0, 1)
            return self.abi
        if number == 444:
            rules = arguments[0]._obj
            size = getattr(arguments[1], "value", arguments[1])
            self.made.append((rules.files, rules.network, rules.scopes, size, arguments[2]))
            return os.open(os.devnull, os.O_RDONLY)
        if number == 445:
            rule = arguments[2]._obj
            path = os.path.realpath(f"/proc/self/fd/{rule.parent}")
            self.rules[path] = self.rules.get(path, 0) | rule.allowed
            assert (arguments[1], arguments[3]) == (1, 0)
            return 0
        assert number == 446
        assert arguments[1] == 0
        self.restricted += 1
        return 0
