"""What the tests of confinement share."""

import os
import sys
from collections.abc import Iterator

import pytest
from tests.campaign.size import SIZE
from tests.permissions.sandbox.boxes import MECHANISMS, NOBODY, Box, World, folder_for, python_for_everyone

from steno.permissions.sandbox.mechanisms import probe_sandbox


def _box(mechanism: str, *, administrator: bool) -> Iterator[Box]:
    choice = "" if mechanism == "both" else mechanism
    support = probe_sandbox({"STENO_CONFINEMENT": choice})
    if not support.usable:
        pytest.skip(support.summary)
    if mechanism == "both" and not {"mount", "seccomp"} < {*support.layers}:
        pytest.skip("this machine has no two mechanisms")
    root = os.geteuid() == 0
    if administrator and not root:
        pytest.skip("only an administrator can test as one")
    python = sys.executable if administrator or not root else python_for_everyone()
    if python is None:
        pytest.skip("no Python here that another user can run")
    box = Box(mechanism, NOBODY if root and not administrator else os.geteuid(), python)
    yield box
    box.close()


# The others take minutes: `make faults` has one of them, `make campaign` all.
_ALWAYS = {("both", True), ("both", False), ("namespaces", True), ("landlock", False)}
_SMOKE = ("landlock-1", False)
_WAYS = [
    pytest.param(
        (mechanism, administrator),
        id=f"{mechanism}-{'root' if administrator else 'user'}",
        marks=() if (mechanism, administrator) in _ALWAYS else pytest.mark.faults,
    )
    for mechanism in MECHANISMS
    for administrator in (True, False)
    if SIZE >= 1 or (mechanism, administrator) in {*_ALWAYS, _SMOKE}
]


@pytest.fixture(scope="session", params=_WAYS)
def box(request: pytest.FixtureRequest) -> Iterator[Box]:
    """Each mechanism, as an administrator and as another user."""
    mechanism, administrator = request.param
    yield from _box(mechanism, administrator=administrator)


@pytest.fixture
def world(box: Box) -> Iterator[World]:
    """A project that belongs to the user of the box."""
    for base in folder_for():
        yield World(base, box)
