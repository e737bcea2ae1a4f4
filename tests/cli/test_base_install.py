"""Reading sessions without the extras: every command works, or says in one line what to install."""

import http.client
import os
import shutil
import signal
import subprocess
import sys
import venv
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager, suppress
from importlib.metadata import distribution
from pathlib import Path
from typing import TypeAlias
from urllib.parse import urlsplit

import pytest
from tests.cli import base_install

from steno.demo.recording import DemoReport

ROOT = Path(__file__).resolve().parents[2]
READING = [
    *("--version", "--help", "ls --demo", "show --demo last", "brief --demo last"),
    *("search --demo tag", "usage --demo", "files --demo", "compare --demo 7859 4582"),
    *("export --demo last --format markdown", "export --demo last -o page.html"),
    *("export --demo last --format steps -o steps/", "sync --demo", "repair --demo last"),
    *("archive --demo last", "relocate --help", "tail --help", "drift --demo"),
    *("mcp --tools", "acp --editor", "chat --help", "acp --help", "mcp --help", "replay --help"),
    *("--completion bash", "blame --help", "explore --help"),
]
FINDING = ["check --demo", "doctor --demo"]
REFUSED = {
    "chat": "agent",
    "chat -p hello": "agent",
    "chat --demo": "agent",
    "chat -c": "agent",
    "acp": "agent",
    "mcp": "mcp",
    "export --demo last --format parquet -o tables/": "parquet",
}

Run: TypeAlias = Callable[..., "subprocess.CompletedProcess[str]"]


def runner(*command: str) -> Run:
    """Return a function that runs steno in the test's own home."""

    def run(line: str, **env: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [*command, *line.split()],
            check=False,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            text=True,
            env={**os.environ, **env},
        )

    return run


@pytest.fixture
def hidden(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run steno with all modules hidden that a base install does not have."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return runner(sys.executable, str(Path(base_install.__file__)))


def assert_refused(ran: "subprocess.CompletedProcess[str]", extra: str) -> None:
    assert ran.returncode == 2, ran.stderr
    assert ran.stdout == ""
    assert ran.stderr.count("\n") == 1
    assert f"needs the extra `{extra}`: " in ran.stderr
    assert ran.stderr.endswith(f"[{extra}]'\n")
    assert "'steno[" not in ran.stderr


@pytest.mark.usefixtures("demo")
@pytest.mark.parametrize("line", READING)
def test_commands_that_read_need_no_extra(hidden: Run, line: str) -> None:
    ran = hidden(line)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout
    assert "Traceback" not in ran.stderr
    assert "internal error" not in ran.stderr


@pytest.mark.usefixtures("demo")
@pytest.mark.parametrize("line", FINDING)
def test_checks_that_find_something_need_no_extra(hidden: Run, line: str) -> None:
    ran = hidden(line)
    assert (ran.returncode, ran.stderr) == (1, "")


@pytest.mark.usefixtures("demo")
@pytest.mark.parametrize("line", REFUSED)
def test_a_command_without_its_extra_says_how_to_install_it(hidden: Run, line: str) -> None:
    assert_refused(hidden(line), REFUSED[line])


def test_every_command_is_listed_and_completed(hidden: Run) -> None:
    shown = hidden("--help").stdout
    words = hidden("", _STENO_COMPLETE="bash_complete", COMP_WORDS="steno ", COMP_CWORD="1").stdout
    for name in ("chat", "acp", "mcp", "replay"):
        assert f"  {name} " in shown
        assert f"plain,{name}\n" in words
    options = {"_STENO_COMPLETE": "bash_complete", "COMP_WORDS": "steno chat --mod", "COMP_CWORD": "2"}
    assert hidden("", **options).stdout == "plain,--model\n"


def test_the_library_needs_no_extra(hidden: Run, demo: DemoReport) -> None:
    _ = hidden, demo
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import base_install; base_install.hide()\n"
        "import steno; print(len(steno.open('last').turns()))"
    )
    folder = str(Path(base_install.__file__).parent)
    run = runner(sys.executable, "-c", code, folder)
    root = str(Path(os.environ["STENO_HOME"]) / "demo")
    assert run("", CLAUDE_CONFIG_DIR=root).stdout == "1\n"


