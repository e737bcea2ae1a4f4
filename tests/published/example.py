"""What an example of a document is: a session file, its place, and what is expected of it."""

from collections.abc import Mapping
from typing import NamedTuple

from tests.published.client_form import ClientForm
from tests.published.files import Known
from tests.published.forms import Json


class Example(NamedTuple):
    """A session file, where it lies, and what is expected of it."""

    document: str
    data: bytes
    prompts: tuple[str, ...]
    present: tuple[str, ...] = ()
    """Words that are sent, in this order."""
    absent: tuple[str, ...] = ()
    """Words that are not."""
    findings: tuple[str, ...] = ()
    """The ids of what `check` says of it, infos too, in order and each once."""
    place: str = "projects/-home-ada-work"
    name: str = ""
    project: str = "/home/ada/work"
    beside: Mapping[str, bytes] = {}
    """Files that belong to it, by their path from the folder of the session."""

    @property
    def known(self) -> Known:
        """What the tests of the dialects ask for."""
        return Known(self.data, self.prompts, self.present, self.absent)


def of_client(
    document: str,
    made: ClientForm,
    prompts: tuple[str, ...],
    present: tuple[str, ...],
    absent: tuple[str, ...] = (),
    *,
    findings: tuple[str, ...] = (),
    beside: Mapping[str, bytes] | None = None,
) -> Example:
    cwd = made.envelope["cwd"]
    return Example(
        document,
        made.data(),
        prompts,
        present,
        absent,
        findings,
        f"projects/{cwd.replace('/', '-')}",
        made.session,
        cwd,
        beside or {},
    )


def read_result(path: str, text: str) -> Json:
    file = {"filePath": path, "content": text, "numLines": 2, "startLine": 1, "totalLines": 2}
    return {"type": "text", "file": file}
