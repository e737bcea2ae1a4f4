"""What files hold beside a small catalogue, and what the catalogue would learn from them."""

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from tests.check.drift_records import lines, watch

from steno.check.drift import Observer, apply_merge_patch, propose_patch
from steno.check.drift_model import Drift
from steno.format.catalogue import load_catalogue

__all__ = ["Watched", "cases"]

Records = list[dict[str, Any]]
_LONG: Final = 200
_MANY: Final = 12
_LINE: Final = 700


def _field(*types: str, **more: Any) -> dict[str, Any]:
    return {"types": list(types), "versions": ["1.0", "3.0"], **more}


_MESSAGE: Final = {
    "role": _field("str"),
    "content": _field("str", "arr", ref="blocks"),
    "usage": _field("obj", ref="usage", optional=True),
    "stop": _field("str", "null", optional=True),
}
_CATALOGUE: Final[dict[str, Any]] = {
    "client_versions": {
        "driven": ["1.0", "3.0"],
        "surveyed": ["1.0", "3.0"],
        "claimed": ["1.0", "3.0"],
        "known": ["1.0", "2.0", "3.0"],
    },
    "envelope": {
        "type": _field("str"),
        "uuid": _field("str"),
        "parentUuid": _field("str", "null"),
        "version": _field("str", optional=True),
        "old": _field("str", versions=["1.0", "2.0"]),
        "late": _field("num", versions=["2.0", "3.0"]),
        "rare": _field("bool", "null", optional=True),
        "undated": {"types": ["str"]},
        "untold": {"types": [], "optional": True},
    },
    "records": {
        "user/prompt": {
            "family": "graph",
            "seen": ["1.0", "3.0"],
            "fields": {
                "message": _field("obj", sub=_MESSAGE),
                "mood": _field("str", optional=True),
                "deep": _field(
                    "obj",
                    "arr",
                    optional=True,
                    sub={"mode": _field("str"), "n": _field("num", optional=True)},
                    items={"mode": _field("str")},
                ),
                "list": _field("arr", "str", of=["str", "num"], optional=True),
                "things": _field("arr", items={"a": _field("num"), "kind": _field("str")}, optional=True),
                "map": _field("obj", values={"n": _field("num")}, optional=True),
            },
        },
        "user/tool_result": {
            "family": "graph",
            "fields": {"message": _field("obj", sub=_MESSAGE), "toolUseResult": {"types": [], "ref": "tools"}},
        },
        "assistant/text": {"family": "graph", "fields": {"message": _field("obj", sub=_MESSAGE)}},
        "assistant/tool_use": {"family": "graph", "fields": {"message": _field("obj", sub=_MESSAGE)}},
        "system/note": {"family": "graph", "fields": {"level": _field("str", optional=True)}},
        "mode": {"family": "side", "seen": ["2.0"], "fields": {"type": _field("str"), "mode": _field("str")}},
    },
    "dialects": {
        "spec-000": {
            "envelope": {"type": _field("str"), "uuid": _field("str")},
            "records": {
                "user/prompt": {"family": "graph", "fields": {"message": _field("str")}},
                "compact_system": {"family": "graph", "fields": {"mood": _field("str", optional=True)}},
            },
        },
        "spec-004": {
            "envelope": {"type": _field("str")},
            "records": {"human": {"family": "side", "fields": {"message": _field("obj", optional=True)}}},
        },
    },
    "blocks": {
        "text": {"seen": ["1.0"], "fields": {"type": _field("str"), "text": _field("str")}},
        "tool_use": {
            "fields": {"type": _field("str"), "id": _field("str"), "name": _field("str"), "input": _field("obj")}
        },
        "tool_result": {
            "fields": {
                "type": _field("str"),
                "tool_use_id": _field("str"),
                "content": _field("str", "arr", ref="blocks", optional=True),
                "is_error": _field("bool", optional=True),
            }
        },
    },
    "usage": {"n": _field("num"), "tier": _field("str", optional=True)},
    "tools": {
        "Bash": {
            "input": {"command": _field("str"), "mode": _field("str", optional=True)},
            "result": {"out": _field("str")},
            "result_types": ["obj", "str"],
            "seen": ["1.0"],
        },
        "Plain": {"input": {}, "result": {}, "result_types": []},
        "Words": {"input": {}, "result": {}, "result_types": ["arr"]},
        "mcp__*": {"input": {"q": _field("str")}, "result": {}, "result_types": ["arr"]},
    },
    "enums": {
        "mood": ["calm", "Glad"],
        "user.deep.mode": ["in", "out"],
        "kind": ["x"],
        "mode.mode": ["on"],
        "mode": ["slow"],
        "Bash.input.mode": ["fast"],
        "usage.tier": ["low"],
        "tier": ["never"],
        "spec-000.compact_system.mood": ["grim"],
    },
}


