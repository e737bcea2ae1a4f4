"""What clients say of a prompt or result that the model never got to, as experiments found it.

Newer ones answer it themselves. Older ones do so only where no note or event stands behind it; for
2.1.42 a result counts all the same.
"""

import pytest
from tests.notation import notation
from tests.published.client_form import ClientForm
from tests.published.forms import call

from steno.format.source import BytesSource
from steno.session.resume.clients import CLIENTS, Client
from steno.session.resume.replay import as_resumed
from steno.session.transcript import load

NEWER = ("2.1.200", "2.1.325")
ANSWER = "a:No response requested."
CONTINUE = "Continue from where you left off."


def prompt() -> ClientForm:
    made = ClientForm()
    made.user("Q1")
    made.answer("A1")
    made.user("Q2")
    return made


def sent(made: ClientForm, client: Client) -> list[str]:
    return notation(as_resumed(load(BytesSource(made.data())), client) or [])


@pytest.fixture(params=CLIENTS, ids=lambda client: client.version)
def client(request: pytest.FixtureRequest) -> Client:
    return request.param


def test_a_last_prompt_is_answered_by_every_client(client: Client) -> None:
    assert sent(prompt(), client) == ["u:Q1", "a:A1", "u:Q2", ANSWER]


@pytest.mark.parametrize("subtype", ["informational", "conversation_compacted", "turn_duration", "api_error"])
def test_a_prompt_with_an_event_behind_it_is_answered_by_newer_clients(client: Client, subtype: str) -> None:
    made = prompt()
    made.add("system", subtype=subtype, content="note", level="info", isMeta=False)
    answered = [ANSWER] if client.version in NEWER else []
    assert sent(made, client) == ["u:Q1", "a:A1", "u:Q2", *answered]


def test_progress_behind_a_prompt_is_such_an_event_where_it_is_a_link(client: Client) -> None:
    made = prompt()
    made.progress("x", type="hook_progress", hookEvent="Stop", hookName="Stop", command="x")
    answered = [] if client.version in ("2.1.29", "2.1.42") else [ANSWER]
    assert sent(made, client) == ["u:Q1", "a:A1", "u:Q2", *answered]


def test_a_result_with_an_event_behind_it_is_gone_on_from_since_2_1_42(client: Client) -> None:
    made = ClientForm()
    made.user("Q1")
    made.answer("A1", call("t1", "Read", file_path="/a"))
    made.result("t1", "R")
    made.add("system", subtype="informational", content="note", level="info", isMeta=False)
    tail = {
        "2.1.325": ["u:RES(t1:R)", ANSWER],
        "2.1.200": [f"u:RES(t1:R) + {CONTINUE}", ANSWER],
        "2.1.42": [f"u:RES(t1:R) + {CONTINUE}", ANSWER],
    }
    assert sent(made, client)[2:] == tail.get(client.version, ["u:RES(t1:R)"])
