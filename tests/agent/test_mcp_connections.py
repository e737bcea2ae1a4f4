"""Servers of the Model Context Protocol: real programs and a real HTTP server."""

import asyncio
import json
import os
import runpy
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar, Final, TypeVar

import msgspec
import pytest
from tests.agent.headless_harness import House

from steno.agent.config.settings import Settings
from steno.agent.mcp.connections import (
    McpConnections,
    McpTool,
    ServerConfig,
    expand_variables,
    find_servers,
    mcp_tool_name,
    take_metadata,
)
from steno.llm.testserver.responders import tool
from steno.tools.context import ToolContext
from steno.tools.protocol import ToolFailure, ToolResult

T = TypeVar("T")
PNG: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

PROTOCOL: Final = """
import json, os, sys

PNG = "@PNG@"
TOOLS = [
    {"name": name, "description": name * 3000 if name == "long" else "does " + name,
     "inputSchema": {"type": "object", "properties": {"a": {"type": "number"}}}}
    for name in ("add", "pic", "svg", "text", "mixed", "fail", "empty", "env", "hang", "die",
                 "much", "error", "odd name!", "long", "x" * 200)
]

def text(words):
    return {"content": [{"type": "text", "text": words}]}

def call(name, given):
    if name == "add":
        return {"content": [{"type": "text", "text": "3"}], "structuredContent": {"sum": 3},
                "_meta": {"k": "v"}}
    if name == "pic":
        return {"content": [{"type": "image", "data": PNG, "mimeType": "image/png"}]}
    if name == "svg":
        return {"content": [{"type": "image", "data": PNG, "mimeType": "image/svg+xml"},
                            {"type": "image", "data": "?", "mimeType": "image/png"}]}
    if name == "mixed":
        return {"content": [
            {"type": "text", "text": "one"},
            {"type": "resource", "resource": {"uri": "a://b", "text": "held"}},
            {"type": "resource", "resource": {"uri": "a://c", "blob": PNG, "mimeType": "image/png"}},
            {"type": "resource", "resource": {"uri": "a://d", "blob": "AAAA"}},
            {"type": "resource_link", "uri": "a://e", "name": "link"},
            {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}]}
    if name == "fail":
        return {"content": [{"type": "text", "text": "it broke"}], "isError": True}
    if name == "empty":
        return {"content": []}
    if name == "env":
        return text(json.dumps(dict(os.environ, CWD=os.getcwd())))
    if name == "much":
        return text("y" * 1000)
    if name == "die":
        os._exit(3)
    return text("%s of %s" % (name, json.dumps(given)))

def answer(message):
    method = message.get("method")
    if method == "initialize":
        return {"protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {"tools": {}}, "instructions": "be kind",
                "serverInfo": {"name": "lab", "version": "1"}}
    if method == "tools/list":
        # Two pages.
        if message.get("params", {}).get("cursor") == "more":
            return {"tools": TOOLS[5:]}
        return {"tools": TOOLS[:5], "nextCursor": "more"}
    return call(message["params"]["name"], message["params"].get("arguments"))

def reply(message):
    name = message.get("params", {}).get("name")
    if name == "error":
        return {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32000 - 5, "message": "no way"}}
    return {"jsonrpc": "2.0", "id": message["id"], "result": answer(message)}
""".replace("@PNG@", PNG)

STDIO: Final = (
    PROTOCOL
    + """
print("hello from stderr", file=sys.stderr, flush=True)
print("this is no JSON", flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if message.get("params", {}).get("name") == "hang" or "id" not in message:
        continue
    print(json.dumps(reply(message)), flush=True)
"""
)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "server.py"
    path.write_text(STDIO, "utf-8")
    return path


def stdio(script: Path, **more: Any) -> ServerConfig:
    args = (str(script),)
    server = ServerConfig(name="lab", kind="stdio", scope="user", command=sys.executable, args=args)
    return msgspec.structs.replace(server, **more)


def environment(**more: str) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], **more}


def context(tmp_path: Path) -> ToolContext:
    place = str(tmp_path)
    return ToolContext(cwd=place, project=place, session_id="s", folder=str(tmp_path / "s"), env={})


def using(
    server: ServerConfig,
    tmp_path: Path,
    use: Callable[[McpConnections], Awaitable[T]],
    env: dict[str, str] | None = None,
) -> T:
    async def main() -> T:
        connections = McpConnections([server], cwd=str(tmp_path), env=env or environment())
        connections.start()
        assert connections.states()[0].status == "pending"
        assert connections.tools() == ()
        await connections.wait_until_ready(50)
        try:
            return await use(connections)
        finally:
            await connections.close()

    return asyncio.run(main())


