"""What a model is asked beside the conversation: it costs, but it is not recorded."""

from typing import TYPE_CHECKING, Final

from steno.agent.hearing import Hearing
from steno.agent.models import bare_model
from steno.agent.sizes import text_of
from steno.model.wire import Request, Response, StreamCut

if TYPE_CHECKING:
    from steno.agent.loop import Agent

__all__ = ["aside", "ask", "consult"]

_TRIES: Final = 3


async def consult(agent: "Agent", system: str, question: str) -> str:
    """Ask an agent's model something; return what it says."""
    return text_of((await ask(agent, system, question)).blocks)


async def ask(agent: "Agent", system: str, question: str) -> Response:
    """Ask an agent's model something; return its whole answer."""
    request = Request(
        model=bare_model(agent.course.model),
        max_tokens=agent.course.max_tokens,
        messages=[{"role": "user", "content": [{"type": "text", "text": question}]}],
        system=[{"type": "text", "text": system}],
    )
    return await aside(agent, request)


async def aside(agent: "Agent", request: Request) -> Response:
    """Return the answer to a request; what is cut off is asked for again."""
    cuts = 0
    while True:
        hearing = Hearing(lambda _event: None, agent.note_retry)
        try:
            with agent.meter.waiting():
                response = await hearing.listen(agent.model.stream(request))
        except StreamCut as cut:
            agent.meter.pay(cut.partial.model, cut.partial.usage)
            cuts += 1
            if cuts == _TRIES:
                raise
        else:
            agent.meter.pay(response.model, response.usage)
            return response
