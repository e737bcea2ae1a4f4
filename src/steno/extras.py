"""Optional dependencies: the packages of each extra, and the command that installs it.

The install command depends on how steno was installed. It never names `steno` alone: on PyPI that
name belongs to another project.
"""

import os
import sys
from importlib.util import find_spec
from shlex import quote
from typing import TYPE_CHECKING, Any, Final

from steno.errors import BadRequest

if TYPE_CHECKING:
    from importlib.metadata import Distribution


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
        installed = distribution("steno")
    except PackageNotFoundError:
        installed = None
    target = _target(installed, extra) if installed else ""
    target = target or _checkout_target(extra) or " ".join(map(quote, missing(extra)))
    return f"{_installer(installed)} {target}"


def _installer(installed: "Distribution | None") -> str:
    """Return the install command of the installer that was used, for the running Python."""
    python = quote(_relative(sys.executable))
    if installed and (installed.read_text("INSTALLER") or "").strip() == "uv":
        return f"uv pip install --python {python}"
    is_active = os.environ.get("VIRTUAL_ENV", "") == sys.prefix
    return "pip install" if is_active else f"{python} -m pip install"


def _target(installed: "Distribution", extra: str) -> str:
    """Return the requirement to install, from the `direct_url.json` of installers; "" without one."""
    import json
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    try:
        record: Any = json.loads(installed.read_text("direct_url.json") or "")
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
    return quote(f"steno[{extra}] @ {url}" + (f"#subdirectory={folder}" if folder else ""))


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