def named(connections: McpConnections, name: str) -> McpTool:
    return next(tool for tool in connections.tools() if tool.spec.name == f"mcp__lab__{name}")


# Which servers there are


class Place:
    """A machine with a user and a project."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.project = root / "work"
        self.project.mkdir()
        self.env = {"CLAUDE_CONFIG_DIR": str(root), "KEY": "k", "ANTHROPIC_API_KEY": "secret"}
        self.notes: list[str] = []

    def write(self, path: str, value: Any) -> None:
        text = value if isinstance(value, str) else json.dumps(value)
        (self.root / path).write_text(text, "utf-8")

    def find(self, settings: Settings | None = None, **more: Any) -> dict[str, ServerConfig]:
        given: dict[str, Any] = {"trusted": True, "managed": str(self.root / "managed.json")}
        found, notes = find_servers(str(self.project), settings or Settings(), env=self.env, **{**given, **more})
        self.notes = [str(note) for note in notes]
        return {server.name: server for server in found}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_a_projects_server_starts_only_where_trusted_and_agreed_to(place: Place) -> None:
    place.write("work/.mcp.json", {"mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}}})
    assert place.find() == {}
    assert "enabledMcpjsonServers" in place.notes[0]
    agreed = Settings(enabled_mcpjson=("a",))
    assert list(place.find(agreed)) == ["a"]
    assert place.find(agreed, trusted=False) == {}
    assert "not trusted" in place.notes[0]
    everything = Settings(enable_all_project_mcp=True, disabled_mcpjson=("b",))
    assert list(place.find(everything)) == ["a"]


def test_the_nearest_of_one_name_counts(place: Place) -> None:
    def servers(command: str) -> dict[str, Any]:
        return {"mcpServers": {"a": {"command": command}}}

    settings = Settings(mcp_servers={"a": {"command": "settings"}}, enable_all_project_mcp=True)
    assert place.find(settings)["a"].command == "settings"
    place.write(".claude.json", servers("user"))
    assert place.find(settings)["a"].command == "user"
    place.write("work/.mcp.json", servers("project"))
    assert place.find(settings)["a"].command == "project"
    place.write(".claude.json", {"projects": {str(place.project): servers("local")}})
    assert place.find(settings)["a"].command == "local"
    flags = [json.dumps(servers("flags"))]
    assert place.find(settings, flags=flags)["a"].command == "flags"
    place.write("managed.json", servers("managed"))
    assert place.find(settings, flags=flags)["a"].command == "managed"


def test_strict_leaves_only_what_the_command_line_gave(place: Place) -> None:
    place.write(".claude.json", {"mcpServers": {"a": {"command": "x"}}})
    place.write("more.json", {"mcpServers": {"b": {"command": "y"}}})
    flags = [str(place.root / "more.json"), str(place.root / "none.json"), "{"]
    assert sorted(place.find(flags=flags)) == ["a", "b"]
    assert len(place.notes) == 2
    assert sorted(place.find(flags=flags, strict=True)) == ["b"]


def test_a_server_in_a_projects_settings_is_agreed_to_like_any_of_its(place: Place) -> None:
    servers = {"a": {"command": "x"}}
    for layer in ("project", "local"):
        settings = Settings(mcp_servers=servers, origins={"mcpServers.a": layer})
        assert place.find(settings) == {}
    assert list(place.find(Settings(mcp_servers=servers, origins={"mcpServers.a": "user"}))) == ["a"]


def test_every_kind_of_server_is_read(place: Place) -> None:
    servers = {
        "s": {"command": "${KEY}", "args": ["${NO:-d}", 5], "env": {"A": "${KEY}"}, "timeout": 1500},
        "h": {"type": "http", "url": "http://x/${KEY}", "headers": {"A": "B ${KEY}"}},
        "e": {"type": "sse", "url": "http://y"},
        "u": {"url": "http://z"},
        "t": {"type": "streamable-http", "url": "http://z"},
        "w": {"type": "ws", "url": "ws://z"},
        "n": {"command": 5},
        "o": "x",
    }
    found = place.find(flags=[json.dumps({"mcpServers": servers})])
    assert found["s"] == ServerConfig(
        name="s", kind="stdio", scope="flags", command="k", args=("d",), env={"A": "k"}, timeout=1.5
    )
    assert (found["h"].url, found["h"].headers) == ("http://x/k", {"A": "B k"})
    assert [found[name].kind for name in "heut"] == ["http", "sse", "http", "http"]
    assert len(place.notes) == 3


def test_a_project_does_not_get_the_users_key(place: Place) -> None:
    server = {"type": "http", "url": "http://x", "headers": {"A": "${ANTHROPIC_API_KEY}"}}
    value = {"mcpServers": {"a": server}}
    place.write("work/.mcp.json", value)
    settings = Settings(enable_all_project_mcp=True)
    assert place.find(settings)["a"].headers == {"A": "${ANTHROPIC_API_KEY}"}
    assert place.notes
    assert place.find(flags=[json.dumps(value)])["a"].headers == {"A": "secret"}


@pytest.mark.parametrize(
    ("text", "value", "missing"),
    [
        ("${A}", "a", ()),
        ("x${A}y${A}", "xaya", ()),
        ("${B:-b}", "b", ()),
        ("${A:-b}", "a", ()),
        ("${EMPTY:-b}", "b", ()),
        ("${EMPTY}", "", ()),
        ("${B:-}", "", ()),
        ("${B}", "${B}", ("B",)),
        ("$A ${} ${1}", "$A ${} ${1}", ()),
    ],
)
def test_names_are_replaced_by_their_values(text: str, value: str, missing: tuple[str, ...]) -> None:
    assert expand_variables(text, {"A": "a", "EMPTY": ""}) == (value, missing)


def test_a_tool_has_a_name_that_the_api_takes() -> None:
    assert mcp_tool_name("my server", "read.file/x") == "mcp__my_server__read_file_x"


# Being connected


def test_the_tools_of_a_server_become_ours(tmp_path: Path, script: Path) -> None:
    async def use(connections: McpConnections) -> None:
        (state,) = connections.states()
        assert (state.status, state.error, state.instructions) == ("connected", "", "be kind")
        names = [tool.spec.name for tool in connections.tools()]
        assert names == sorted(names)
        assert "mcp__lab__odd_name_" in names
        # Of both pages, and none with a name that the API refuses.
        assert len(names) == 14
        assert len(named(connections, "long").spec.description) == 2048
        spec = named(connections, "add").spec
        assert spec.schema["type"] == "object"
        assert not spec.reads_only

    using(stdio(script), tmp_path, use)


def test_results_become_outcomes_as_sessions_keep_them(tmp_path: Path, script: Path) -> None:
    place = context(tmp_path)

    async def use(connections: McpConnections) -> dict[str, ToolResult]:
        found: dict[str, ToolResult] = {}
        for name in ("add", "pic", "svg", "text", "mixed", "fail", "empty", "odd_name_"):
            found[name] = await named(connections, name).run({"a": 1}, place, f"toolu_{name}")
        return found

    found = using(stdio(script), tmp_path, use)
    assert (found["add"].content, found["add"].detail) == ('{"sum":3}', '{"sum":3}')
    assert take_metadata(place, "toolu_add") == {"_meta": {"k": "v"}, "structuredContent": {"sum": 3}}
    assert take_metadata(place, "toolu_add") is None
    assert found["text"].content == [{"type": "text", "text": 'text of {"a": 1}'}]
    assert found["odd_name_"].detail == [{"type": "text", "text": 'odd name! of {"a": 1}'}]
    assert found["fail"].is_error
    assert found["fail"].content == "it broke"
    assert found["empty"].content == "The tool returned no output."
    assert all("cannot be displayed" in block["text"] for block in found["svg"].detail)
    _check_pictures(found, tmp_path)


def _check_pictures(found: dict[str, ToolResult], tmp_path: Path) -> None:
    image, words = found["pic"].detail
    assert image["source"] == {"type": "base64", "media_type": "image/png", "data": PNG}
    path = Path(words["text"].removeprefix("[Image: source: ").removesuffix("]"))
    assert path.parent == tmp_path / "s" / "tool-results"
    assert path.name.startswith("mcp-lab-blob-")
    assert path.read_bytes().startswith(b"\x89PNG")
    assert path.stat().st_mode & 0o777 == 0o600
    kinds = [block["type"] for block in found["mixed"].detail]
    assert kinds == ["text", "text", "image", "text", "text", "text", "text"]
    texts = [block.get("text", "") for block in found["mixed"].detail]
    assert texts[1] == "[Resource a://b]\nheld"
    assert "link at a://e" in texts[5]


def test_an_error_and_a_death_are_failures_that_the_model_reads(tmp_path: Path, script: Path) -> None:
    place = context(tmp_path)

    async def use(connections: McpConnections) -> None:
        with pytest.raises(ToolFailure, match="no way"):
            await named(connections, "error").run({}, place, "1")
        add = named(connections, "add")
        assert (await add.run({}, place, "2")).content == '{"sum":3}'
        with pytest.raises(ToolFailure, match="mcp__lab__die failed"):
            await named(connections, "die").run({}, place, "3")
        with pytest.raises(ToolFailure):
            await add.run({}, place, "4")

    using(stdio(script), tmp_path, use)


def test_a_call_has_a_time(tmp_path: Path, script: Path) -> None:
    place = context(tmp_path)

    async def use(connections: McpConnections) -> None:
        hang = named(connections, "hang")
        with pytest.raises(ToolFailure, match=r"after 0\.2 s"):
            await hang.run({}, place, "1")
        assert (await named(connections, "add").run({}, place, "2")).detail == '{"sum":3}'

    using(stdio(script, timeout=0.2), tmp_path, use)
    using(stdio(script), tmp_path, use, environment(MCP_TOOL_TIMEOUT="200"))


def test_a_call_can_be_cancelled(tmp_path: Path, script: Path) -> None:
    place = context(tmp_path)

    async def use(connections: McpConnections) -> None:
        task = asyncio.create_task(named(connections, "hang").run({}, place, "1"))
        assert (await named(connections, "add").run({}, place, "2")).detail == '{"sum":3}'
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await named(connections, "add").run({}, place, "3")).detail == '{"sum":3}'

    using(stdio(script), tmp_path, use)


def test_much_output_is_cut(tmp_path: Path, script: Path) -> None:
    async def use(connections: McpConnections) -> ToolResult:
        return await named(connections, "much").run({}, context(tmp_path), "1")

    outcome = using(stdio(script), tmp_path, use, environment(MAX_MCP_OUTPUT_TOKENS="10"))
    assert outcome.detail[0]["text"] == "y" * 40 + "\n[… 960 more characters omitted]"


def test_a_program_gets_its_environment_but_not_the_key(tmp_path: Path, script: Path) -> None:
    async def use(connections: McpConnections) -> ToolResult:
        return await named(connections, "env").run({}, context(tmp_path), "1")

    env = environment(**dict.fromkeys(("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"), "secret"), FOO="1")
    outcome = using(stdio(script, env={"OWN": "2"}), tmp_path, use, env)
    told = json.loads(outcome.detail[0]["text"])
    assert (told["FOO"], told["OWN"], told["CWD"]) == ("1", "2", str(tmp_path))
    assert "secret" not in json.dumps(told)


@pytest.mark.parametrize(
    ("command", "args", "words"),
    [
        ("/no/such/program", (), "No such file"),
        (sys.executable, ("-c", "import sys; sys.exit('I am broken')"), "I am broken"),
        (sys.executable, ("-c", "import sys; [0 for _ in sys.stdin]"), "no response within 1 s"),
    ],
)
def test_a_server_that_does_not_come_up_says_why(
    tmp_path: Path, command: str, args: tuple[str, ...], words: str
) -> None:
    async def use(connections: McpConnections) -> None:
        (state,) = connections.states()
        assert state.status == "failed"
        assert words in state.error
        assert connections.tools() == ()

    server = ServerConfig(name="bad", kind="stdio", scope="user", command=command, args=args)
    using(server, tmp_path, use, environment(MCP_TIMEOUT="1000" if "stdin" in str(args) else ""))


def test_a_slow_server_delays_nobody_and_can_be_left(tmp_path: Path, script: Path) -> None:
    slow = ServerConfig(
        name="slow",
        kind="stdio",
        scope="user",
        command=sys.executable,
        args=("-c", "import sys; [0 for _ in sys.stdin]"),
    )

    async def main() -> None:
        connections = McpConnections([slow, stdio(script)], cwd=str(tmp_path), env=environment())
        connections.start()
        while not connections.tools():
            await connections.wait_until_ready(0.05)
        assert [state.status for state in connections.states()] == ["pending", "connected"]
        await connections.close()
        assert connections.tools() == ()
        assert "connected" not in {state.status for state in connections.states()}

    asyncio.run(main())


def test_closing_ends_the_program(tmp_path: Path) -> None:
    path = tmp_path / "server.py"
    path.write_text("import os; open('pid', 'w').write(str(os.getpid()))\n" + STDIO, "utf-8")

    async def use(connections: McpConnections) -> None:
        assert connections.states()[0].status == "connected"

    using(stdio(path), tmp_path, use)
    number = int((tmp_path / "pid").read_text("utf-8"))
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)


def test_a_server_made_with_the_library_is_understood(tmp_path: Path) -> None:
    path = tmp_path / "server.py"
    path.write_text(
        "from mcp.server.mcpserver import MCPServer\n"
        "server = MCPServer('lab')\n"
        "@server.tool()\n"
        "def add(a: int, b: int) -> int:\n"
        "    'Add two numbers'\n"
        "    return a + b\n"
        "server.run('stdio')\n",
        "utf-8",
    )

    async def use(connections: McpConnections) -> ToolResult:
        (state,) = connections.states()
        assert (state.status, state.error) == ("connected", "")
        tool = named(connections, "add")
        assert tool.spec.description == "Add two numbers"
        assert tool.spec.schema["required"] == ["a", "b"]
        return await tool.run({"a": 1, "b": 2}, context(tmp_path), "1")

    assert using(stdio(path), tmp_path, use).content == '{"result":3}'


def test_the_library_is_not_imported_before_there_is_a_server() -> None:
    code = "import sys, steno.agent.mcp.connections; print(sorted({'mcp', 'httpx2', 'pydantic'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_nothing_is_started_without_servers(tmp_path: Path) -> None:
    async def main() -> None:
        connections = McpConnections([], cwd=str(tmp_path), env={})
        connections.start()
        await connections.wait_until_ready(1)
        assert connections.states() == ()
        await connections.close()

    asyncio.run(main())


# Over HTTP


class _Web(BaseHTTPRequestHandler):
    """Answers as the program does, and remembers what it was asked with."""

    seen: ClassVar[list[dict[str, str]]] = []
    rules: ClassVar[dict[str, Any]] = {}

    def do_POST(self) -> None:
        self.seen.append({name.lower(): value for name, value in self.headers.items()})
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if "id" not in message:
            self._say(202, b"")
            return
        self._say(200, json.dumps(self.rules["reply"](message)).encode())

    def do_GET(self) -> None:
        self._say(405, b"")

    def do_DELETE(self) -> None:
        self._say(200, b"")

    def _say(self, code: int, body: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Say nothing."""


