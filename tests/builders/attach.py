"""`attachment` and `progress` records: reminders, hooks, mentioned files, running commands."""

from typing import Final, Self

from tests.builders.blocks import Json
from tests.builders.outcomes import Call
from tests.builders.systems import Systems

__all__ = ["Attachments"]

_DEFERRED: Final = ("CronCreate", "CronList", "NotebookEdit", "TaskCreate", "WebFetch", "WebSearch")
_AGENTS: Final = ("Explore", "general-purpose", "Plan")
_SKILLS: Final = ("changelog", "release-notes")
# Kinds whose text the client does not send, or that have none.
_SILENT: Final = frozenset({"prompt_snapshot", "command_permissions", "deferred_tools_record"})


class Attachments(Systems):
    """What the client tells the model on its own account."""

    def attach(self, kind: str, /, *, role: str = "system", says: str | None = None, **fields: object) -> Self:
        """Write an attachment; `says` is the text that was sent for it."""
        if not self.gen.attachments:
            return self
        sent = f"<system-reminder>\n{says or kind}\n</system-reminder>"
        rendered: Json = {"rendered": [{"content": sent}], "renderedRole": role}
        if not self.gen.rendered or kind in _SILENT or says == "":
            rendered = {}
        if rendered and kind == "remote_session_change":
            rendered["renderedBesideToolResult"] = True
        body = {"attachment": {"type": kind, **fields}, "type": "attachment"}
        lineage = self._descent() if kind in _LATE else {}
        self.link({**body, "uuid": "", "timestamp": "", **rendered}, **lineage)
        return self

    def preamble(self) -> Self:
        """Write the reminders that stand between the first prompt and the first answer."""
        if not self.gen.rendered:
            return self._listings()
        snapshot: Json = {
            "workingDirectory": self.cwd,
            "isWorktree": False,
            "isGitRepo": True,
            "additionalWorkingDirectories": [],
            "platform": "linux",
            "shell": "bash",
            "osVersion": "Linux 6.12",
        }
        place = f"You work in {self.cwd}, on Linux."
        identity = {"modelId": self.model, "marketingName": "", "knowledgeCutoff": ""}
        model = f"The model is {self.model}."
        self.attach("environment", says=place, snapshot=snapshot)
        self.attach("model", says=model, identity=identity, text=model)
        self._listings()
        if not self.terminal and not self.depth:
            self.atis_latch()
        status = f"On branch {self.branch}, nothing to commit."
        self.attach("session_context", role="user", says=status, context={"gitStatus": status})
        self.attach("date", says=f"It is {self.clock.date}.", date=self.clock.date)
        self.attach(
            "remote_session_change",
            role="user",
            says="Commits carry no trailer.",
            url=None,
            commit="",
            pr="",
            sendUserFileHint=False,
            managedCommit=False,
            managedPr=False,
        )
        return self.prompt_snapshot()

    def prompt_snapshot(self, *, tools: bool = False) -> Self:
        """Write the system prompt, and the second time the tools, as they were sent."""
        rest: Json = {"echoWireToolInputs": False, "contextRendering": "announced"}
        system = ["You help with software, in this folder."]
        if not tools:
            return self.attach("prompt_snapshot", systemPrompt=system, reminderFold=False, **rest)
        names = [{"name": name, "description": name} for name in ("Bash", "Edit", "Read", "Write")]
        more = {"systemTurns": True, "toolChangeHeader": True, "inlineTools": False}
        first = {"cliPrefix": "", "reminderFold": False, **more, "keptReminders": False}
        return self.attach("prompt_snapshot", systemPrompt=system, tools=names, **first, **rest)

    def hook(self, event: str, command: str, *, said: str = "", tool: str = "") -> Self:
        """Write that a hook ran, in the generation's own form.

        A `PreToolUse` hook of the newer clients is a dead end below the call; the others are
        links of the chain.
        """
        call = self._call(waiting=event == "PreToolUse")
        name = f"{event}:{tool}" if tool else event
        about = call.id if call and event.endswith("ToolUse") else self.ids.uuid("hook")
        if self.gen.progress:
            return self._hook_progress(event, name, command, about)
        if not self.gen.attachments:
            return self
        before = self.tip
        if event == "PreToolUse" and call:
            self.tip = call.line
        spoken = event in {"SessionStart", "UserPromptSubmit"}
        self.attach(
            "hook_success",
            says=f"{name} hook success: {said}" if spoken else "",
            hookName=name,
            toolUseID=about,
            hookEvent=event,
            content=said,
            stdout=f"{said}\n" if said else "",
            stderr="",
            exitCode=0,
            command=command,
            durationMs=19,
        )
        if event == "PreToolUse":
            self.tip = before
        return self

    def hook_context(self, event: str, words: str, *, tool: str) -> Self:
        """Write what a hook had to add."""
        call = self._call(waiting=event == "PreToolUse")
        return self.attach(
            "hook_additional_context",
            says=words,
            content=[words],
            hookName=f"{event}:{tool}",
            toolUseID=call.id if call else "",
            hookEvent=event,
        )

    def mention(self, path: str, content: str) -> Self:
        """Write a file that the prompt names with `@`."""
        full = self.path(path)
        count = content.count("\n") + 1
        file: Json = {"filePath": full, "content": content, "numLines": count}
        file |= {"startLine": 1, "totalLines": count}
        framing = {"savedCopyFraming": {"enveloped": False}} if self.gen.latest else {}
        return self.attach(
            "file",
            role="user",
            says=f"{path}:\n{content}",
            filename=full,
            content={"type": "text", "file": file},
            displayPath=path,
            **framing,
        )

    def bash_progress(self, *outputs: str) -> Self:
        """Write that a command is running: records below the call that lead nowhere."""
        call = self._call(waiting=True)
        if not self.gen.progress or call is None:
            return self
        before = self.tip
        self.tip = call.line
        for number, output in enumerate(outputs):
            data: Json = {"type": "bash_progress", "output": output, "fullOutput": output}
            data |= {"elapsedTimeSeconds": number + 2, "totalLines": output.count("\n") + 1}
            names = {"toolUseID": f"bash-progress-{number}", "parentToolUseID": call.id}
            self.link({"type": "progress", "data": data, **names, "uuid": "", "timestamp": ""})
        self.tip = before
        return self

    def _hook_progress(self, event: str, name: str, command: str, about: str) -> Self:
        if event in {"PreToolUse", "Stop", "UserPromptSubmit"}:
            return self
        data = {"type": "hook_progress", "hookEvent": event, "hookName": name, "command": command}
        names = {"parentToolUseID": about, "toolUseID": about}
        self.link({"type": "progress", "data": data, **names, "timestamp": "", "uuid": ""})
        return self

    def _call(self, *, waiting: bool) -> Call | None:
        """Return the first call that waits, or the one answered last."""
        if not waiting:
            return self.answered
        return next((call for call in self.calls if not call.answered), None)

    def _listings(self) -> Self:
        if self.gen.rendered:
            self.attach(
                "deferred_tools_delta",
                says="More tools on request: " + ", ".join(_DEFERRED),
                addedNames=list(_DEFERRED),
                addedLines=list(_DEFERRED),
                removedNames=[],
                wireHiddenNames=[],
                readdedNames=[],
            )
        if self.gen.rendered or not self.depth:
            self._agent_listing()
        skills = "\n".join(f"- {name}" for name in _SKILLS)
        digests: Json = {"digests": [self.ids.hexa("digest", 16) for _ in _SKILLS]}
        return self.attach(
            "skill_listing",
            says=skills,
            content=skills,
            skillCount=len(_SKILLS),
            isInitial=True,
            names=list(_SKILLS),
            **(digests if self.gen.rendered else _NOTHING),
        )

    def _agent_listing(self) -> Self:
        lines = [f"- {name}" for name in _AGENTS]
        built: Json = {"builtInTypes": list(_AGENTS), "builtInPluginTypes": []}
        return self.attach(
            "agent_listing_delta",
            says="\n".join(lines),
            addedTypes=list(_AGENTS),
            addedLines=lines,
            **(built if self.gen.rendered else _NOTHING),
            removedTypes=[],
            isInitial=True,
            showConcurrencyNote=True,
        )


_NOTHING: Final[Json] = {}
_LATE: Final = frozenset(
    {"session_context", "date", "remote_session_change", "prompt_snapshot", "silent_turn_reminder"}
)
