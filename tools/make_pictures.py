"""Take pictures of the explorer for the README: `docs/images/explorer-*.png`.

The explorer really runs, over the demo's sessions, in the Chromium of this machine. Pictures are
not compared: another font gives another picture.

python -m tools.make_pictures
"""

import shutil
import sys
import tempfile
import threading
from typing import Final

from playwright.sync_api import sync_playwright
from tools.stage import ROOT

from steno.demo.write import write_demo
from steno.index.home import Home
from steno.index.sync import sync
from steno.web.house import House
from steno.web.serve import Server, listening

FOLDER: Final = ROOT / "docs" / "images"
PICTURES: Final = {
    "sessions": "/",
    "session": "/s/6429f00f-fc3c-4f28-a384-ea05996b9683",
    "usage": "/usage",
}
WIDTH: Final = 1280
HEIGHT: Final = 800


def main() -> None:
    """Take all of them."""
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        sys.exit("there is no Chromium")
    with tempfile.TemporaryDirectory() as folder, listening("127.0.0.1", 0) as made:
        house = House(Home(f"{folder}/index", (write_demo(f"{folder}/demo").root,)))
        sync(house.home)
        house.state.syncing, house.state.fresh = False, house.now()
        server = Server(house, made)
        thread = threading.Thread(target=server.run_here)
        thread.start()
        try:
            _take(server, path)
        finally:
            server.should_exit = True
            thread.join()
            house.close()


def _take(server: Server, path: str) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page(
            viewport={"width": WIDTH, "height": HEIGHT}, base_url=server.address.base
        )
        page.goto(server.entrance().removeprefix(server.address.base))
        page.wait_for_url("**/")
        for name, way in PICTURES.items():
            page.goto(way)
            page.wait_for_load_state("networkidle")
            page.screenshot(path=FOLDER / f"explorer-{name}.png")
            print(f"took {name}")
        browser.close()


if __name__ == "__main__":
    main()