class Watched(NamedTuple):
    """Files to be held against the catalogue."""

    name: str
    files: list[Records | bytes]
    since: str = ""

    def said(self) -> str:
        """Return what is observed, what is learned from it, and what is observed after that."""
        data = [each if isinstance(each, bytes) else lines(each) for each in self.files]
        observer = watch(*data, facts=load_catalogue(json.dumps(_CATALOGUE).encode()), since=self.since)
        patch = propose_patch(observer)
        learned = load_catalogue(json.dumps(apply_merge_patch(_CATALOGUE, patch)).encode())
        again = watch(*data, facts=learned, since=self.since)
        told = [_counted(observer), *_few(map(_drift, observer.drifts()))]
        told += [f"learned {_cut(place)}" for place in _places(patch)]
        told += [f"still {each}" for each in _few(map(_drift, again.drifts()))]
        return "\n".join(told)


def _few(told: Iterable[str]) -> list[str]:
    """Return some lines, of very many only those at both ends."""
    every = list(told)
    if len(every) <= _MANY:
        return every
    return [*every[:3], f"… {len(every) - 6} more …", *every[-3:]]


def _cut(text: str) -> str:
    return text if len(text) < _LINE else f"{text[:_LINE]}… {len(text)} characters"


def _counted(observer: Observer) -> str:
    left = f", {observer.left_out} left out" if observer.left_out else ""
    return f"{observer.records} records of {' '.join(sorted(observer.versions))}{left}"


def _drift(drift: Drift) -> str:
    name = f"={drift.name}" if drift.name else ""
    versions = " ".join(f"{version}:{count}" for version, count in drift.versions.items())
    versions = versions if len(versions) < _LONG else f"{len(drift.versions)} versions"
    types = f"{'/'.join(drift.types)} not {'/'.join(drift.known)}" if drift.known else "/".join(drift.types)
    parts = [drift.code, drift.kind, f"{drift.path}{name}", f"x{drift.count}", versions, types, drift.sample]
    return " | ".join(parts)


def _places(patch: dict[str, Any], above: str = "") -> Iterator[str]:
    """Yield the leaves of a patch, each behind the names that lead to it."""
    for name, value in patch.items():
        place = f"{above}.{name}" if above else name
        if isinstance(value, dict) and value and len(place.split(".")) < 3:
            yield from _places(value, place)
        else:
            yield f"{place} {json.dumps(value, separators=(',', ':'))}"


def _said(type_: str = "user", version: str = "3.0", **more: Any) -> dict[str, Any]:
    """Return a record with all that the catalogue wants of that version."""
    dated: dict[str, Any] = {"old": "x"} if version in ("1.0", "2.0") else {}
    dated |= {"late": 1} if version != "1.0" else {}
    message = {"role": type_, "content": "words"}
    body = {"message": message} if type_ in ("user", "assistant") else {}
    made = {"type": type_, "uuid": "u", "parentUuid": None, "version": version, "undated": "x"}
    return {**made, **dated, **body, **more}


def _without(*names: str, version: str = "3.0") -> dict[str, Any]:
    return {name: value for name, value in _said(version=version).items() if name not in names}


def _message(content: Any = "words", **more: Any) -> dict[str, Any]:
    return _said(message={"role": "user", "content": content, **more})


