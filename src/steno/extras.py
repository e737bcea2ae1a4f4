"""Optional dependencies: which packages an extra brings, and how to install it here.

The install command depends on how steno itself was installed. It never asks a registry for the name
`steno`, which belongs to another project there.
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
"""The extras that commands ask for: each package, and the module that shows it is installed."""


def missing(extra: str) -> list[str]:
    """Return the packages of an extra that are not installed, without importing any."""
    return [package for package, module in EXTRAS[extra].items() if find_spec(module) is None]


def require(extra: str, purpose: str) -> None:
    """Check that an extra is installed.

    Args:
        extra: its name in `pyproject.toml`.
        purpose: what needs it, as the subject of the error message.

    Raises:
        BadRequest: a package is missing; the message has the command that installs it.
    """
    if missing(extra):
        raise BadRequest(f"{purpose} needs the extra `{extra}`: {install_command(extra)}")


def install_command(extra: str) -> str:
    """Return the shell command that adds an extra to this installation of steno."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        installed = distribution("steno")
    except PackageNotFoundError:
        installed = None
    target = _target(installed, extra) if installed else ""
    target = target or _checkout_target(extra) or " ".join(map(quote, missing(extra)))
    return f"{_installer(installed)} {target}"


def _installer(installed: "Distribution | None") -> str:
    """Return the command of the installer that put steno here, for the Python that runs it."""
    python = quote(_relative(sys.executable))
    if installed and (installed.read_text("INSTALLER") or "").strip() == "uv":
        return f"uv pip install --python {python}"
    is_active = os.environ.get("VIRTUAL_ENV", "") == sys.prefix
    return "pip install" if is_active else f"{python} -m pip install"


def _target(installed: "Distribution", extra: str) -> str:
    """Return what to install, by the record that installers leave of a direct URL; "" for none."""
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
    """Return a wheel or source archive: by its name alone if it is not where it was any more."""
    if os.path.isfile(path):
        return _with_extra(path, extra)
    return _with_extra(os.path.join(".", os.path.basename(path)), extra)


def _checkout_target(extra: str) -> str:
    """Return the checkout that steno runs from without having been installed."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    in_checkout = os.path.isdir(os.path.join(root, "src", "steno"))
    return _folder_target(root, extra, editable=True) if in_checkout else ""


def _with_extra(path: str, extra: str) -> str:
    # Always quoted: the brackets mean something to shells.
    text = f"{_relative(path)}[{extra}]"
    return quoted if (quoted := quote(text)) != text else f"'{text}'"


def _relative(path: str) -> str:
    """Return a path from the working directory if it is inside it.

    With a separator always: installers take a bare word for the name of a package.
    """
    try:
        here = os.getcwd()
    except OSError:
        return path
    if path == here:
        return "."
    inside = path.removeprefix(os.path.join(here, ""))
    return path if inside == path else os.path.join(".", inside)
