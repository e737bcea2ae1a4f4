"""Names of Claude Code's directories and files: path builders, `classify_path` and project slugs.

Strings only: every path is relative to a config directory and joined with `/`, on every system.

    projects/<slug>/<session>.jsonl                              a session
    projects/<slug>/agent-<agent>.jsonl                          its sub-agents (2.0.x)
    projects/<slug>/<session>/subagents/agent-<agent>.jsonl      its sub-agents (2.1.x)
    projects/<slug>/<session>/subagents/workflows/<run>/…        those of a workflow, and its journal
    conversations/<slug with _>/<timestamp>.jsonl                a dialect that Claude Code does not write
"""

import re
from collections.abc import Sequence
from functools import cache
from typing import Final, Literal

import msgspec

SLUG_LIMIT: Final = 200
_MAX_NAME_BYTES: Final = 255
_REPLACED: Final = r"[^a-zA-Z0-9]"
_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"


def slug_for_path(path: str) -> str:
    """Return the project directory name for a working directory (symlinks already resolved).

    Every character that is not an ASCII letter or digit becomes `-`; above 200 characters, the name is the first 200
    and a hash of the whole path. Claude Code counts as JavaScript does, in UTF-16 code units: two for a character
    outside the basic plane. This is inferred; no such directory has been observed.

    >>> slug_for_path("/home/ada/dot.dir/ünï")
    '-home-ada-dot-dir--n-'
    """
    dashed = _replace_with_dashes(path)
    if len(dashed) <= SLUG_LIMIT:
        return dashed
    return f"{dashed[:SLUG_LIMIT]}-{_base36(abs(_java_hash(path)))}"


def dialect_slug(path: str) -> str:
    """Return the project directory name in the `conversations/` dialect: `/` becomes `_`.

    >>> dialect_slug("/home/ada/my-work")
    '_home_ada_my-work'
    """
    return path.replace("/", "_")


def slug_candidates(path: str) -> tuple[str, ...]:
    """Return all possible project directory names for `path`, most likely first.

    In addition to `slug_for_path`: not shortened (Claude Code up to 2.1.42), only `/` replaced (the published rule),
    both without the leading `-` (one published checklist), and the `_` dialect.
    """
    return tuple(dict.fromkeys(name for name in _slugs_by_rule(path) if name))


def slug_by_same_rule(name: str, path: str, other: str) -> str:
    """Return the directory name of another path by the rule that produces `name` for `path`.

    Falls back to Claude Code's own rule if the result would exceed the maximum length of file names.

    >>> slug_by_same_rule("_home_ada_a", "/home/ada/a", "/srv/b.c"), slug_by_same_rule("x", "/home/ada/a", "/srv/b")
    ('_srv_b.c', '-srv-b')
    """
    for old, new in zip(_slugs_by_rule(path), _slugs_by_rule(other), strict=True):
        if old == name and len(new.encode("utf-8", "surrogateescape")) <= _MAX_NAME_BYTES:
            return new
    return slug_for_path(other)


def _slugs_by_rule(path: str) -> tuple[str, ...]:
    dashed, published = _replace_with_dashes(path), path.replace("/", "-")
    return (
        slug_for_path(path),
        dashed,
        published,
        dashed.removeprefix("-"),
        published.removeprefix("-"),
        dialect_slug(path),
    )


def guess_project(name: str) -> str:
    r"""Guess the working directory from a project directory name, for display.

    The name does not preserve the replaced characters, so use this only for files without `cwd`.

    >>> guess_project("-home-ada-work--claude-worktrees-wt9")
    '/home/ada/work/.claude/worktrees/wt9'
    >>> guess_project("C--Users-ada-work")
    'C:\\Users\\ada\\work'
    """
    prefix, cut = name, ""
    if len(name) > SLUG_LIMIT and name[SLUG_LIMIT] == "-":
        prefix, cut = name[:SLUG_LIMIT], "…"
    if re.match(r"[A-Za-z]--", prefix):
        return prefix[0] + ":\\" + prefix[3:].replace("--", "\\.").replace("-", "\\") + cut
    if prefix.startswith("_"):
        return prefix.replace("_", "/") + cut
    if prefix.startswith(("home-", "Users-")):
        prefix = "-" + prefix
    if not prefix.startswith("-"):
        return name
    return prefix.replace("--", "/.").replace("-", "/") + cut


