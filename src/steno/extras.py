"""Optional dependencies: the packages of each extra, and the command that installs it.

The install command depends on how steno was installed: from a checkout, a wheel or an index, with pip,
uv or pipx.
"""

import os
import re
import sys
from importlib.util import find_spec
from shlex import quote
from typing import TYPE_CHECKING, Any, Final

from steno.errors import BadRequest

if TYPE_CHECKING:
    from importlib.metadata import Distribution


DISTRIBUTION: Final = "stenolog"
"""Name of the package in an index. The name `steno` belongs to another project."""
_UVX: Final = "uvx --from"
_UV_CACHE: Final = re.compile(r"[/\\](archive|environments)-v\d+[/\\][^/\\]+$")
"""The environments that `uvx` runs programs in are directories of its cache."""
EXTRAS: Final = {
    "agent": {
        "agent-client-protocol": "acp",
        "httpx2": "httpx2",
        "pathspec": "pathspec",
        "prompt-toolkit": "prompt_toolkit",
        "pypdf": "pypdf",
        "tree-sitter": "tree_sitter",
        "tree-sitter-bash": "tree_sitter_bash",
    },
    "mcp": {"mcp": "mcp"},
    "parquet": {"pyarrow": "pyarrow"},
}
"""Packages of each extra that commands need, mapped to the module that shows it is installed."""


def missing(extra: str) -> list[str]:
    """Return the packages of an extra that are not installed, without importing them."""
    return [package for package, module in EXTRAS[extra].items() if find_spec(module) is None]


def require(extra: str, purpose: str) -> None:
    """Check that an extra is installed.

    Args:
        extra: name of the extra in `pyproject.toml`.
        purpose: subject of the error message, such as a command.

    Raises:
        BadRequest: a package is missing; the message includes the install command.
    """
    if missing(extra):
        raise BadRequest(f"{purpose} needs the extra `{extra}`: {install_command(extra)}")


def install_command(extra: str) -> str:
    """Return the shell command that installs an extra for this installation of steno."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        installed = distribution(DISTRIBUTION)
    except PackageNotFoundError:
        target = _checkout_target(extra)
        installer = _pip_command(None)
    else:
        tool = _tool_command()
        # pipx and uv build the environment again, so the extras that are installed must be named too.
        extras = [name for name in EXTRAS if name == extra or not missing(name)] if tool else [extra]
        target = _target(installed, ",".join(extras))
        installer = tool or _pip_command(installed)
    command = f"{installer} {target or ' '.join(map(quote, missing(extra)))}"
    return f"{command} steno" if installer == _UVX else command


def _tool_command() -> str:
    """Return the command of the tool that manages this environment: pipx or uv; "" for a plain environment."""
    if os.path.exists(os.path.join(sys.prefix, "pipx_metadata.json")):
        return "pipx install --force"
    if os.path.exists(os.path.join(sys.prefix, "uv-receipt.toml")):
        return "uv tool install"
    return _UVX if _UV_CACHE.search(sys.prefix) else ""


def _pip_command(installed: "Distribution | None") -> str:
    """Return the install command of the installer that was used, for the running Python."""
    python = quote(_relative(sys.executable))
    if installed and (installed.read_text("INSTALLER") or "").strip() == "uv":
        return f"uv pip install --python {python}"
    is_active = os.environ.get("VIRTUAL_ENV", "") == sys.prefix
    return "pip install" if is_active else f"{python} -m pip install"


def _target(installed: "Distribution", extra: str) -> str:
    """Return the requirement to install, read from the installer's record of a direct URL.

    Without a record the installation came from an index. Returns "" if the record is unusable.
    """
    import json
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    text = installed.read_text("direct_url.json")
    if text is None:
        return quote(f"{DISTRIBUTION}[{extra}]")
    try:
        record: Any = json.loads(text)
        url: str = record["url"]
        parts = urlsplit(url)
        folder = record.get("subdirectory")
        if parts.scheme == "file" and not folder:
            path = url2pathname(parts.path)
            if "dir_info" in record:
                return _folder_target(path, extra, editable=bool(record["dir_info"].get("editable")))
            return _file_target(path, extra)
        if "vcs_info" in record:
            url = f"{record['vcs_info']['vcs']}+{url}@{record['vcs_info']['commit_id']}"
    except (ValueError, KeyError, TypeError, AttributeError):
        return ""
    return quote(f"{DISTRIBUTION}[{extra}] @ {url}" + (f"#subdirectory={folder}" if folder else ""))


def _folder_target(path: str, extra: str, *, editable: bool) -> str:
    if not os.path.isfile(os.path.join(path, "pyproject.toml")):
        return ""
    return ("-e " if editable else "") + _with_extra(path, extra)


def _file_target(path: str, extra: str) -> str:
    """Return the path of a wheel or source archive; if it was moved, only its name."""
    if os.path.isfile(path):
        return _with_extra(path, extra)
    return _with_extra(os.path.join(".", os.path.basename(path)), extra)


def _checkout_target(extra: str) -> str:
    """Return the requirement for the checkout that steno runs from without being installed."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    in_checkout = os.path.isdir(os.path.join(root, "src", "steno"))
    return _folder_target(root, extra, editable=True) if in_checkout else ""


def _with_extra(path: str, extra: str) -> str:
    # Always quoted: brackets are glob characters in shells.
    text = f"{_relative(path)}[{extra}]"
    return quoted if (quoted := quote(text)) != text else f"'{text}'"


def _relative(path: str) -> str:
    """Return a path relative to the working directory if it is inside.

    The result always contains a separator: installers take a bare word for a package name.
    """
    try:
        here = os.getcwd()
    except OSError:
        return path
    if path == here:
        return "."
    inside = path.removeprefix(os.path.join(here, ""))
    return path if inside == path else os.path.join(".", inside)
