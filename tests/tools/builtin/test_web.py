"""Pages of the web, from a server on this machine."""

import asyncio
import gzip
import ipaddress
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from types import SimpleNamespace
from typing import Any

import pytest

from steno.tools.builtin import web
from steno.tools.builtin import web as web_module
from steno.tools.builtin.web import WebFetch, WebSearch, content_kind, decode_page, html_to_text
from steno.tools.context import ToolContext
from steno.tools.protocol import ToolFailure, ToolResult


def make(*, loopback: bool = False, **services: Any) -> ToolContext:
    context = ToolContext(cwd="/", project="/", session_id="s", folder="/", env={}, **services)
    context.page_cache.allow_loopback = loopback
    return context


class Server:
    """Answers with what a table says, and remembers what was asked."""

    def __init__(self, pages: dict[str, bytes]) -> None:
        self.pages = pages
        self.asked: list[str] = []
        self.port = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.asked.append(head)
        path = head.split(" ")[1]
        writer.write(self.pages.get(path, b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"))


Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def listening(answer: Answer) -> AsyncGenerator[int]:
    """Listen on a port of this machine; nothing is left open afterwards."""
    tasks: set[asyncio.Task[Any]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            await answer(reader, writer)
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.create_task(handle(reader, writer)))

    async with await asyncio.start_server(connected, "127.0.0.1", 0) as server:
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            server.close()
            # Also connections that were just being accepted.
            while others := asyncio.all_tasks() - {asyncio.current_task()}:
                await asyncio.wait(others)


def page(body: bytes, kind: str = "text/html", code: str = "200 OK", more: str = "") -> bytes:
    head = f"HTTP/1.1 {code}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{more}\r\n"
    return head.encode() + body


def moved(to: str) -> bytes:
    return page(b"", code="302 Found", more=f"Location: {to}\r\n")


def serve(pages: dict[str, bytes], work: Callable[[Server, str], Awaitable[Any]]) -> tuple[Server, Any]:
    async def go() -> tuple[Server, Any]:
        server = Server(pages)
        async with listening(server.answer) as server.port:
            return server, await work(server, f"http://127.0.0.1:{server.port}")

    return asyncio.run(go())


def fetch(
    pages: dict[str, bytes], path: str, context: ToolContext | None = None, **more: Any
) -> tuple[Server, ToolResult]:
    context = make(loopback=True) if context is None else context

    async def work(_server: Server, root: str) -> ToolResult:
        given = {"url": root + path, "prompt": "What?", **more}
        return await WebFetch().run(given, context, "toolu_1")

    return serve(pages, work)


# What is read


def test_a_page_is_read_as_text() -> None:
    body = b"<html><title>T</title><body><h1>Hi</h1><p>One &amp; two</p></body></html>"
    server, outcome = fetch({"/a?b=c": page(body)}, "/a?b=c")
    assert outcome.content == "# T\n\n# Hi\n\nOne & two"
    detail = dict(outcome.detail)
    assert isinstance(detail.pop("durationMs"), int)
    assert detail == {
        "bytes": len(body),
        "code": 200,
        "codeText": "OK",
        "result": outcome.content,
        "url": f"http://127.0.0.1:{server.port}/a?b=c",
    }
    assert f"Host: 127.0.0.1:{server.port}\r\n" in server.asked[0]


@pytest.mark.parametrize("kind", ["text/plain", "application/json", "application/ld+json", ""])
def test_texts_are_read_as_they_are(kind: str) -> None:
    assert fetch({"/": page(b'{"a": "<b>"}', kind)}, "/")[1].content == '{"a": "<b>"}'


@pytest.mark.parametrize("kind", ["application/pdf", "image/png", "application/octet-stream"])
def test_what_is_no_text_is_refused(kind: str) -> None:
    with pytest.raises(ToolFailure, match="is not text"):
        fetch({"/": page(b"x", kind)}, "/")


def test_a_packed_page_is_unpacked() -> None:
    body = page(gzip.compress(b"hello"), "text/plain", more="Content-Encoding: gzip\r\n")
    assert fetch({"/": body}, "/")[1].content == "hello"


@pytest.mark.parametrize(
    ("body", "more"), [(b"x" * 2000, ""), (gzip.compress(b"x" * 100_000), "Content-Encoding: gzip\r\n")]
)
def test_a_page_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch, body: bytes, more: str) -> None:
    monkeypatch.setattr(web_module, "MAX_PAGE_SIZE", 1000)
    with pytest.raises(ToolFailure, match="larger than"):
        fetch({"/": page(body, "text/plain", more=more)}, "/")


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip"])
def test_a_page_that_cannot_be_unpacked_is_refused(encoding: str) -> None:
    body = page(b"no such thing", "text/plain", more=f"Content-Encoding: {encoding}\r\n")
    with pytest.raises(ToolFailure, match=r"unsupported encoding|invalid compressed body"):
        fetch({"/": body}, "/")


def test_a_server_that_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_module, "FETCH_TIMEOUT", 0.2)

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        del writer
        await reader.read()

    async def go() -> None:
        async with listening(silent) as port:
            given = {"url": f"http://127.0.0.1:{port}/", "prompt": "?"}
            with pytest.raises(ToolFailure):
                await WebFetch().run(given, make(loopback=True), "toolu_1")

    asyncio.run(go())


