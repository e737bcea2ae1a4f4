"""Contents of the wheel and the sdist."""

import configparser
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAX_WHEEL_SIZE = 3_000_000


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build both packages from a copy of the sources, so that the checkout stays as it is."""
    directory = tmp_path_factory.mktemp("packages")
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(directory), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    return directory


@pytest.fixture(scope="module")
def wheel_names(packages: Path) -> list[str]:
    (wheel,) = packages.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def test_the_wheel_is_named_stenolog_and_small(packages: Path) -> None:
    (wheel,) = packages.glob("*.whl")
    assert wheel.name.startswith("stenolog-")
    assert wheel.name.endswith("-py3-none-any.whl")
    assert wheel.stat().st_size < MAX_WHEEL_SIZE


def test_the_wheel_has_the_package_with_its_data_files(wheel_names: list[str]) -> None:
    expected = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {"steno/py.typed", "steno/web/templates/sessions-row.html.j2"} <= expected
    packaged = {name for name in wheel_names if name.startswith("steno/")}
    assert packaged == expected


def test_the_wheel_has_nothing_but_the_package_its_metadata_and_shell_files(wheel_names: list[str]) -> None:
    tops = {name.split("/")[0] for name in wheel_names}
    (info,) = (top for top in tops if top.endswith(".dist-info"))
    assert tops == {"steno", info, info.replace(".dist-info", ".data")}
    shell_files = {name.split(".data/data/", 1)[1] for name in wheel_names if ".data/" in name}
    assert shell_files == {
        "share/man/man1/steno.1",
        "share/bash-completion/completions/steno",
        "share/zsh/site-functions/_steno",
        "share/fish/vendor_completions.d/steno.fish",
    }


def test_the_wheel_installs_both_commands(packages: Path) -> None:
    (wheel,) = packages.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/entry_points.txt"))
        entry_points = configparser.ConfigParser()
        entry_points.read_string(archive.read(name).decode())
    assert dict(entry_points["console_scripts"]) == {"steno": "steno.__main__:main", "stenolog": "steno.__main__:main"}


def test_the_sdist_has_what_the_tests_need(packages: Path) -> None:
    (sdist,) = packages.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    assert {"Makefile", "pyproject.toml", "README.md", "LICENSE", "tests/conftest.py", "src/steno/py.typed"} <= names
    assert {"requirements/dev.txt", "share/man/man1/steno.1", "tools/install.py"} <= names
    assert not [name for name in names if name.startswith((".git/", ".venv", "dist/"))]
