"""Seed inputs, created by the builders of the tests."""

from tests.builders import VERSIONS, session, text, thinking, tool

__all__ = ["seeds"]

_SHELL = (
    'ls -la | grep x && echo "$(date)" > out.txt', 'for f in *; do cat "$f"; done',
    "cat <<'E'\nx $(y)\nE", "a=1 b=2 env -i sh -c 'id'", "if [ -f x ]; then . ./x; fi",
    'f() { rm -rf -- "$1"; }; f x', "diff <(ls a) <(ls b)", "echo ${x:-$(id)} `id` $'\\x41'",
)  # fmt: skip
_PATHS = (".", "..", "a/../b", "/proc/self/environ", "~/.ssh/id", ".env", "../fuzz/x", "a\0b", "//x")
_MARKDOWN = (
    "# A\n\n- b\n- [c](https://x)\n\n```python\nx = 1\n```\n", "| a | b |\n|---|---|\n| 1 | 2 |",
    "[x](javascript:alert(1)) ![y](data:text/html,z) <script>1</script>", "> *a* **b** `c` <a@b.c>",
    "[r]: java\tscript:x\n[r] &#106;avascript:x", "1. a\n   2. b\n\n---\n***x***\n<!-- c -->",
)  # fmt: skip
_SSE = (
    b"event: a\r\ndata: {}\r\n\r\n", b"\xef\xbb\xbfdata: x\rdata: y\r\r", b": c\n\nid: 1\ndata\n\n",
    b"data: \xff\n\nretry: 5\nevent: b\n\n",
)  # fmt: skip


def seeds(target: str) -> list[bytes]:
    """Return seed inputs for a target, each of a different kind."""
    if target in ("lines", "decode"):
        whole = [_session(version) for version in VERSIONS]
        single = [line + b"\n" for line in whole[-1].splitlines()]
        broken = [whole[-1][: len(whole[-1]) // 2], whole[0].replace(b"\n", b""), bytes(300)]
        return single if target == "decode" else [*whole, *broken, *single[:3]]
    if target == "sse":
        return list(_SSE)
    texts = {"shell": _SHELL, "paths": _PATHS, "markdown": _MARKDOWN}[target]
    return [each.encode() for each in texts]


def _session(version: str) -> bytes:
    made = session(version, seed="fuzz").user("Look ✓")
    made.assistant(thinking("hm"), text("I look."), tool("Read", file_path="/a.py"))
    return made.result("x").assistant("Done.").done().bytes()
