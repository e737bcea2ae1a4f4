"""The catalogue as of an older client holds what that client had, and nothing that came later."""

import msgspec
import pytest

from steno.format.catalogue import Fields, catalogue, version_key

FACTS = catalogue()
DATED = sorted({version for entry in FACTS.kinds("claude") for version in entry.seen}, key=version_key)


def every_field(fields: Fields) -> list[tuple[str, tuple[str, ...]]]:
    """Return the name and the versions of every field, those inside of others included."""
    found: list[tuple[str, tuple[str, ...]]] = []
    for name, field in fields.items():
        found.append((name, field.versions))
        for part in (field.sub, field.items, field.values):
            found += every_field(part)
    return found


@pytest.mark.parametrize("version", [DATED[0], DATED[len(DATED) // 2], DATED[-1]])
def test_nothing_later_is_left_and_nothing_earlier_is_gone(version: str) -> None:
    limit = version_key(version)
    cut = FACTS.as_of(version)
    for entry in FACTS.kinds("claude"):
        left = cut.records["claude"].get(entry.name)
        if entry.seen:
            assert (left is not None) == (min(map(version_key, entry.seen)) <= limit), entry.name
        if left is not None:
            assert left.seen == tuple(v for v in entry.seen if version_key(v) <= limit)
            names = {
                name
                for name, field in entry.fields.items()
                if not field.versions or version_key(field.versions[0]) <= limit
            }
            assert set(left.fields) == names, entry.name
    for fields in (cut.usage, cut.envelopes["claude"], *(b.fields for b in cut.blocks.values())):
        for name, versions in every_field(fields):
            assert all(version_key(one) <= limit for one in versions), name
    for tool in cut.tools.values():
        for name, versions in [*every_field(tool.input), *every_field(tool.result)]:
            assert all(version_key(one) <= limit for one in versions), name
    assert cut.client_versions.known == tuple(one for one in FACTS.client_versions.known if version_key(one) <= limit)
    assert all(version_key(one) <= limit for one in cut.client_versions.driven)
    assert version_key(cut.client_versions.surveyed[1]) <= limit
    assert cut.client_versions.surveyed[0] == FACTS.client_versions.surveyed[0]
    assert cut.client_versions.claimed == FACTS.client_versions.claimed
    assert cut.enums == FACTS.enums
    assert {name: cut.records[name] for name in cut.records if name != "claude"} == {
        name: FACTS.records[name] for name in FACTS.records if name != "claude"
    }


def test_the_newest_client_has_everything() -> None:
    assert FACTS.as_of(FACTS.newest) == FACTS
    assert FACTS.as_of("999.0.0") == FACTS


def test_before_every_client_only_what_nobody_dated_is_left() -> None:
    cut = FACTS.as_of("0.0.1")
    assert cut.client_versions.known == ()
    assert cut.newest == ""
    for entry in cut.kinds("claude"):
        assert entry.seen == ()
        assert entry.fields or not FACTS.records["claude"][entry.name].fields


def test_an_entry_that_nobody_dated_goes_with_the_last_of_its_fields() -> None:
    some = next(entry for entry in FACTS.kinds("claude") if entry.seen and entry.fields)
    dated = {name: field for name, field in some.fields.items() if field.versions}
    late = {name: msgspec.structs.replace(field, versions=("2.0.0", "2.1.0")) for name, field in dated.items()}
    assert late
    for seen, fields, there in (((), late, False), ((), {}, True), (("1.0.0",), late, True), (("2.0.0",), late, False)):
        entry = msgspec.structs.replace(some, seen=seen, fields=fields)
        records = {**FACTS.records, "claude": {"x": entry}}
        cut = msgspec.structs.replace(FACTS, records=records).as_of("1.5.0")
        assert ("x" in cut.records["claude"]) == there, (seen, bool(fields))
