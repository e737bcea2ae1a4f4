"""What is said around the turns: meta users, commands, interruptions, queued prompts."""

from typing import Final, Self

from tests.builders.blocks import Answer, Json, text
from tests.builders.turns import Turns

__all__ = ["INTERRUPTED", "Asides"]

INTERRUPTED: Final = "[Request interrupted by user]"
_CAVEAT: Final = "<local-command-caveat>A command was run here.</local-command-caveat>"
_OLD_CAVEAT: Final = "Caveat: a command was run here."
_GAP: Final = "\n            "


class Asides(Turns):
    """Users that are nobody, and words that come at the wrong moment."""

    _queue: tuple[str, ...] = ()

    def meta(self, content: str | list[Json], *, source_tool: str = "") -> Self:
        """Write a user record that the client made itself."""
        said = {"type": "user", "message": {"role": "user", "content": content}, "isMeta": True}
        source = {"sourceToolUseID": source_tool} if source_tool else {}
        self.link({**said, "uuid": "", "timestamp": "", **source}, **self._prompted())
        return self

    def words(self, content: str | list[Json]) -> Self:
        """Write a bare user record: a command's tags, an interruption."""
        said = {"type": "user", "message": {"role": "user", "content": content}}
        self.link({**said, "uuid": "", "timestamp": ""}, **self._prompted())
        return self

    def command(self, name: str, args: str = "", *, says: str = "", local: bool = False) -> Self:
        """Write a slash command and its output; `local` is the form that stays with the client."""
        self.done()
        bare = name.removeprefix("/")
        if self.terminal:
            self._remember(f"/{bare} {args}".rstrip())
        tags = _GAP.join(
            (
                f"<command-name>/{bare}</command-name>",
                f"<command-message>{bare}</command-message>",
                f"<command-args>{args}</command-args>",
            )
        )
        output = f"<local-command-stdout>{says}</local-command-stdout>"
        if local and self.gen.tail:
            return self.local_command(tags).local_command(output, run=(bare, args))
        self.meta(_CAVEAT if self.gen.order >= (2, 1, 29) else _OLD_CAVEAT)
        return self.words(tags).words(output)

    def rename(self, words: str) -> Self:
        """Name the session with the command for it."""
        self.done()
        self.title(words)
        return self.command("rename", words, says=f"Named: {words}", local=True)

    def shell(self, command: str, stdout: str, stderr: str = "") -> Self:
        """Write a command that the user ran with `!`."""
        self.done()
        self.words(f"<bash-input>{command}</bash-input>")
        tags = f"<bash-stdout>{stdout}</bash-stdout><bash-stderr>{stderr}</bash-stderr>"
        return self.words(tags)

    def interrupt(self) -> Self:
        """Stop the turn: while a tool runs, its result says so, too."""
        waiting = any(not call.answered for call in self.calls)
        words = INTERRUPTED
        if waiting:
            words = "[Request interrupted by user for tool use]"
            self._answer(Answer(content=words, error=True))
        self.words([text(words)])
        return self.done()

    def deny(self, words: str = "The user said no to this call.") -> Self:
        """Let the user refuse the call that waits."""
        self._answer(Answer(content=words, error=True, detail="User rejected tool use"))
        if self.gen.tail:
            self._records[-1] = _denied(self._records[-1])
        return self

    def enqueue(self, content: str) -> Self:
        """Let the user type while the agent is busy."""
        self._queue = (*self._queue, content)
        self._remember(content)
        return self.queue_operation("enqueue", content)

    def absorb(self) -> Self:
        """Take the queued prompt up inside the running turn.

        Older clients leave no more than the queue's own record of it.
        """
        content, *rest = self._queue
        self._queue = tuple(rest)
        return self._take_up(content, mode="prompt", origin={"kind": "human"})

    def dequeue(self) -> Self:
        """Take the queued prompt up as the next turn."""
        content, *rest = self._queue
        self._queue = tuple(rest)
        self.done()
        self.queue_operation("dequeue")
        remembered = len(self.history)
        self.user(content)
        del self.history[remembered:]
        return self

    def _take_up(self, content: str, *, mode: str, origin: Json) -> Self:
        typed = self.clock.stamp()
        if not self.gen.latest:
            self.queue_operation("remove")
            named: Json = {}
        else:
            named = {"source_uuid": self.ids.uuid("queue"), "delivery_id": self.ids.uuid("queue")}
            self.queue_operation("remove", content)
            self._records[-1] |= {
                "reason": "absorbed_mid_turn",
                "commandUuid": named["source_uuid"],
                "deliveryId": named["delivery_id"],
            }
        human: Json = {"humanTurn": True} if mode == "prompt" and self.gen.latest else {}
        return self.attach(
            "queued_command",
            says=f"While you work, the user says: {content}",
            prompt=content,
            **named,
            commandMode=mode,
            origin=origin,
            **human,
            timestamp=typed,
        )


def _denied(record: Json) -> Json:
    """Say in the record of a result that the user refused, where the client says it."""
    fields: Json = {}
    for key, value in record.items():
        if key == "sourceToolAssistantUUID":
            fields["toolDenialKind"] = "user-rejected"
        if key != "permissionDecision":
            fields[key] = value
    return fields