@pytest.fixture
def web(tmp_path: Path) -> Iterator[str]:
    path = tmp_path / "protocol.py"
    path.write_text(PROTOCOL, "utf-8")
    _Web.seen.clear()
    _Web.rules = runpy.run_path(str(path))
    with ThreadingHTTPServer(("127.0.0.1", 0), _Web) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/mcp"
        server.shutdown()
        thread.join()


def test_a_server_on_the_web_is_spoken_to_with_its_headers(tmp_path: Path, web: str) -> None:
    async def use(connections: McpConnections) -> ToolResult:
        assert connections.states()[0].status == "connected"
        return await named(connections, "add").run({}, context(tmp_path), "1")

    server = ServerConfig(name="lab", kind="http", scope="user", url=web, headers={"Authorization": "Bearer x"})
    assert using(server, tmp_path, use).detail == '{"sum":3}'
    assert {headers["authorization"] for headers in _Web.seen} == {"Bearer x"}


@pytest.mark.parametrize("kind", ["http", "sse"])
def test_an_address_where_nobody_is_fails_with_a_reason(tmp_path: Path, kind: Any) -> None:
    async def use(connections: McpConnections) -> None:
        (state,) = connections.states()
        assert state.status == "failed"
        assert state.error

    server = ServerConfig(name="lab", kind=kind, scope="user", url="http://127.0.0.1:1/mcp")
    using(server, tmp_path, use)


def test_the_record_of_a_result_keeps_what_else_a_server_gave(tmp_path: Path, script: Path) -> None:
    house = House(tmp_path)
    servers = {"mcpServers": {"lab": {"command": sys.executable, "args": [str(script)]}}}
    house.options.mcp_config = (json.dumps(servers),)
    house.options.allowed = ("mcp__lab__add", "mcp__lab__text")
    house.script.on("go", [tool("mcp__lab__add", a=1), tool("mcp__lab__text", a=2)]).then("3.")
    house.say("go")
    added, plain = [each for each in house.records() if "toolUseResult" in each]
    assert added["mcpMeta"] == {"_meta": {"k": "v"}, "structuredContent": {"sum": 3}}
    assert added["toolUseResult"] == '{"sum":3}'
    assert "mcpMeta" not in plain
    house.check()
