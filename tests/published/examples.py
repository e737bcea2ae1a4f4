"""The JSON examples of the five documents, each in the least session file that is complete.

A value that a document cuts off with dots is completed; nothing else is changed.
"""

from tests.published.dialect_examples import DIALECT_EXAMPLES
from tests.published.example import Example
from tests.published.files import FILES, FLAT, Known
from tests.published.protocol_examples import PROTOCOL_EXAMPLES
from tests.published.reader_examples import READER_EXAMPLES

_BUILDERS = (*DIALECT_EXAMPLES, *PROTOCOL_EXAMPLES, *READER_EXAMPLES)
_FLOWS = {each.__name__ for each in FLAT}


def _examples() -> dict[str, Example]:
    made = {name: _of_flow(name, build()) for name, build in FILES.items()}
    made |= {build.__name__: build() for build in _BUILDERS}
    return {name: _placed(number, each) for number, (name, each) in enumerate(made.items())}


def _of_flow(name: str, known: Known) -> Example:
    document = "000" if name in _FLOWS else "004"
    return Example(document, known.data, known.prompts, known.present, known.absent)


def _placed(number: int, each: Example) -> Example:
    """Give a session the place that its document says, and a name that no other has."""
    if each.document == "004":
        stamp = f"2025-01-29T14-15-{number:02d}"
        return each._replace(place="conversations/_home_ada_work", name=stamp)
    name = f"{number:08d}-0000-4000-8000-000000000000"
    if each.document in ("001", "002", "003") and each.name:
        data = each.data.replace(each.name.encode(), name.encode())
        beside = {
            path.replace(each.name, name): text.replace(each.name.encode(), name.encode())
            for path, text in each.beside.items()
        }
        each = each._replace(data=data, beside=beside)
    return each._replace(name=name)


EXAMPLES = _examples()
