"""Write the bundled price catalogue from the installed genai-prices.

python -m tools.make_prices            write the files
python -m tools.make_prices --check    exit 1 if one is out of date
"""

import sys
from importlib.metadata import distribution
from pathlib import Path
from typing import Final

import msgspec

from steno.report.price_sources import PriceCatalogue, import_catalogue
from steno.report.pricing import CATALOGUE

LICENCE: Final = Path(CATALOGUE).with_suffix(".LICENSE")


def build() -> dict[Path, str]:
    """Return the catalogue and the licence of the data by path."""
    package = distribution("genai-prices")
    licence = next(Path(str(package.locate_file(file))) for file in package.files or () if file.name == "LICENSE")
    return {Path(CATALOGUE): _text(import_catalogue()), LICENCE: licence.read_text("utf-8")}


def _text(catalogue: PriceCatalogue) -> str:
    """Return the catalogue as JSON with one model per line, so that changes can be reviewed."""

    def encode(value: object) -> str:
        return msgspec.json.encode(value).decode()

    source = f"genai-prices {catalogue.version}; its licence is in {LICENCE.name}"
    lines = [f'{{"source":{encode(source)},"version":{encode(catalogue.version)},"providers":[']
    for at, provider in enumerate(catalogue.providers):
        comma = "," if at else ""
        lines.append(f'{comma}{{"id":{encode(provider.id)},"match":{encode(provider.match)},"models":[')
        lines.append(",\n".join(map(encode, provider.models)))
        lines.append("]}")
    return "\n".join([*lines, "]}", ""])


def main(arguments: list[str]) -> int:
    """Write the files, or check whether they are up to date."""
    stale = {path: text for path, text in build().items() if not path.is_file() or path.read_text("utf-8") != text}
    if stale and "--check" in arguments:
        print(f"{', '.join(path.name for path in stale)}: out of date; run `make docs`")
        return 1
    for path, text in stale.items():
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
