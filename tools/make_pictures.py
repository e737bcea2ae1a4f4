"""Take screenshots of the explorer for the README: `docs/images/explorer-*.png`.

The real explorer runs with the demo sessions, in the Chromium of this machine. Screenshots are not compared, as they
depend on the fonts.

python -m tools.make_pictures
"""

import shutil
import subprocess
import sys
import tempfile
import threading
from typing import Final

from playwright.sync_api import Browser, sync_playwright
from tools.stage import ROOT

from steno.demo.recording import write_demo
from steno.index.database import IndexLocation
from steno.index.sync.updater import sync
from steno.web.http_server import Server, open_socket
from steno.web.state.app_state import AppState

FOLDER: Final = ROOT / "docs" / "images"
PICTURES: Final = {"sessions": "/", "session": "/s/8b912f76-cae9-48f5-a1f5-54a56ee58e0b?turn=19#t19", "usage": "/usage"}
WIDTH: Final = 1280
HEIGHT: Final = 800


def main() -> None:
    """Take all screenshots."""
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        sys.exit("Chromium not found")
    with tempfile.TemporaryDirectory() as folder, open_socket("127.0.0.1", 0) as made:
        app_state = AppState(IndexLocation(f"{folder}/index", (write_demo(f"{folder}/demo").root,)))
        sync(app_state.home)
        app_state.index_status.syncing, app_state.index_status.updated = False, app_state.now()
        server = Server(app_state, made)
        thread = threading.Thread(target=server.run_until_stopped)
        thread.start()
        try:
            _take(server, path)
        finally:
            server.should_exit = True
            thread.join()
            app_state.close()


def _take(server: Server, path: str) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, base_url=server.address.base_url)
        page.goto(server.login_url().removeprefix(server.address.base_url))
        page.wait_for_url("**/")
        for name, way in PICTURES.items():
            page.goto(way)
            page.wait_for_load_state("networkidle")
            page.screenshot(path=FOLDER / f"explorer-{name}.png")
            print(f"took {name}")
        _take_export(browser)


def _take_export(browser: Browser) -> None:
    """Take a screenshot of an exported page."""
    with tempfile.TemporaryDirectory() as folder:
        page_file = f"{folder}/session.html"
        root = write_demo(f"{folder}/demo").root
        session_id = PICTURES["session"].removeprefix("/s/").partition("?")[0].partition("#")[0]
        command = [sys.executable, "-m", "steno", "export", session_id, "--root", root, "-o", page_file]
        subprocess.run(command, check=True, capture_output=True)
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT // 2})
        page.goto(f"file://{page_file}")
        page.screenshot(path=FOLDER / "export-session.png")
        print("took the exported page")
        browser.close()


if __name__ == "__main__":
    main()
