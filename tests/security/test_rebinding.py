"""Other sites in the reader's own browser: by a name that leads here, and from their own pages."""

import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, BrowserContext
from tests.web.explorer import Explorer

_TRIES: Final = """async (base) => {
  const got = [];
  const kept = async (name, work) => {
    try { got.push([name, await work()]); } catch (error) { got.push([name, "nothing"]); }
  };
  for (const mode of ["cors", "no-cors", "same-origin"])
    for (const credentials of ["include", "omit"])
      await kept(`fetch ${mode}`, async () => {
        const answer = await fetch(base, { mode, credentials });
        return `${answer.type} ${answer.status} ${await answer.text()}`;
      });
  const loaded = (made, name, more) => kept(name, () => new Promise((done) => {
    made.onload = () => done(`loaded ${more?.() ?? ""}`);
    made.onerror = () => done("nothing");
    setTimeout(() => done("nothing"), 1500);
    document.body.append(made);
  }));
  const image = new Image(); image.src = `${base}favicon.ico`;
  await loaded(image, "image", () => image.naturalWidth);
  const script = document.createElement("script"); script.src = `${base}static/x/steno.js`;
  await loaded(script, "script");
  const style = document.createElement("link"); style.rel = "stylesheet"; style.href = `${base}static/x/steno.css`;
  await loaded(style, "style");
  const frame = document.createElement("iframe"); frame.src = base;
  await kept("frame", () => new Promise((done) => {
    frame.onload = () => { try { done(frame.contentDocument?.body?.innerText ?? "nothing"); } catch { done("nothing"); } };
    setTimeout(() => done("nothing"), 1500);
    document.body.append(frame);
  }));
  await kept("socket", () => new Promise((done) => {
    const socket = new WebSocket(base.replace("http", "ws"));
    socket.onopen = () => done("open"); socket.onerror = () => done("nothing");
  }));
  await kept("events", () => new Promise((done) => {
    const events = new EventSource(base, { withCredentials: true });
    events.onopen = () => done("open"); events.onerror = () => { events.close(); done("nothing"); };
  }));
  return got;
}"""
_NOTHING: Final = ("nothing", "opaque 0 ")


class _Elsewhere(BaseHTTPRequestHandler):
    """A site that somebody else runs."""

    def do_GET(self) -> None:
        body = b"<!doctype html><title>Elsewhere</title><body>hello"
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Say nothing."""


@contextmanager
def _elsewhere() -> Generator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Elsewhere) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


@pytest.fixture
def reader(browser: Browser, demo: Explorer) -> BrowserContext:
    """Give the browser of somebody who was let in."""
    context = browser.new_context()
    name, _, value = demo.cookie.partition("=")
    same: Any = "Strict"
    context.add_cookies([{"name": name, "value": value, "url": demo.base, "httpOnly": True, "sameSite": same}])
    page = context.new_page()
    page.goto(demo.base)
    assert page.title() == "Sessions · steno"
    return context


def test_a_name_that_leads_here_gets_nothing(reader: BrowserContext, demo: Explorer) -> None:
    page = reader.new_page()
    for way in ("/", "/health", f"/enter?code={demo.server.login_keys.code}", "/favicon.ico"):
        answer = page.goto(f"http://rebound.test:{demo.port}{way}")
        assert answer is not None
        assert answer.status == 421
        assert page.locator("body").inner_text() == "Host not allowed."
    # By then the page is of the same origin as what it asks for; it is the name that gives it away.
    got = page.evaluate("fetch('/').then((answer) => answer.text())")
    assert "Sessions" not in got
    assert reader.cookies(f"http://rebound.test:{demo.port}") == []


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "rebound.test"])
def test_another_site_gets_nothing_from_a_reader_who_was_let_in(
    reader: BrowserContext, demo: Explorer, name: str
) -> None:
    statuses: list[int] = []
    with _elsewhere() as port:
        page = reader.new_page()
        page.goto(f"http://{name}:{port}/")
        page.on("response", lambda answer: statuses.append(answer.status) if answer.url.startswith(demo.base) else None)
        for what, got in page.evaluate(_TRIES, f"{demo.base}/"):
            assert got in _NOTHING, (what, got[:200])
    assert statuses
    assert set(statuses) <= {401, 403, 405}


def test_a_link_from_another_site_opens_nothing(reader: BrowserContext, demo: Explorer) -> None:
    with _elsewhere() as port:
        page = reader.new_page()
        page.goto(f"http://rebound.test:{port}/")
        with page.expect_navigation():
            page.evaluate("(to) => { location.href = to; }", f"{demo.base}/health")
        assert "Cross-site request denied." in page.locator("body").inner_text()
        with reader.expect_page() as opened:
            page.goto(f"http://rebound.test:{port}/")
            page.evaluate("(to) => { window.open(to); }", f"{demo.base}/")
        opened.value.wait_for_load_state()
        assert "Sessions" not in opened.value.title()
