"""The reference of findings says what the rules say, of all of them and of no other."""

import re
from pathlib import Path

from tests.docs.pages import DOCS, read

from steno.check.checkup import RULES
from tools import make_findings_docs

FOLDER = DOCS / "reference" / "findings"


def test_the_reference_of_findings_is_up_to_date() -> None:
    assert make_findings_docs.main(["--check"]) == 0


def test_every_rule_is_in_the_reference_and_no_other() -> None:
    listed = re.findall(r"^\| \[`([\w.-]+)`\]", read(FOLDER / "index.md"), re.MULTILINE)
    assert listed == list(RULES)
    headed = [
        heading for page in FOLDER.glob("*.md") for heading in re.findall(r"^## ([\w.-]+)$", read(page), re.MULTILINE)
    ]
    assert sorted(headed) == sorted(RULES)


def test_every_rule_says_what_it_is_what_it_means_and_why() -> None:
    mute = [rule.id for rule in RULES.values() if not (rule.title and rule.hint and rule.why)]
    assert mute == []


def test_an_old_reference_is_noticed_and_written_anew(tmp_path: Path) -> None:
    (tmp_path / "gone.md").write_text("old")
    assert make_findings_docs.main(["--check"], tmp_path) == 1
    assert make_findings_docs.main([], tmp_path) == 0
    assert not (tmp_path / "gone.md").exists()
    assert make_findings_docs.main(["--check"], tmp_path) == 0
