"""Records beside the chain: titles, states, queues, file history, costs."""

from typing import Final, Self, cast

from tests.builders.blocks import Json
from tests.builders.core import ZERO, Core
from tests.builders.paths import file_history_path

from steno.format.encode import encode
from steno.format.paths import file_history_name

__all__ = ["Sides"]

_PRICES: Final = (5.0, 6.25, 0.5, 25.0)
_SHOWN: Final = 200


class Sides(Core):
    """The records without a uuid."""

    def title(self, words: str) -> Self:
        """Name the session, as `/rename` does."""
        self._own("custom-title", customTitle=words)
        if self.gen.tail:
            self.agent_name(words)
        if self.gen.latest:
            place = f"projects/{self.folder}/{self.session_id}/custom-title.json"
            self.extra_files[place] = encode({"customTitle": words})
        return self

    def ai_title(self, words: str) -> Self:
        """Name the session as the model would."""
        return self._own("ai-title", aiTitle=words)

    def agent_name(self, words: str) -> Self:
        """Write the name beside a title."""
        return self._own("agent-name", agentName=words)

    def summary(self, words: str, leaf: str = "") -> Self:
        """Write an old title; `leaf` may lie in another session's file."""
        return self.side({"type": "summary", "summary": words, "leafUuid": leaf or self.tip})

    def tag(self, words: str) -> Self:
        """Write a tag."""
        return self._own("tag", tag=words)

    def pr_link(self, number: int, repository: str) -> Self:
        """Write a link to a pull request."""
        url = f"https://example.com/{repository}/pull/{number}"
        link = {"prNumber": number, "prUrl": url, "prRepository": repository}
        stamp = {"timestamp": self.clock.step(5)}
        return self.side({"type": "pr-link", "sessionId": self.session_id, **link, **stamp})

    def last_prompt(self, words: str | None = "", *, leaf: str | None = None, explicit: bool = False) -> Self:
        """Write the prompt and leaf to go on from; `words=None` leaves the prompt out."""
        shown = (words or self.prompt_text).replace("\n", " ")[:_SHOWN]
        prompt = {} if words is None or not shown else {"lastPrompt": shown}
        flag = {"explicit": True} if explicit else {}
        body = {**prompt, "leafUuid": leaf or self.tip or ZERO, **flag}
        return self.side({"type": "last-prompt", **body, "sessionId": self.session_id})

    def mode(self, mode: str = "normal") -> Self:
        """Write the input mode."""
        return self._own("mode", mode=mode)

    def permission_mode(self, mode: str = "") -> Self:
        """Write the permission mode."""
        self.permission = mode or self.permission
        return self._own("permission-mode", permissionMode=self.permission)

    def atis_latch(self) -> Self:
        """Write the latch whose meaning is not known."""
        return self._own("atis-latch", atis="")

    def tools_used(self, *names: str) -> Self:
        """Write the names of the tools used so far."""
        return self._own("tools-used", tools=list(names))

    def queue_operation(self, operation: str, content: str | None = None) -> Self:
        """Write that a prompt entered or left the queue."""
        body: Json = {"operation": operation, "timestamp": self.clock.step(11)}
        said = {} if content is None else {"content": content}
        return self.side({"type": "queue-operation", **body, "sessionId": self.session_id, **said})

    def snapshot(self, message: str, *, of: str = "", backups: Json | None = None) -> Self:
        """Write which files are backed up; `of` names the prompt whose snapshot is updated."""
        inner = {"messageId": of or message, "trackedFileBackups": backups or {}, "timestamp": self.clock.stamp()}
        return self.side(
            {"type": "file-history-snapshot", "messageId": message, "snapshot": inner, "isSnapshotUpdate": bool(of)}
        )

    def delta(self, message: str, path: str, backup: Json) -> Self:
        """Write that one more file is backed up."""
        return self.side(
            {
                "type": "file-history-delta",
                "messageId": message,
                "snapshotMessageId": self.prompt_uuid,
                "trackingPath": path,
                "backup": backup,
                "timestamp": self.clock.stamp(),
            }
        )

    def worktree(self, name: str) -> Self:
        """Write that the session works in a worktree."""
        state = {
            "originalCwd": self.cwd,
            "worktreePath": f"{self.cwd}/.claude/worktrees/{name}",
            "worktreeName": name,
            "worktreeBranch": f"worktree-{name}",
            "originalBranch": self.branch,
            "originalHeadCommit": self.ids.hexa("commit", 40),
            "sessionId": self.session_id,
        }
        return self._own("worktree-state", worktreeSession=state)

    def cost_state(self) -> Self:
        """Write what the session has cost so far."""
        models: dict[str, Json] = {}
        for model, tokens in self.spent:
            row = models.setdefault(model, _no_use())
            row["inputTokens"] += tokens.fresh
            row["outputTokens"] += tokens.output
            row["thinkingTokens"] += tokens.thought
            row["cacheReadInputTokens"] += tokens.cached
            row["cacheCreationInputTokens"] += tokens.written
            row["cacheCreationEphemeral5mInputTokens"] += tokens.written
            counts = (tokens.fresh, tokens.written, tokens.cached, tokens.output)
            price = sum(n * each for n, each in zip(counts, _PRICES, strict=True)) / 1e6
            row["costUSD"] = round(row["costUSD"] + price, 6)
        spent = self.clock.ms - self.started
        return self.side(
            {
                "type": "cost-state",
                "sessionId": self.session_id,
                "totalCostUSD": round(sum(row["costUSD"] for row in models.values()), 6),
                "totalAPIDuration": spent // 2,
                "totalAPIDurationWithoutRetries": spent // 2,
                "totalToolDuration": spent // 5,
                "totalLinesAdded": self._changed_lines("+"),
                "totalLinesRemoved": self._changed_lines("-"),
                "totalDuration": spent,
                "startTime": self.started,
                "modelUsage": models,
                "hasUnknownModelCost": False,
            }
        )

    def _track(self, line: str, path: str) -> None:
        """Back up a file before its first change, as the terminal client does."""
        if not self._keeps_files():
            return
        self.changed.add(path)
        if path in self.tracked:
            return
        self.tracked[path] = 1
        note = self._backup(path, self.room.files.get(path), 1)
        shown = path.removeprefix(self.cwd + "/")
        self.notes[shown] = note
        if self.gen.latest:
            self.delta(line, shown, note)
        else:
            self.snapshot(line, of=self.prompt_uuid, backups=dict(self.notes))

    def _backups(self) -> Json:
        """Back up the changed files anew at the start of a turn."""
        for path, version in self.tracked.items():
            if path not in self.changed:
                continue
            self.tracked[path] = version + 1
            note = self._backup(path, self.room.files.get(path), version + 1)
            self.notes[path.removeprefix(self.cwd + "/")] = note
        self.changed.clear()
        return dict(self.notes)

    def _keeps_files(self) -> bool:
        return self.terminal and self.gen.snapshots and self.gen.version != "2.1.29"

    def _changed_lines(self, sign: str) -> int:
        details = [record.get("toolUseResult") for record in self._records]
        edits = [cast("Json", each) for each in details if isinstance(each, dict)]
        hunks: list[Json] = [hunk for edit in edits for hunk in edit.get("structuredPatch", [])]
        return sum(1 for hunk in hunks for line in hunk["lines"] if line.startswith(sign))

    def _own(self, kind: str, **fields: object) -> Self:
        return self.side({"type": kind, **fields, "sessionId": self.session_id})

    def _backup(self, path: str, content: str | None, version: int) -> Json:
        """Keep a copy of a file as it was and return the note of it."""
        if content is not None:
            kept = file_history_path(self.session_id, path, version)
            self.extra_files[kept] = content.encode()
        parent = {"realParentDir": path.rpartition("/")[0]} if self.gen.latest else {}
        return {
            "backupFileName": None if content is None else file_history_name(path, version),
            "version": version,
            "backupTime": self.clock.stamp(),
            **parent,
        }


def _no_use() -> Json:
    return {
        "inputTokens": 0,
        "outputTokens": 0,
        "thinkingTokens": 0,
        "cacheReadInputTokens": 0,
        "cacheCreationInputTokens": 0,
        "cacheCreationEphemeral5mInputTokens": 0,
        "cacheCreationEphemeral1hInputTokens": 0,
        "webSearchRequests": 0,
        "costUSD": 0.0,
    }