def test_an_error_of_the_server_is_said() -> None:
    with pytest.raises(ToolFailure, match="404 Not Found"):
        fetch({}, "/none")


def test_a_machine_that_does_not_answer_is_said() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    given = {"url": f"http://127.0.0.1:{port}/", "prompt": "?"}
    with pytest.raises(ToolFailure, match="Cannot fetch"):
        asyncio.run(WebFetch().run(given, make(loopback=True), "toolu_1"))


def test_the_model_is_asked_about_the_page() -> None:
    seen: list[tuple[str, str]] = []

    async def ask(system: str, text: str) -> str:
        seen.append((system, text))
        return "an answer"

    context = make(loopback=True, ask_model=ask)
    outcome = fetch({"/": page(b"the page", "text/plain")}, "/", context)[1]
    assert outcome.content == outcome.detail["result"] == "an answer"
    assert "the page" in seen[0][1]
    assert "What?" in seen[0][1]


def test_a_page_is_kept_for_a_quarter_of_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    context = make(loopback=True)
    now = [1000.0]
    # The clock of this tool alone: other threads of the process go by the real one.
    monkeypatch.setattr(web_module, "time", SimpleNamespace(monotonic=lambda: now[0]))

    async def work(server: Server, root: str) -> list[int]:
        counts: list[int] = []
        for later in (0, 899, 1):
            now[0] += later
            await WebFetch().run({"url": root + "/", "prompt": "?"}, context, "toolu_1")
            counts.append(len(server.asked))
        return counts

    assert serve({"/": page(b"x", "text/plain")}, work)[1] == [1, 1, 2]


def test_a_long_page_goes_on_at_an_offset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_module, "MAX_TEXT_LENGTH", 4)
    pages = {"/": page(b"0123456789", "text/plain")}
    assert fetch(pages, "/")[1].content == "0123\n\n[6 more characters; use offset: 4 for more]"
    assert fetch(pages, "/", offset=8)[1].content == "89"


# Where it leads


def test_a_redirect_on_the_same_host_is_followed() -> None:
    server, outcome = fetch({"/": moved("/b"), "/b": page(b"there", "text/plain")}, "/")
    assert outcome.content == "there"
    assert len(server.asked) == 2


@pytest.mark.parametrize("to", ["https://example.com/x", "http://169.254.169.254/latest", "http://localhost:1/"])
def test_a_redirect_to_another_host_is_told_and_not_followed(to: str) -> None:
    server, outcome = fetch({"/": moved(to)}, "/")
    assert f"Redirect URL: {to}" in str(outcome.content)
    assert outcome.detail["code"] == 302
    assert len(server.asked) == 1


@pytest.mark.parametrize("to", ["file:///etc/passwd", "gopher://h/", "//[", "http://a:b@h/"])
def test_a_redirect_to_what_is_no_page_is_refused(to: str) -> None:
    with pytest.raises(ToolFailure):
        fetch({"/": moved(to)}, "/")


def test_redirects_have_an_end() -> None:
    with pytest.raises(ToolFailure, match="redirects"):
        fetch({"/": moved("/")}, "/")


# What is refused

REFUSED = [
    "http://127.0.0.1/",
    "http://127.1/",
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0177.0.0.1/",
    "http://0x7f.0.0.1/",
    "http://localhost/",
    "http://localhost./",
    "http://LOCALHOST/",
    "http://0.0.0.0/",
    "http://0/",
    "http://[::1]/",
    "http://[::]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[::127.0.0.1]/",
    "http://[64:ff9b::7f00:1]/",
    "http://[2002:7f00:1::]/",
    "http://[fe80::1]/",
    "http://[fc00::1]/",
    "http://[fd00:ec2::254]/",
    "http://[ff02::1]/",
    "http://169.254.169.254/latest/meta-data/",
    "http://2852039166/",
    "http://0251.0376.0251.0376/",
    "http://10.0.0.1/",
    "http://172.16.0.1/",
    "http://192.168.1.1/",
    "http://100.64.0.1/",
    "http://198.18.0.1/",
    "http://224.0.0.1/",
    "http://255.255.255.255/",
    "http://127.0.0.1.:80/",
    "http://①②⑦.0.0.1/",
]


