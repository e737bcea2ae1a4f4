"""A real browser, wherever it is installed."""

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

__all__ = ["chromium"]

_NAMES: Final = ("chromium", "chromium-browser", "google-chrome")
_PATIENCE: Final = 60_000
"""Milliseconds until something that a page shall show is missed: the machine may be busy."""


@contextmanager
def chromium(*arguments: str) -> Generator[Browser]:
    """Give the system's Chromium; without one, the tests that need it are skipped."""
    path = next(filter(None, map(shutil.which, _NAMES)), None)
    if path is None:
        pytest.skip("Chromium is not installed; `make test` prints how to install it")
    expect.set_options(timeout=_PATIENCE)
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", *arguments])
        yield found
        found.close()
