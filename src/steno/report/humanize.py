"""Formats numbers, sizes, durations, costs, dates and names for people.

Examples: `1h52`, `38.2k`, `1.9 MB`, `Yesterday`.
"""

import re
import time
from collections import Counter
from collections.abc import Iterable
from math import ceil
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from datetime import date, datetime

_MODEL_DATE: Final = r"-\d{8}$"
_MINUTE: Final = 60
_HOUR: Final = 3600
_DAY: Final = 86_400
_WEEK: Final = 7
_TEN_UNITS: Final = 10
_MAX_PATH_PARTS: Final = 12
_THOUSAND: Final = 1000
MS_PER_SECOND: Final = 1000
_MILLION_FROM: Final = 999_950  # from here on `1000.0k` would be written
MICRO_DOLLARS_PER_DOLLAR: Final = 1_000_000
MINUS_SIGN: Final = "\N{MINUS SIGN}"
_MICROS_PER_CENT: Final = 10_000
_BILLION: Final = 1_000_000_000
_NAME_LETTERS: Final = 3
_DAY_NAMES: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTH_NAMES: Final = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


def count(number: int, singular: str, plural: str = "") -> str:
    """Return a number with its noun: `1 turn`, `1,204 turns`."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def size(number: int) -> str:
    """Return a size in bytes with a short unit.

    >>> size(312), size(1_902_114)
    ('312 B', '1.9 MB')
    """
    value = float(number)
    for unit in ("B", "kB", "MB", "GB"):
        if value < _THOUSAND or unit == "GB":
            break
        value /= _THOUSAND
    return f"{value:.0f} {unit}" if unit == "B" or value >= _TEN_UNITS else f"{value:.1f} {unit}"


def token_reduction(before: int | None, after: int | None, kept_tokens: int | None) -> str:
    """Return the token reduction of a compaction; `kept_tokens` is shown if `after` is unknown.

    >>> token_reduction(167_503, 21_350, 2_600), token_reduction(167_503, None, 2_600), token_reduction(167_503, None, None)
    ('167.5k to 21.4k tokens', '167.5k tokens, 2.6k of the conversation kept', '167.5k tokens')
    """
    if before is None:
        return f"{tokens(after)} tokens" if after is not None else ""
    if after is not None:
        return f"{tokens(before)} to {tokens(after)} tokens"
    suffix = f", {tokens(kept_tokens)} of the conversation kept" if kept_tokens is not None else ""
    return f"{tokens(before)} tokens{suffix}"


def kept_message_count(before: int | None, kept: int | None, ratio: float | None) -> str:
    """Return the number of messages that a compaction kept; empty if unknown.

    >>> kept_message_count(150, 15, 0.1), kept_message_count(None, 15, None), kept_message_count(None, None, None)
    ('15 of 150 messages kept (ratio 0.1)', '15 messages kept', '')
    """
    if kept is None and before is None:
        return ""
    of_all = f"of {before:,} messages" if before is not None else "messages"
    text = f"{kept:,} {of_all} kept" if kept is not None else f"{before:,} messages"
    return f"{text} (ratio {ratio:g})" if ratio is not None else text


def tokens(number: int) -> str:
    """Return a number of tokens in short form.

    >>> tokens(84), tokens(38_210), tokens(1_210_000)
    ('84', '38.2k', '1.21M')
    """
    if number < _THOUSAND:
        return str(number)
    return f"{number / 1000:.1f}k" if number < _MILLION_FROM else f"{number / 1e6:.2f}M"


def tokens_or_billions(number: int) -> str:
    """Return a number of tokens in short form, up to billions.

    >>> tokens_or_billions(38_210), tokens_or_billions(6_584_380_000)
    ('38.2k', '6.58B')
    """
    return f"{number / _BILLION:.2f}B" if number >= _BILLION else tokens(number)


def line_changes(added: int, removed: int) -> str:
    """Return the numbers of added and removed lines."""
    return f"+{added:,} {MINUS_SIGN}{removed:,}"


def signed(number: int) -> str:
    """Return a number with its sign."""
    return f"+{number:,}" if number >= 0 else f"{MINUS_SIGN}{-number:,}"


def percentage(part: int, total: int) -> str:
    """Return a share of a total in percent: `12%`, `<1%`."""
    return f"{part / total:.0%}" if part * 200 >= total else "<1%"


def money(micro: int | None) -> str:
    """Return an amount of micro-dollars.

    >>> money(6_840_000), money(1_204_500_000), money(3_000), money(0), money(None)
    ('$6.84', '$1,204.50', '<$0.01', '$0.00', '')
    """
    if micro is None:
        return ""
    if 0 < micro < _MICROS_PER_CENT // 2:
        return "<$0.01"
    return f"${micro / MICRO_DOLLARS_PER_DOLLAR:,.2f}"


def cents(micro: int) -> str:
    """Return micro-dollars rounded to cents; less than half a cent is not shown as zero.

    >>> cents(12_345_678), cents(4_999), cents(0)
    ('$12.35', '<$0.01', '$0.00')
    """
    if 0 < micro < _MICROS_PER_CENT // 2:
        return "<$0.01"
    return f"${(micro + _MICROS_PER_CENT // 2) // _MICROS_PER_CENT / 100:,.2f}"


def dollars(micro: int, digits: int) -> str:
    """Return micro-dollars with some decimal places: `$0.0312`."""
    return f"${micro / MICRO_DOLLARS_PER_DOLLAR:.{digits}f}"


def duration(seconds: float | None) -> str:
    """Return a duration.

    >>> duration(2.4), duration(108), duration(2880), duration(6720)
    ('2.4 s', '1m48', '48m', '1h52')
    """
    if seconds is None or seconds < 0:
        return ""
    if seconds < _TEN_UNITS:
        return f"{seconds:.1f} s"
    total_seconds = round(seconds)
    if total_seconds < _MINUTE:
        return f"{total_seconds} s"
    if total_seconds < _TEN_UNITS * _MINUTE:
        return f"{total_seconds // _MINUTE}m{total_seconds % _MINUTE:02}"
    if total_seconds < _HOUR:
        return f"{total_seconds // _MINUTE}m"
    if total_seconds < _DAY:
        return f"{total_seconds // _HOUR}h{total_seconds % _HOUR // _MINUTE:02}"
    return f"{total_seconds // _DAY}d{total_seconds % _DAY // _HOUR:02}h"


def spaced_duration(seconds: float | None) -> str:
    """Return a duration with spaces between numbers and units.

    >>> spaced_duration(6720), spaced_duration(108), spaced_duration(2880), spaced_duration(2.4)
    ('1 h 52', '1 m 48', '48 m', '2.4 s')
    """
    short = duration(seconds)
    if short.endswith("s"):
        return short
    for unit in "dhm":
        short = short.replace(unit, f" {unit} ")
    return short.strip()


def ago(seconds: float) -> str:
    """Return an elapsed time in words.

    >>> ago(59), ago(500), ago(7300), ago(180_000)
    ('just now', '8 minutes ago', '2 hours ago', '2 days ago')
    """
    for length, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= length:
            return f"{count(int(seconds // length), unit)} ago"
    return "just now"


def time_left(seconds: float) -> str:
    """Return a remaining time; below a minute in whole seconds."""
    whole_seconds = ceil(seconds)
    return f"{whole_seconds} s" if whole_seconds < _MINUTE else duration(whole_seconds)


def time_of_day(seconds: float | None) -> str:
    """Return the local time of day."""
    if seconds is None:
        return ""
    local = time.localtime(seconds)
    return f"{local.tm_hour:02}:{local.tm_min:02}"


def day_name(seconds: float, current: float) -> str:
    """Return the name of a day: Today, Yesterday, a weekday within the last week, or the date."""
    from steno.report.clock import local_midnight

    start = local_midnight(seconds)
    if start == local_midnight(current):
        return "Today"
    if start == local_midnight(current, 1):
        return "Yesterday"
    local, today = time.localtime(seconds), time.localtime(current)
    date = f"{local.tm_mday} {_MONTH_NAMES[local.tm_mon - 1]}"
    if local_midnight(current, _WEEK - 1) <= start < current:
        return f"{_DAY_NAMES[local.tm_wday]} {date}"
    return date if local.tm_year == today.tm_year else f"{date} {local.tm_year}"


def day_and_time(seconds: float, current: float) -> str:
    """Return the name of a day and the time of day."""
    return f"{day_name(seconds, current)} {time_of_day(seconds)}"


def short_day_name(seconds: float, current: float) -> str:
    """Return the short name of a day for a column: Today, Yesterday, or the abbreviated date."""
    name = day_name(seconds, current)
    if name in ("Today", "Yesterday"):
        return name
    local, today = time.localtime(seconds), time.localtime(current)
    date = f"{local.tm_mday} {_MONTH_NAMES[local.tm_mon - 1][:_NAME_LETTERS]}"
    return date if local.tm_year == today.tm_year else f"{date} {local.tm_year}"


def weekday_and_time(seconds: float, current: float) -> str:
    """Return the short weekday or date, and the time of day."""
    return f"{short_weekday(seconds, current)} {time_of_day(seconds)}"


def short_weekday(seconds: float, current: float) -> str:
    """Return the short name of a day: Today, Yesterday, Fri, 9 Nov, 3 Sep 2025."""
    name = day_name(seconds, current)
    first_word, *other_words = name.split()
    if not other_words:
        return name
    if not first_word.isdecimal():
        return first_word[:_NAME_LETTERS]
    return " ".join([first_word, other_words[0][:_NAME_LETTERS], *other_words[1:]])


def short_date(day: "date", *, year: bool = False) -> str:
    """Return a date with an abbreviated month.

    >>> from datetime import date
    >>> short_date(date(2026, 11, 5)), short_date(date(2026, 11, 5), year=True)
    ('5 Nov', '5 Nov 2026')
    """
    return f"{day.day} {day:%b}{f' {day.year}' if year else ''}"


def local_date(when: "datetime | None") -> str:
    """Return a local date: `2026-11-07`."""
    return f"{when.astimezone():%Y-%m-%d}" if when is not None else ""


def local_minute(when: "datetime | None") -> str:
    """Return a local date and time: `2026-11-07 09:14`."""
    return f"{when.astimezone():%Y-%m-%d %H:%M}" if when is not None else ""


def local_second(when: "datetime | None") -> str:
    """Return the local time of day with seconds: `09:14:03`."""
    return f"{when.astimezone():%H:%M:%S}" if when is not None else ""


def model_name(model: str) -> str:
    """Return a model name without its `claude-` prefix and date.

    >>> model_name("claude-sonnet-4-5-20250929")
    'sonnet-4-5'
    """
    return re.sub(_MODEL_DATE, "", model.removeprefix("claude-"))


def project_name(path: str) -> str:
    """Return the name of a project: the last component of its path."""
    return path.replace("\\", "/").rstrip("/").rpartition("/")[2] or path


def project_names(paths: Iterable[str]) -> dict[str, str]:
    """Return unique names of projects: ambiguous names get more of the path.

    >>> project_names(["/a/web", "/b/web", "/a/api"])
    {'/a/web': 'a/web', '/b/web': 'b/web', '/a/api': 'api'}
    """
    names = {path: project_name(path) for path in paths}
    for length in range(2, _MAX_PATH_PARTS):
        name_counts = Counter(names.values())
        ambiguous_paths = [path for path, name in names.items() if name_counts[name] > 1]
        if not ambiguous_paths:
            break
        for path in ambiguous_paths:
            parts = path.replace("\\", "/").rstrip("/").split("/")
            names[path] = "/".join(parts[-length:])
    return names


def relative_to_project(text: str, project: str) -> str:
    """Return a text with the paths in it relative to the project directory.

    >>> relative_to_project("cat /home/ada/work/src/a.py", "/home/ada/work")
    'cat src/a.py'
    """
    base = project.rstrip("/\\")
    if not base:
        return text
    return text.replace(f"{base}/", "").replace(f"{base}\\", "")
