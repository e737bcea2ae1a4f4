"""Whether an answer has its shape, down to its last corner."""

import asyncio
from typing import TYPE_CHECKING, Any, cast

import pytest

from steno.agent.headless import StructuredOutputTool, schema_violation
from steno.errors import BadRequest
from steno.tools.protocol import ToolFailure

if TYPE_CHECKING:
    from steno.tools.context import ToolContext

_PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "pattern": "^[A-Z]"},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "kind": {"enum": ["user", "model", None]},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
        "home": {"$ref": "#/$defs/place"},
        "size": {"anyOf": [{"type": "number"}, {"const": "big"}]},
    },
    "required": ["name"],
    "additionalProperties": False,
    "$defs": {
        "place": {
            "type": ["object", "null"],
            "properties": {"city": {"type": "string"}, "in": {"$ref": "#/$defs/place"}},
            "required": ["city"],
        }
    },
}


@pytest.mark.parametrize(
    "value",
    [
        {"name": "Ada"},
        {"name": "Ada", "age": 36, "kind": None, "tags": ["a", "b"], "size": 1.5},
        {"name": "Ada", "age": 36.0, "size": "big", "home": None},
        {"name": "Ada", "home": {"city": "London", "in": {"city": "England", "else": 1}}},
    ],
)
def test_what_has_the_shape_is_taken(value: dict[str, Any]) -> None:
    assert schema_violation(_PERSON, value) == ""


@pytest.mark.parametrize(
    ("value", "flaw"),
    [
        ([], "the answer must be an object"),
        ({}, "name is missing"),
        ({"name": ""}, "name must be at least 1 characters long"),
        ({"name": "ada"}, "name must match ^[A-Z]"),
        ({"name": "Ada", "age": "36"}, "age must be an integer"),
        ({"name": "Ada", "age": 36.5}, "age must be an integer"),
        ({"name": "Ada", "age": True}, "age must be an integer"),
        ({"name": "Ada", "age": 151}, "age must be at most 150"),
        ({"name": "Ada", "kind": "dog"}, "kind must be one of 'user', 'model', None"),
        ({"name": "Ada", "tags": ["a", 1]}, "tags[1] must be a string"),
        ({"name": "Ada", "tags": ["a", "b", "c"]}, "tags must be at most 2 items long"),
        ({"name": "Ada", "more": 1}, "more is not allowed"),
        ({"name": "Ada", "size": "small"}, "size must be a number"),
        ({"name": "Ada", "home": {"city": "L", "in": {}}}, "home.in.city is missing"),
    ],
)
def test_what_has_not_is_told_by_where_it_is(value: Any, flaw: str) -> None:
    assert schema_violation(_PERSON, value) == flaw


def test_a_shape_that_goes_round_in_circles_comes_to_an_end() -> None:
    assert schema_violation({"$ref": "#"}, {}) == ""
    assert schema_violation({"allOf": [{"$ref": "#"}, {"$ref": "#"}]}, {}) == ""
    assert schema_violation({"$ref": "#/nowhere"}, {}) == ""
    assert schema_violation({"pattern": "(", "type": "string"}, "x") == ""


def test_an_answer_without_its_shape_is_not_taken() -> None:
    shape = StructuredOutputTool(_PERSON)
    context = cast("ToolContext", None)
    with pytest.raises(ToolFailure, match="tags"):
        asyncio.run(shape.run({"name": "Ada", "tags": [1]}, context, "c"))
    assert shape.value is None
    asyncio.run(shape.run({"name": "Ada"}, context, "c"))
    assert shape.value == {"name": "Ada"}


@pytest.mark.parametrize("schema", [{"type": "array"}, {"type": ["string", "null"]}])
def test_an_answer_can_only_be_an_object(schema: dict[str, Any]) -> None:
    with pytest.raises(BadRequest):
        StructuredOutputTool(schema)