@pytest.mark.parametrize("url", REFUSED)
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_machines_inside_are_refused(monkeypatch: pytest.MonkeyPatch, url: str, scheme: str) -> None:
    async def connect(*_: Any) -> None:
        pytest.fail("it tried to connect")

    monkeypatch.setattr(web_module, "_request_page", connect)
    given = {"url": url.replace("http", scheme, 1), "prompt": "?"}
    with pytest.raises(ToolFailure):
        asyncio.run(WebFetch().run(given, make(), "toolu_1"))


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.com",
        "ftp://example.com/",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "http://",
        "http://user@example.com/",
        "http://user:secret@example.com/",
        "http://example.com@127.0.0.1/",
        "http://example.com:99999/",
        "http://exa mple.com/",
        "http://example.com\\@127.0.0.1/",
        "http://example.com/\r\nX: y",
        "http://[::1",
        "http://[fe80::1%25lo]/",
        "http://" + "a" * 70 + ".com/",
        "http://example.com/" + "a" * 3000,
    ],
)
def test_what_is_no_plain_address_is_refused(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    async def connect(*_: Any) -> None:
        pytest.fail("it tried to connect")

    monkeypatch.setattr(web_module, "_request_page", connect)
    with pytest.raises(ToolFailure):
        asyncio.run(WebFetch().run({"url": url, "prompt": "?"}, make(), "toolu_1"))


def named(monkeypatch: pytest.MonkeyPatch, answers: list[list[str]]) -> list[tuple[web.WebTarget, str]]:
    """Have names resolve to these numbers, one list after the other; note what is connected to."""
    asked: list[tuple[web.WebTarget, str]] = []

    async def lookup(_loop: Any, host: str, port: int, **_: Any) -> list[Any]:
        del host
        return [(2, 1, 6, "", (number, port)) for number in answers.pop(0)]

    async def connect(target: web.WebTarget, address: str) -> web_module.WebPage:
        asked.append((target, address))
        return web_module.WebPage(target.url, "", 0, 302, "Found", f"{target.url}x")

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", lookup)
    monkeypatch.setattr(web_module, "_request_page", connect)
    return asked


def test_a_name_that_turns_to_a_machine_inside_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = named(monkeypatch, [["93.184.216.34"], ["127.0.0.1"]])
    given = {"url": "http://example.com/", "prompt": "?"}
    with pytest.raises(ToolFailure, match="private or local address"):
        asyncio.run(WebFetch().run(given, make(), "toolu_1"))
    ((target, address),) = asked
    assert address == "93.184.216.34"
    assert target.url_at(address) == "https://93.184.216.34:443/"


def test_a_name_with_one_number_inside_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = named(monkeypatch, [["93.184.216.34", "::1"]])
    given = {"url": "https://example.com/", "prompt": "?"}
    with pytest.raises(ToolFailure, match="private or local address"):
        asyncio.run(WebFetch().run(given, make(), "toolu_1"))
    assert asked == []


def test_the_connection_goes_to_the_number_and_names_the_host() -> None:
    async def go() -> bytes:
        hello: list[bytes] = []

        async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            hello.append(await reader.read(4096))
            writer.close()

        async with listening(listen) as port:
            target = web.parse_target(f"https://tide.example:{port}/", allow_loopback=True)
            with pytest.raises(ToolFailure):
                await web_module._request_page(target, "127.0.0.1")
        return hello[0]

    # The greeting of TLS has the name in the clear, which is what certificates are held against.
    assert b"tide.example" in asyncio.run(go())


def test_http_becomes_https() -> None:
    assert web.parse_target("http://example.com/a", allow_loopback=True).url == "https://example.com/a"
    assert web.parse_target("http://example.com:80/", allow_loopback=True).url == "https://example.com/"
    assert web.parse_target("http://127.0.0.1/", allow_loopback=False).scheme == "https"
    assert web.parse_target("http://bücher.example/", allow_loopback=False).host == "xn--bcher-kva.example"


@pytest.mark.parametrize("number", ["93.184.216.34", "8.8.8.8", "2606:2800:220:1::1"])
def test_numbers_of_the_public_network_are_public(number: str) -> None:
    assert web.is_public_address(ipaddress.ip_address(number))


# Pages as text


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("<p>a<p>b", "a\n\nb"),
        ("<ul><li>a<li>b</ul>", "- a\n- b"),
        ("a<script>x<b></script>b<style>y</style>c", "abc"),
        ("<svg><title>no</title></svg>yes", "yes"),
        ("<pre>a  b\n  c</pre>", "```\na  b\n  c\n```"),
        ("x <code>y</code>", "x `y`"),
        ("<table><tr><td>a<td>b<tr><td>c</table>", "| a | b\n| c"),
        ("<a href='b'>link</a>", "[link](http://h/b)"),
        ("<a href='javascript:x'>link</a>", "link"),
        ("<a href='http://[bad'>link</a>", "link"),
        ("<img alt='A cat'>", "[image: A cat]"),
        ("&lt;b&gt; &#233;", "<b> é"),
        ("<![if x]>a<![endif]>b<![CDATA[c]]>d", "abd"),
        ("a<!-- never ends", "a"),
        ("a<!-- <p> -- > -->b", "ab"),
        ("<a href=x>one<a href=y>two</a>", "one[two](http://h/y)"),
        ("\x1b[31mred", "red"),
    ],
)
def test_html_becomes_text(source: str, text: str) -> None:
    assert html_to_text(source, "http://h/") == text


