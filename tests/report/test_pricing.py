"""What tokens cost."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from steno.errors import BadRequest, Unreadable
from steno.report import price_sources
from steno.report.price_sources import read_price_file
from steno.report.pricing import PriceTable, Rates, exact_cost
from steno.report.usage.usage_report import apportion_micros

_OPUS = "claude-opus-4-5-20251101"


def _rates(prices: PriceTable, model: str, day: str = "2026-11-01", band: int = 0) -> Rates | None:
    found = prices.find_rates(model, day, band, 0)
    return found[0] if found else None


def test_rates_are_micro_dollars_for_a_million() -> None:
    assert _rates(PriceTable(), _OPUS) == Rates(5_000_000, 25_000_000, 6_250_000, 10_000_000, 500_000, 10_000_000_000)


def test_a_price_holds_from_its_day_on() -> None:
    prices = PriceTable()
    before = _rates(prices, "claude-opus-4-6", "2026-03-12", 2)
    after = _rates(prices, "claude-opus-4-6", "2026-03-13", 2)
    assert before is not None
    assert after is not None
    assert (before.input, after.input) == (10_000_000, 5_000_000)
    assert _rates(prices, "claude-opus-4-6", "", 2) == after


def test_what_was_read_at_once_may_cost_more() -> None:
    prices = PriceTable()
    rates = [_rates(prices, "claude-sonnet-4-5-20250929", band=band) for band in (0, 1, 2)]
    assert rates[0] == rates[1] != rates[2]


@pytest.mark.parametrize(
    "name",
    [
        "eu.anthropic.claude-opus-4-5-20251101-v1:0",
        "anthropic/claude-opus-4-5",
        "claude-opus-4-5@20251101",
        "claude-opus-4-5[1m]",
    ],
)
def test_names_that_clouds_decorate_are_known(name: str) -> None:
    assert _rates(PriceTable(), name) == _rates(PriceTable(), _OPUS)


def test_an_unknown_model_has_no_price() -> None:
    assert _rates(PriceTable(), "fern-9") is None
    assert _rates(PriceTable(), "") is None


def test_what_the_data_says_is_kept_and_not_loaded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    first = _rates(PriceTable(), _OPUS)
    assert _rates(PriceTable(), "fern-9") is None

    def fail(_models: object) -> None:
        raise AssertionError("loaded again")

    monkeypatch.setattr(price_sources, "look_up_prices", fail)
    assert _rates(PriceTable(), _OPUS) == first
    assert _rates(PriceTable(), "fern-9") is None
    kept = Path(os.environ["STENO_HOME"]) / "prices.json"
    assert kept.stat().st_mode & 0o777 == 0o600


def test_kept_prices_of_another_release_or_damaged_ones_are_looked_up_again() -> None:
    first = _rates(PriceTable(), _OPUS)
    kept = Path(os.environ["STENO_HOME"]) / "prices.json"
    for text in ('{"data":"old","models":{"claude-opus-4-5-20251101":[]}}', "{", "[]"):
        kept.write_text(text)
        assert _rates(PriceTable(), _OPUS) == first


def test_the_data_is_not_loaded_to_find_kept_prices() -> None:
    _rates(PriceTable(), _OPUS)
    code = (
        "import sys\nfrom steno.report.pricing import PriceTable\n"
        f"assert PriceTable().find_rates({_OPUS!r}, '', 0, 0)\nassert 'genai_prices' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_prices_of_ones_own_count_more(tmp_path: Path) -> None:
    path = tmp_path / "prices.toml"
    path.write_text(
        '[models."fern-*"]\ninput = 1\noutput = 2.5\n'
        '[models."fern-9"]\ninput = 4\noutput = 8\ncache_read = 0.125\n'
        "fast = {input = 40, output = 80}\nlong = {input = 5, output = 9}\n"
        f'[[models."{_OPUS}"]]\ninput = 1\noutput = 1\n'
        f'[[models."{_OPUS}"]]\nsince = 2026-06-01\ninput = 2\noutput = 2\n'
    )
    prices = PriceTable(read_price_file(str(path)))
    assert _rates(prices, "fern-1") == Rates(1_000_000, 2_500_000, 1_250_000, 2_000_000, 100_000, 10_000_000_000)
    nine = _rates(prices, "fern-9")
    assert nine is not None
    assert (nine.input, nine.cache_read) == (4_000_000, 125_000)
    fast = prices.find_rates("fern-9", "", 0, 1)
    assert fast is not None
    assert (fast[0].input, fast[1]) == (40_000_000, True)
    long = _rates(prices, "fern-9", band=2)
    assert long is not None
    assert long.input == 5_000_000
    changed = [_rates(prices, _OPUS, day) for day in ("2026-05-31", "2026-06-01")]
    assert [rates.input for rates in changed if rates] == [1_000_000, 2_000_000]


@pytest.mark.parametrize(
    "text",
    [
        "models = 3",
        "[other]",
        '[models."x"]\ninput = 1',
        '[models."x"]\ninput = "a"\noutput = 1',
        '[models."x"]\ninput = -1\noutput = 1',
        '[models."x"]\ninput = nan\noutput = 1',
        '[models."x"]\ninput = 1\noutput = 1\ncolour = 2',
        '[models."x"]\ninput = 1\noutput = 1\nfast = 2',
        '[models."x"]\ninput = 1\noutput = 1\nsince = 3',
        "models = {x = 3}",
        "not toml",
        "\xff",
    ],
)
def test_a_price_file_that_makes_no_sense_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "prices.toml"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(BadRequest):
        read_price_file(str(path))


def test_a_price_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(Unreadable):
        read_price_file(str(tmp_path / "none.toml"))


def test_rows_add_up_to_their_rounded_sum() -> None:
    exact = [333_333, 333_333, 333_334, 999_999, 1]
    assert sum(apportion_micros(exact)) == 2
    assert apportion_micros([]) == []
    assert apportion_micros([499_999]) == [0]
    assert apportion_micros([500_000]) == [1]


def test_the_cost_of_a_heap_is_exact() -> None:
    rates = Rates(1, 2, 3, 4, 5, 6)
    assert exact_cost((1, 1, 10, 100, 1000, 10_000, 100_000, 0), rates) == 654_321