def _called(name: Any = "Bash", given: Any = None, call: Any = "t", **more: Any) -> dict[str, Any]:
    block = {"type": "tool_use", "id": call, "name": name, "input": given or {"command": "ls"}}
    return _said("assistant", message={"role": "a", "content": [block | more]})


def _result(value: Any = None, call: Any = "t", **more: Any) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": call, **more}
    detail = {"toolUseResult": value} if value is not None else {}
    return _said(message={"role": "u", "content": [block]}, **detail)


def _named(count: int, name: str = "new{}") -> Any:
    return {name.format(_letters(number)): number for number in range(count)}


def _letters(number: int) -> str:
    return "".join("abcdefghij"[int(digit)] for digit in str(number))


def _nested(depth: int) -> Any:
    value: Any = 1
    for number in range(depth):
        value = {f"in{_letters(number)}": value}
    return value


def _one(name: str, *records: dict[str, Any], since: str = "") -> Watched:
    return Watched(name, [list(records)], since)


def cases() -> dict[str, list[Watched]]:
    """Return the files by what drifts."""
    bare = {"type": "novel", "x": 1}
    return {
        "fields": [
            _one("nothing", _said()),
            _one("of no version", _without("version")),
            *(
                _one(f"without {name}, {version}", _without(name, version=version))
                for name in ("uuid", "old", "late", "undated", "message", "parentUuid")
                for version in ("1.0", "2.0", "2.5", "3.0", "4.0")
            ),
            _one("new", _said(brew=1), _said(brew="x"), _said("assistant", version="2.0", brew=None)),
            _one("new on one type", _said(brew={"cups": 2, "pot": {"hot": True}})),
            _one("new on two types, one aside", _said(brew=1), {"type": "mode", "mode": "on", "brew": 2}),
            _one("new with a name that is none", {**_said(), "a b": 1}),
            _one("new inside", _message(brew=[1, "x"]), _message(brew=[{"a": 1}, {"b": None}])),
            _one("new inside a list", _said(things=[{"a": 1, "kind": "x", "brew": 1}, 5])),
            _one("new inside a map", _said(map={"p": {"n": 1, "brew": 1}, "q": 5})),
            _one("new in usage", _message(usage={"n": 1, "brew": 2})),
            _one("missing in usage", _message(usage={"tier": "low"})),
            _one("missing inside", _said(message={"content": "words"})),
            _one("missing inside a list", _said(things=[{"kind": "x"}, {"a": 1, "kind": "x"}])),
            _one("missing inside a map", _said(map={"p": {}})),
            *(_one(f"{count} new", _said(**_named(count))) for count in (63, 64, 65, 66)),
            _one("free keys", _said(brew=_named(48))),
            _one("more free keys", _said(brew=_named(49))),
            _one("keys that are no names", _said(brew={"a b": {"c": 1}})),
            _one("keys that are no names, later", _said(brew={"c": 1}), _said(brew={"a b": 1})),
            _one("keys of objects in a list", _said(brew=[{"c": 1}, {"a b": 1}])),
            *(_one(f"{depth} levels", _said(brew=_nested(depth))) for depth in (5, 6, 7)),
            _one("a long sample", _said(brew={f"name{_letters(n)}": "x" * 20 for n in range(9)})),
            _one("one that is known elsewhere", _said(mode="x"), _said("system", subtype="note", mood="x")),
        ],
        "types": [
            _one("a number", _said(uuid=5)),
            _one("null", _said(undated=None), _said(undated=None, version="2.0")),
            _one("a bool for a number", _said(late=True)),
            _one("a fraction", _said(late=1.5)),
            _one("a number for a bool", _said(rare=1)),
            _one("any", _said(untold=[1]), _said(untold=5)),
            _one("an object for a text", _said(undated={"a": 1, "b": [2]})),
            _one("a list of objects for a text", _said(undated=[{"a": 1}])),
            _one("a text for an object", _said(map="x")),
            _one("elements", _said(list=["a", 1, None, {"x": 1}, None])),
            _one("elements that are known", _said(list=["a", 1])),
            _one("elements of no objects", _said(things=[1, "x", {"a": 1, "kind": "x"}])),
            _one("an object of both", _said(deep={"mode": "in", "n": "x"})),
            _one("a list of both", _said(deep=[{"mode": "in"}, {"mode": 5}, 7])),
            _one("blocks a number", _message(5)),
            _one("blocks an object", _message({"type": "text"})),
            _one("a block a text", _message(["bare", None, [1]])),
        ],
        "values": [
            _one("known", _said(mood="calm"), _said(mood="Glad")),
            _one("new", _said(mood="merry"), _said(mood="merry"), _said(mood="sad")),
            _one("with a capital", _said(mood="Merry")),
            _one("with a capital where none has one", _said(deep={"mode": "Sideways"})),
            _one("no name", _said(mood="very merry")),
            _one("of a whole path", _said(deep={"mode": "aside"}), _said(deep=[{"mode": "aside"}])),
            _one("of an end", _said(things=[{"a": 1, "kind": "y"}])),
            _one("beside", {"type": "mode", "mode": "off", "version": "2.0"}),
            _one("of usage", _message(usage={"n": 1, "tier": "high"})),
            _one("of a tool", _called(given={"command": "ls", "mode": "slow"}), _result({"out": "x"})),
            _one("of a dialect", {"type": "compact_system", "uuid": "u", "mood": "merry", "version": "1.0"}),
        ],
        "kinds": [
            _one("unknown", bare, {**bare, "y": {"z": 1}}),
            _one("unknown, of the graph", _said("novel", brew=1, old=5), _said(brew=2)),
            _one("unknown subtype", _said("system", subtype="tide", level=1)),
            _one("unknown without a version", bare, _said()),
            _one("no name", {"type": "no name", "uuid": "u"}),
            _one("names that are none", {"type": "novel", "a b": {"c d": 1}, "version": "3.0"}),
            _one("untyped", {"uuid": "u"}, {"type": 5}, {"type": ""}),
            _one("many names", {"type": "novel", "version": "3.0", **_named(60)}),
            _one("of a dialect", {"type": "user", "message": "words", "uuid": "u", "version": "1.0"}),
            _one("of a dialect, unknown", {"type": "assistant", "message": "words", "version": "1.0"}),
            _one("of a dialect, with a folder", {"type": "user", "message": "words", "cwd": "/w"}),
            _one("of the other dialect", {"type": "human", "message": {"x": 1}, "brew": 1}),
            _one("of the other dialect, unknown", {"type": "compact_recap", "timestamp": 5}),
            Watched("no objects", [b'[1]\n{"type":"novel","n":1e999,"version":"3.0"}\n5\n']),
            Watched("bad bytes", [b'{"type":"novel","x":"\xff","version":"3.0"}\n']),
        ],
        "blocks": [
            _one("known", _message([{"type": "text", "text": "x"}])),
            _one("new", _message([{"type": "holo", "data": {"x": 1}}]), _message([{"type": "holo"}])),
            _one("untyped", _message([{"text": "x"}, {"type": 5}])),
            _one("no name", _message([{"type": "a b"}])),
            _one("new field", _message([{"type": "text", "text": "x", "brew": 1}])),
            _one("inside a result", _result({"out": "x"}, content=[{"type": "holo"}])),
        ],
        "tools": [
            _one("known", _called(), _result({"out": "x"})),
            _one("new", _called("Brew", {"n": 1}), _result({"cups": [1]})),
            _one("new, refused", _called("Brew"), _result("no", is_error=True)),
            _one("new, an error of no kind", _called("Brew"), _result("no", is_error="yes")),
            _one("new, unanswered", _called("Brew", {"n": 1})),
            _one("new, answered elsewhere", _called("Brew"), _result({"x": 1}, call="u")),
            _one("new, twice", _called("Brew"), _result([1]), _called("Brew", call="u"), _result(5, call="u")),
            _one("new, without an id", _called("Brew", call=None)),
            _one(
                "new, answered among odd blocks",
                _called("Brew"),
                _message([5, "x", {"type": "tool_result", "tool_use_id": "t", "is_error": True}]),
            ),
            _one("new, answered by an odd id", _called("Brew"), _result("no", ["t"], is_error=True)),
            _one("new, the next one words", _called("Brew"), _said(), _result("no", is_error=True)),
            _one("no name", _called(5)),
            _one("a name that is none", _called("a b"), _result({"x": 1})),
            _one("of a server", _called("mcp__x__y", {"q": "x", "brew": 1}), _result([1])),
            _one("of a server, another result", _called("mcp__x__y", {"q": "x"}), _result({"x": 1})),
            _one("new argument", _called(given={"command": "x", "brew": 1}), _result({"out": "x"})),
            _one("new argument, refused", _called(given={"brew": 1}), _result("no", is_error=True)),
            _one("missing argument", _called(given={"mode": "fast"}), _result({"out": "x"})),
            _one("argument of another type", _called(given={"command": 5}), _result({"out": "x"})),
            _one("input no object", _called(given=[1])),
            _one("65 arguments", _called(given={"command": "x", **_named(65)})),
            _one("result of another type", _called(), _result([1])),
            _one("result words of a failure", _called("Words"), _result("no", is_error=True)),
            _one("result words of no failure", _called("Words"), _result("no")),
            _one("result a number of a failure", _called("Words"), _result(5, is_error=True)),
            _one("result of nothing recorded", _called("Plain"), _result({"x": 1})),
            _one("new in a result", _called(), _result({"out": "x", "brew": 1})),
            _one("missing in a result", _called(), _result({"brew": 1})),
            _one("a result before its call", _result({"brew": 1}), _called()),
            _one(
                "two calls in a message",
                _said(
                    "assistant",
                    message={
                        "role": "a",
                        "content": [
                            {"type": "tool_use", "id": "t", "name": "Brew", "input": {}},
                            {"type": "tool_use", "id": "u", "name": "Stew", "input": {}},
                            {"type": "text", "text": "x", "brew": 1},
                        ],
                    },
                ),
                _result("no", is_error=True),
            ),
            _one(
                "256 doubts", *[_called("Brew", call=f"c{n}") for n in range(256)], _result("no", "c0", is_error=True)
            ),
            _one(
                "257 doubts", *[_called("Brew", call=f"c{n}") for n in range(257)], _result("no", "c256", is_error=True)
            ),
            Watched("of another file", [[_called("Brew")], [_result({"x": 1})]]),
        ],
        "versions": [
            _one("several", bare, _said(version="1.0"), bare, _said(version="2.0", brew=1), bare),
            _one("no version", bare, bare),
            _one("no version's form", _said(version="yesterday", brew=1)),
            _one("with a suffix", _said(version="3.1-beta.2", brew=1)),
            _one("too long", _said(version="1.2.3.4.5.6", brew=1), _said(version="1234567.0", brew=1)),
            _one("newer", _said(version="3.5"), _said(version="4.0", brew=1)),
            _one("newer, with tools", _said(version="4.0"), _called() | {"version": "4.0"}, _result({"out": "x"})),
            _one("newer, missing", _without("uuid") | {"version": "4.0"}, _without("late") | {"version": "4.0"}),
            _one("newer, with what was gone", _said(version="4.0", old="x")),
            _one("since 2.0", _said(version="1.0", brew=1), _said(version="2.0", brew=1), bare, since="2.0"),
            _one("since 2.0, none first", bare, _said(version="1.0", brew=1), since="2.0"),
            Watched("of two files", [[_said(version="1.0", brew=1)], [bare, _said(version="3.0")]]),
            *(_one(f"{n} before", *[bare] * n, _said()) for n in (63, 64, 65)),
            _one("a mebibyte before", *[{**bare, "x": "x" * 400_000}] * 3, _said()),
            _one("64 versions", *[_said(version=f"3.{n}", brew=1) for n in range(64)]),
            _one("65 versions", *[_said(version=f"3.{n}", brew=1) for n in range(66)], _said(version="3.7", brew=1)),
        ],
    }
