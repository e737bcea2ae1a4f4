"""The reference of findings is generated from exactly the existing rules."""

import re
from pathlib import Path

from tests.docs.pages import DOCS, read

from steno.check.checkup import RULES
from tools import make_findings_docs

FOLDER = DOCS / "reference" / "findings"


def test_the_reference_of_findings_is_up_to_date() -> None:
    assert make_findings_docs.main(["--check"]) == 0


def test_the_reference_lists_exactly_the_rules() -> None:
    listed = re.findall(r"^\| \[`([\w.-]+)`\]", read(FOLDER / "index.md"), re.MULTILINE)
    assert listed == list(RULES)
    headed = [
        heading for page in FOLDER.glob("*.md") for heading in re.findall(r"^## ([\w.-]+)$", read(page), re.MULTILINE)
    ]
    assert sorted(headed) == sorted(RULES)


def test_every_rule_has_a_summary_and_an_explanation() -> None:
    mute = [rule.id for rule in RULES.values() if not (rule.title and rule.hint and rule.why)]
    assert mute == []


def test_an_outdated_reference_is_reported_and_rewritten(tmp_path: Path) -> None:
    (tmp_path / "gone.md").write_text("old")
    assert make_findings_docs.main(["--check"], tmp_path) == 1
    assert make_findings_docs.main([], tmp_path) == 0
    assert not (tmp_path / "gone.md").exists()
    assert make_findings_docs.main(["--check"], tmp_path) == 0
