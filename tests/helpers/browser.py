"""A real browser for the tests of pages."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def chromium() -> str:
    """Where it is; without one, the test is skipped, and says so."""
    found = os.environ.get("CAUSET_CHROMIUM") or next(
        (path for n in NAMES if (path := shutil.which(n))), None
    )
    if found is None:
        pytest.skip("no Chromium on the PATH; install one, or name it in CAUSET_CHROMIUM")
    return found


@contextmanager
def running_browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        # --no-sandbox: CI runs as root, where Chromium's sandbox does not start.
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def opened(browser: Browser, file: Path, address: str = "", scheme: Any = "light") -> Iterator[Page]:
    """A page that is ready; whatever it says on the console, or throws, fails the test."""
    context = browser.new_context(
        viewport={"width": 1280, "height": 800}, color_scheme=scheme, accept_downloads=True, offline=True
    )
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: said.append(request.url) if _outside(request.url) else None)
    page.goto(file.resolve().as_uri() + address)
    until(page, "window.causet !== undefined")
    page.evaluate("window.causet.ready")
    try:
        yield page
        assert said == []
    finally:
        context.close()


def until(page: Page, true: str, seconds: float = 10) -> None:
    """Wait until this is true. Playwright's own way evaluates text in the page, which its policy forbids."""
    end = monotonic() + seconds
    while not page.evaluate(true):
        assert monotonic() < end, f"never came true: {true}"
        page.wait_for_timeout(50)


def _outside(url: str) -> bool:
    return not url.startswith(("file:", "data:", "blob:"))