@contextmanager
def serving(*command: str) -> Generator[str]:
    """Start a server; give the first line that it prints."""
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)


def status_of(address: str) -> int:
    """Return the status of the page that an address leads to."""
    parts = urlsplit(address)
    with closing(http.client.HTTPConnection(parts.netloc, timeout=30)) as connection:
        connection.request("GET", f"{parts.path}?{parts.query}")
        entered = connection.getresponse()
        entered.read()
        cookie = (entered.getheader("set-cookie") or "").partition(";")[0]
        while True:
            connection.request("GET", "/", headers={"cookie": cookie})
            answer = connection.getresponse()
            answer.read()
            if answer.status != 503:  # the index is made for the first time
                return answer.status


@pytest.mark.usefixtures("demo", "hidden")
def test_the_explorer_needs_no_extra() -> None:
    command = (sys.executable, str(Path(base_install.__file__)), "explore", "--demo", "--no-open")
    with serving(*command) as address:
        assert status_of(address) == 200


@pytest.mark.usefixtures("demo", "hidden")
def test_recorded_sessions_are_served_without_an_extra() -> None:
    command = (sys.executable, str(Path(base_install.__file__)), "replay", "--demo", "last")
    with serving(*command) as line:
        assert "recorded responses on http://127.0.0.1:" in line


# The same with a wheel in a fresh environment. Packages are taken from the environment that runs
# the tests, so that it needs no network.


def copy_package(name: str, to: Path) -> None:
    """Put the files of an installed package into another environment."""
    package = distribution(name)
    for file in package.files or ():
        if file.parts[0] == "..":
            continue  # a program, which nothing here runs
        source, target = Path(str(package.locate_file(file))), to / file
        target.parent.mkdir(parents=True, exist_ok=True)
        if not source.is_file():
            continue
        with suppress(FileExistsError):
            try:
                os.link(source, target)
            except OSError:
                shutil.copy2(source, target)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel and install it, with its base dependencies only; return the environment."""
    folder = tmp_path_factory.mktemp("base")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    options = ["--no-index", "--no-deps", "--no-cache-dir"]
    made = [*pip, "wheel", *options, "--no-build-isolation", "-w", str(folder), str(ROOT)]
    subprocess.run(made, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    home = folder / "env"
    venv.create(home, with_pip=False, symlinks=os.name != "nt")
    python = next(path for path in home.glob("*/python*") if path.stem == "python")
    asked = "import sysconfig; print(sysconfig.get_path('purelib'))"
    where = subprocess.run([python, "-c", asked], check=True, capture_output=True, text=True)
    for name in sorted(base_install.closure(base_install.base_requirements())):
        copy_package(name, Path(where.stdout.strip()))
    to = [*pip, "--python", str(python)]
    subprocess.run([*to, "install", *options, str(wheel)], check=True, capture_output=True)
    checked = subprocess.run([*to, "check"], check=False, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout
    return home


@pytest.mark.timeout(180)
@pytest.mark.usefixtures("demo")
def test_a_wheel_without_extras_reads_sessions(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    program = str(next(path for path in installed.glob("*/steno*") if path.stem == "steno"))
    steno = runner(program)
    for line in ("--version", "ls --demo", "show --demo last", "search --demo tag", "usage --demo"):
        ran = steno(line)
        assert (ran.returncode, ran.stderr) == (0, ""), line
        assert ran.stdout
    assert steno("check --demo").returncode == 1
    assert steno("export --demo last -o page.html").returncode == 0
    assert (tmp_path / "page.html").stat().st_size
    with serving(program, "explore", "--demo", "--no-open") as address:
        assert status_of(address) == 200
    for line, extra in REFUSED.items():
        ran = steno(line)
        assert_refused(ran, extra)
        (wheel,) = installed.parent.glob("*.whl")
        assert f"pip install '{wheel}[{extra}]'" in ran.stderr
