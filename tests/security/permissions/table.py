"""Every attack, by family."""

from typing import Final

from tests.security.permissions.attack import Attack
from tests.security.permissions.families import (
    denied_reads,
    edits,
    git_settings,
    git_under_rules,
    known,
    named_files,
    processes,
    readers,
    rule_words,
    rules,
    search_and_remotes,
    shell,
    shell_words,
    start,
)

FAMILIES: Final[dict[str, tuple[Attack, ...]]] = {
    "known": known.ATTACKS,
    "git": git_settings.ATTACKS,
    "readers": readers.ATTACKS,
    "rules": rules.ATTACKS,
    "shell": shell.ATTACKS,
    "processes": processes.ATTACKS,
    "denied": denied_reads.ATTACKS,
    "edits": edits.ATTACKS,
    "start": start.ATTACKS,
    "git-rules": git_under_rules.ATTACKS,
    "named": named_files.ATTACKS,
    "rule-words": rule_words.ATTACKS,
    "shell-words": shell_words.ATTACKS,
    "search-and-remotes": search_and_remotes.ATTACKS,
}
ATTACKS: Final = tuple(each for family in FAMILIES.values() for each in family)
