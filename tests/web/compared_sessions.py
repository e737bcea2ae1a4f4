"""Two tries of the same task in one project, and what lies around them in the config folder."""

import json
from pathlib import Path

from tests.builders.builder import Session
from tests.builders.stories.kit import bash, begin, edit, grep, read, write

CWD = "/home/ada/papercrane"
PROMPT = (
    "The invoice PDF shows boxes instead of letters when the customer name has Polish "
    "characters. Find out why and fix it."
)
_SHAPE = "def shape(text):\n    return text\n"
_SUBSET = "def subset(font, text):\n    return font.cut(set(text))\n"


def first_try(cwd: str = CWD) -> Session:
    """The long way: the wrong file, failing tests, interrupted."""
    made = begin(seed="try-1", cwd=cwd, branch="fix/font-subset", start="2026-11-12T08:30:00.000Z")
    _beginning(made, cwd)
    for old, new in (("return text", "return list(text)"), ("list(text)", "tuple(text)")):
        made.assistant(edit(f"{cwd}/papercrane/text/shape.py", old, new)).result()
        made.assistant(bash("uv run pytest -q", "Run the tests"))
        made.wait(9).result("Exit code 1\n3 failed, 118 passed in 8.90s", error=True)
    made.assistant("It still fails.")
    made.user("Then leave it for today.")
    return made.assistant("All right.").exit()


def second_try(cwd: str = CWD) -> Session:
    """The short way."""
    made = begin(
        seed="try-2",
        cwd=cwd,
        branch="fix/font-subset-2",
        start="2026-11-12T12:04:00.000Z",
        model="claude-sonnet-4-5-20250929",
    )
    _beginning(made, cwd)
    made.assistant(bash("uv run papercrane glyphs --missing", "Which glyphs are missing"))
    made.result("9 glyphs")
    made.assistant(edit(f"{cwd}/papercrane/fonts/subset.py", "set(text)", "set(text) | font.fallback")).result()
    made.assistant(bash("uv run pytest -q", "Run the tests"))
    made.wait(9).result("121 passed in 9.40s")
    made.assistant(write(f"{cwd}/tests/fonts/test_subset.py", "def test_it():\n    pass\n"))
    made.result()
    return made.assistant("The subset was cut before the fallback fonts were merged.").exit()


def _beginning(made: Session, cwd: str) -> None:
    made.have(f"{cwd}/papercrane/text/shape.py", _SHAPE)
    made.have(f"{cwd}/papercrane/fonts/subset.py", _SUBSET)
    made.user(PROMPT)
    made.assistant(bash("uv run papercrane render samples/invoice-pl.toml", "Render it"))
    made.result("boxes in 14 places")
    made.assistant(grep("subset")).result("papercrane/fonts/subset.py:1:def subset(font, text):")
    made.assistant(read(f"{cwd}/papercrane/fonts/subset.py")).result()
    made.assistant(read(f"{cwd}/papercrane/text/shape.py")).result()


def lay(root: Path, *sessions: Session) -> list[str]:
    """Write sessions below a config folder, with the prompts that were typed; return their ids."""
    for each in sessions:
        for name, data in each.files().items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    typed = [json.dumps(entry) for each in sessions for entry in each.history]
    (root / "history.jsonl").write_text("\n".join(typed) + "\n")
    return [each.session_id for each in sessions]


KEY = "sk-ant-api03-AbCdEfGhIjKlMnOpQrStUvWx"
OUTSIDE = "what lies outside the project"


def furnish(root: Path, project: Path) -> None:
    """Put into a config folder, and into a project's own, what people keep there."""
    _write(root / "CLAUDE.md", "# Mine\n\nAnswer in **short** sentences.\n")
    _write(
        root / "settings.json",
        json.dumps(
            {
                "model": "claude-opus-5-5",
                "env": {"ANTHROPIC_API_KEY": KEY, "EDITOR": "my-own-editor"},
                "permissions": {"allow": ["Bash(make:*)"], "deny": ["Read(.env)"]},
                "hooks": {"Stop": [{"hooks": [{"command": f"notify --token {KEY} --done"}]}]},
                "apiKeyHelper": "my-own-helper",
            }
        ),
    )
    _write(
        root / ".claude.json",
        json.dumps(
            {
                "oauthAccount": {"emailAddress": "ada@example.com"},
                "mcpServers": {"search": {"type": "http", "url": f"https://x:{KEY}@mcp.example"}},
                "projects": {
                    str(project): {"mcpServers": {"db": {"command": "/opt/bin/pg-mcp", "args": [KEY]}}},
                    "/elsewhere": {"mcpServers": {"not-mine": {"command": "x"}}},
                },
            }
        ),
    )
    _write(root / "agents/reviewer.md", "---\nname: reviewer\ndescription: Reads diffs\n---\nHi\n")
    _write(root / "commands/git/tidy.md", "---\ndescription: Tidy up\n---\n")
    _write(root / "skills/pdf/SKILL.md", "---\nname: pdf\ndescription: Reads PDFs\n---\n")
    _write(project / "CLAUDE.md", "# Papercrane\n\nRun `make test` first.\n\n- Fonts are subset\n")
    (project / "AGENTS.md").symlink_to("CLAUDE.md")
    _write(project.parent / "outside.md", OUTSIDE)
    (project / "CLAUDE.local.md").symlink_to(project.parent / "outside.md")
    _write(project / ".claude/agents/typesetter.md", "---\ndescription: Knows fonts\n---\n")
    _write(project / ".claude/skills/proof/SKILL.md", "---\ndescription: Proofreads\n---\n")
    _write(project / ".claude/settings.json", json.dumps({"env": {"DB": f"postgres://u:{KEY}@h"}}))
    _write(project / ".mcp.json", json.dumps({"mcpServers": {"fonts": {"command": "npx fonts"}}}))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