def project_from_slug(name: str) -> str:
    """Return the working directory guessed from a directory name; empty if it is not a project directory name.

    >>> project_from_slug("_home_ada_work"), project_from_slug("backup")
    ('/home/ada/work', '')
    """
    guessed = guess_project(name)
    return guessed if guessed != name else ""


def _replace_with_dashes(path: str) -> str:
    if path.isascii():
        return re.sub(_REPLACED, "-", path)
    return "".join("--" if c > "\uffff" else re.sub(_REPLACED, "-", c) for c in path)


def _java_hash(text: str) -> int:
    """Compute Java's `String.hashCode`: over UTF-16 code units, in 32 signed bits."""
    code_units = text.encode("utf-16-le", "surrogatepass")
    total = 0
    for low, high in zip(code_units[::2], code_units[1::2], strict=True):
        total = (total * 31 + (high << 8 | low)) & 0xFFFF_FFFF
    return total - (1 << 32) if total >> 31 else total


def _base36(number: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return digits or "0"


Role = Literal[
    "agent",
    "agent-def",
    "agent-meta",
    "cache",
    "claude-md",
    "command",
    "credentials",
    "custom-title",
    "debug",
    "file-history",
    "history",
    "hook",
    "job",
    "journal",
    "live",
    "lock",
    "memory",
    "paste",
    "plan",
    "plugin",
    "session",
    "session-env",
    "sessions-index",
    "settings",
    "shell-snapshot",
    "skill",
    "task",
    "telemetry",
    "todo",
    "tool-result",
    "unknown",
    "workflow",
]
"""Purpose of a file."""


class PathInfo(msgspec.Struct, frozen=True, gc=False):
    """Classification of a file by its name and parent directories. Fields are empty if unknown.

    `name` is the file name, or for some roles a shorter name: a plan, command or agent definition without `.md`, a
    skill's directory, a memory's path below `memory/`.
    """

    role: Role
    name: str = ""
    slug: str = ""
    session_id: str = ""
    agent_id: str = ""
    workflow: str = ""


_UUID: Final = r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"
_AGENT_ID: Final = r"[0-9a-f]{7}|[0-9a-f]{17}|a[0-9A-Za-z_-]+-[0-9a-f]{16}"


def is_uuid(text: str) -> bool:
    """Return whether `text` is a UUID in the usual notation, of any version.

    >>> is_uuid("62ecc684-5437-43ff-95cf-5c331fca7ea1"), is_uuid("62ecc684")
    (True, False)
    """
    return _uuid_pattern().fullmatch(text) is not None


@cache
def _uuid_pattern() -> re.Pattern[str]:
    return re.compile(_UUID)


def is_agent_id(text: str) -> bool:
    """Return whether `text` is a sub-agent ID in one of the formats that Claude Code has used.

    >>> [is_agent_id(t) for t in ("a318043", "aa4e0dbe5b26c1968", "areview-0123456789abcdef", "x")]
    [True, True, True, False]
    """
    return re.fullmatch(_AGENT_ID, text) is not None


# Builders

JSONL_SUFFIX: Final = ".jsonl"
SHORT_ID_LENGTH: Final = 8
"""Characters of a session ID shown to users."""
"""File name suffix of transcripts."""


def session_path(project: str, session_id: str) -> str:
    """Return the path of a session."""
    return f"projects/{project}/{session_id}.jsonl"


def meta_path(agent: str) -> str:
    """Return the path of the `.meta.json` next to a sub-agent's transcript."""
    return agent.removesuffix(".jsonl") + ".meta.json"


def tool_result_path(project: str, session_id: str, name: str) -> str:
    """Return the path of a tool result that was too large for the session."""
    return f"projects/{project}/{session_id}/tool-results/{name}"


def file_history_name(path: str, version: int) -> str:
    """Return the file name of a backup of the file at an absolute path."""
    from hashlib import sha256

    digest = sha256(path.encode("utf-8", "surrogateescape")).hexdigest()
    return f"{digest[:16]}@v{version}"


def plan_path(name: str) -> str:
    """Return the path of a plan."""
    return f"plans/{name}.md"


# Classification of paths

CONFIG_FOLDERS: Final = frozenset(
    {
        *("agents", "cache", "commands", "daemon", "debug", "file-history", "hooks", "ide"),
        *("image-cache", "jobs", "logs", "paste-cache", "plans", "plugins", "rules"),
        *("session-env", "sessions", "shell-snapshots", "skills", "statsig", "tasks"),
        *("telemetry", "todos"),
    }
)
"""Directories of a config directory that contain no transcripts."""
_SLUG: Final = r"(?P<slug>[^/]+)"
_SESSION: Final = r"(?P<session_id>[^/]+)"
_AGENT: Final = r"agent-(?P<agent_id>[^/]+)"
_NAME: Final = r"(?P<name>.+)"
_WORKFLOW_RUN: Final = r"workflows/(?P<workflow>[^/]+)/(?:.+/)?"
_SESSION_FOLDER: Final = rf"projects/{_SLUG}/{_SESSION}"
_PATH_PATTERNS: Final[tuple[tuple[Role, str], ...]] = (
    ("session", rf"projects/{_SLUG}/(?P<session_id>{_UUID})\.jsonl"),
    ("agent", rf"projects/{_SLUG}/{_AGENT}\.jsonl"),
    ("agent", rf"{_SESSION_FOLDER}/subagents/(?:{_WORKFLOW_RUN}|.+/)?{_AGENT}\.jsonl"),
    ("agent-meta", rf"projects/{_SLUG}/{_AGENT}\.meta\.json"),
    ("agent-meta", rf"{_SESSION_FOLDER}/subagents/(?:{_WORKFLOW_RUN}|.+/)?{_AGENT}\.meta\.json"),
    ("journal", rf"{_SESSION_FOLDER}/subagents/{_WORKFLOW_RUN}journal\.jsonl"),
    ("tool-result", rf"{_SESSION_FOLDER}/tool-results/{_NAME}"),
    ("custom-title", rf"{_SESSION_FOLDER}/custom-title\.json"),
    ("workflow", rf"{_SESSION_FOLDER}/workflows/(?P<workflow>[^/]+)\.json"),
    ("workflow", rf"{_SESSION_FOLDER}/workflows/scripts/{_NAME}"),
    ("memory", rf"projects/{_SLUG}/memory/{_NAME}"),
    ("sessions-index", rf"projects/{_SLUG}/sessions-index\.json"),
    ("session", rf"conversations/{_SLUG}/[^/]+\.jsonl"),
    ("file-history", rf"file-history/{_SESSION}/{_NAME}"),
    ("history", r"history\.jsonl"),
    ("todo", rf"todos/(?P<session_id>{_UUID})-{_AGENT}\.json"),
    ("task", rf"tasks/{_SESSION}/(?P<name>[^/]+)\.json"),
    ("lock", rf"tasks/{_SESSION}/\.[^/]+"),
    ("plan", rf"plans/{_NAME}\.md"),
    ("paste", rf"(?:paste|image)-cache/{_NAME}"),
    ("shell-snapshot", rf"shell-snapshots/{_NAME}"),
    ("live", r"sessions/(?P<name>[^/]+)\.json"),
    ("credentials", r"sessions/[^/]+\.key|\.credentials\.json"),
    ("debug", rf"debug/(?P<session_id>{_UUID})\.txt|debug/.+"),
    ("session-env", rf"session-env/{_SESSION}(?:/.+)?"),
    ("settings", r"settings(?:\.local)?\.json"),
    ("claude-md", r"CLAUDE(?:\.local)?\.md|rules/.+\.md"),
    ("agent-def", rf"agents/{_NAME}\.md"),
    ("skill", r"skills/(?P<name>[^/]+)/.+"),
    ("command", rf"commands/{_NAME}\.md"),
    ("hook", rf"hooks/{_NAME}"),
    ("job", rf"(?:jobs|daemon)/{_NAME}"),
    ("plugin", rf"plugins/{_NAME}"),
    ("telemetry", rf"(?:telemetry|statsig)/{_NAME}"),
    ("cache", rf"cache/{_NAME}|stats-cache\.json"),
)


@cache
def _path_rules() -> tuple[tuple[Role, re.Pattern[str]], ...]:
    # Compiled on first use: listing sessions does not need them.
    return tuple((role, re.compile(rule, re.DOTALL)) for role, rule in _PATH_PATTERNS)


def classify_path(relative_path: str) -> PathInfo:
    """Classify a file by its path relative to a config directory.

    Parent directories of the config directory (`…/.claude/`, `…/projects/`) may be included. A transcript in an unusual
    directory is recognized by its name. Unrecognized files are `unknown`.

    >>> classify_path("tasks/62ecc684-5437-43ff-95cf-5c331fca7ea1/3.json").name
    '3'
    >>> place = classify_path("projects/-home-ada/agent-a318043.jsonl")
    >>> place.role, place.slug, place.agent_id
    ('agent', '-home-ada', 'a318043')
    """
    parts = _below_config_folder([part for part in relative_path.split("/") if part not in {"", "."}])
    if not parts:
        return PathInfo("unknown")
    path = "/".join(parts)
    for role, rule in _path_rules():
        if match := rule.fullmatch(path):
            groups = {key: value for key, value in match.groupdict().items() if value}
            if groups.get("agent_id") == groups.get("session_id"):
                groups.pop("agent_id", None)
            return PathInfo(role, **{"name": parts[-1], **groups})
    return classify_transcript(parts) if parts[-1].endswith(".jsonl") else PathInfo("unknown", parts[-1])


def classify_transcript(parts: Sequence[str]) -> PathInfo:
    """Classify a `.jsonl` file by its name and parent directories, wherever it is.

    Unlike `classify_path` this gives no special meaning to the names of config directories, and it is fast. For an
    inconclusive name it returns `unknown`; the content must then be read.
    """
    name, stem = parts[-1], parts[-1].removesuffix(".jsonl")
    at = len(parts) - 1
    if is_uuid(stem):
        return PathInfo("session", name, parts[-2] if at else "", stem)
    session_id = workflow = ""
    if "subagents" in parts[:-1]:
        at = parts.index("subagents") - 1
        session_id = parts[at] if at >= 0 else ""
        inner = parts[at + 2 : -1]
        workflow = inner[1] if len(inner) > 1 and inner[0] == "workflows" else ""
    project = parts[at - 1] if at > 0 else ""
    if name.startswith("agent-") and len(stem) > len("agent-"):
        return PathInfo("agent", name, project, session_id, stem.removeprefix("agent-"), workflow)
    if workflow and name == "journal.jsonl":
        return PathInfo("journal", name, project, session_id, workflow=workflow)
    if at > 1 and parts[at - 2] == "conversations":
        return PathInfo("session", name, project)
    return PathInfo("history" if name == "history.jsonl" else "unknown", name, project, session_id)


def _below_config_folder(parts: list[str]) -> list[str]:
    """Remove the parent directories of the config directory, as far as they are recognizable."""
    folders = parts[:-1]
    if not folders or folders[0] in CONFIG_FOLDERS:
        return parts
    for top, skipped in (("projects", 0), ("conversations", 0), (".claude", 1)):
        if top in folders:
            return parts[folders.index(top) + skipped :]
    for at, folder in enumerate(folders[1:]):
        if is_uuid(folder):
            return ["projects", *parts[at:]]
    return parts