@pytest.mark.parametrize(
    "part", ["<div>", "<a href=x>", "</a>", "<a>x</a>", "<", "<!", "<![", "<!--", "</", "<a ", "&", "<?"]
)
def test_a_page_made_to_take_long_is_given_up(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("steno.tools.builtin.web.PARSE_TIMEOUT", 1.0)
    assert html_to_text("begin " + part * 100_000, "http://h/").startswith("begin")


@pytest.mark.parametrize(
    ("data", "kind", "text"),
    [
        ("é".encode("latin-1"), "text/html; charset=ISO-8859-1", "é"),
        (b"<meta charset='windows-1252'>\x80", "text/html", "<meta charset='windows-1252'>€"),
        ("é".encode("utf-16"), "text/html", "é"),
        ("\ufeffé".encode(), "text/html", "é"),
        (b"\xff", "text/html; charset=zip", "\ufffd"),
        (b"x", "text/html; charset=unicode_escape", "x"),
        (b"x", "text/html; charset=windows-9999", "x"),
    ],
)
def test_bytes_are_read_in_their_encoding(data: bytes, kind: str, text: str) -> None:
    assert decode_page(data, kind, is_html=True) == text


def test_kinds_of_content() -> None:
    assert content_kind("Text/HTML; charset=x") == "html"
    assert content_kind("text/css") == "text"
    assert content_kind("video/mp4") == ""


# Searching


def search(context: ToolContext, **given: Any) -> ToolResult:
    return asyncio.run(WebSearch().run(given, context, "toolu_1"))


def test_a_search_lists_words_and_links() -> None:
    seen: list[Any] = []
    links = [{"title": "One", "url": "https://example.com/a"}]
    results = ["Looking.", {"tool_use_id": "srvtoolu_1", "content": links}, "Found."]

    async def found(query: str, allowed: list[str], blocked: list[str]) -> list[Any]:
        seen.append((query, allowed, blocked))
        return results

    outcome = search(make(search_web=found), query="tides", allowed_domains=["example.com"])
    assert seen == [("tides", ["example.com"], [])]
    assert str(outcome.content).startswith(
        'Web search results for query: "tides"\n\nLooking.\n\n'
        'Links: [{"title":"One","url":"https://example.com/a"}]\n\nFound.\n\n'
    )
    assert outcome.detail["results"] == results
    assert outcome.detail["searchCount"] == 1
    assert list(outcome.detail) == ["query", "results", "durationSeconds", "searchCount"]


def test_without_a_search_the_model_is_told() -> None:
    with pytest.raises(ToolFailure, match="not available"):
        search(make(), query="tides")


@pytest.mark.parametrize(
    "given", [{}, {"query": " "}, {"query": "tides", "allowed_domains": ["a"], "blocked_domains": ["b"]}]
)
def test_a_bad_search_is_a_failure_in_words(given: dict[str, Any]) -> None:
    async def never(*_: Any) -> list[Any]:
        pytest.fail("it searched")

    with pytest.raises(ToolFailure):
        search(make(search_web=never), **given)
