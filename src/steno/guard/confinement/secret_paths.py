"""Well-known places of secrets, which are denied inside working folders by default."""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final

import msgspec

from steno.errors import BadRequest
from steno.guard.confinement.policy import Confinement, ConfinementError
from steno.guard.paths import SECRET_FILES, SECRET_FOLDERS, Place, inside_parts
from steno.store.places import config_dir, home_dir

# Below a home folder.
_IN_HOME: Final = (
    ".azure",
    ".bash_history",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".claude.json",
    ".claude/.credentials.json",
    ".config/age",
    ".config/chromium",
    ".config/doctl",
    ".config/gcloud",
    ".config/gh",
    ".config/git/credentials",
    ".config/glab-cli",
    ".config/google-chrome",
    ".config/hub",
    ".config/op",
    ".config/rclone",
    ".config/sops",
    ".gem/credentials",
    ".gradle/gradle.properties",
    ".local/share/keyrings",
    ".m2/settings.xml",
    ".mozilla",
    ".my.cnf",
    ".node_repl_history",
    ".npmrc",
    ".password-store",
    ".pgpass",
    ".psql_history",
    ".python_history",
    ".terraform.d/credentials.tfrc.json",
    ".thunderbird",
    ".vault-token",
    ".yarnrc.yml",
    ".zsh_history",
    "Library/Keychains",
)
_SYSTEM: Final = (
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/krb5.keytab",
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/ssh",
    "/etc/ssl/private",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/run/credentials",
    "/run/secrets",
    "/run/user",
    "/var/lib/docker",
    "/var/lib/kubelet",
    "/var/lib/private",
    "/var/run/secrets",
    "/var/spool/cron",
)


def with_secrets_denied(policy: Confinement) -> Confinement:
    """Return a policy that also denies well-known places of secrets.

    Raises:
        ConfinementError: a working folder is itself such a place.
    """
    roots = {root: Place.of(root) for root in (*policy.readable, *policy.writable)}
    for root, place in roots.items():
        for parts in place.all_parts:
            name = next((part for part in parts if part in SECRET_FOLDERS), "")
            if name:
                raise ConfinementError(f"{root!r} is inside {name}, which holds secrets")
    denied = dict.fromkeys(policy.denied)
    for path in (*_candidates(roots), *_beside(policy.programs)):
        if os.path.lexists(path):
            denied[path] = None
    return msgspec.structs.replace(policy, denied=tuple(denied))


def _candidates(roots: dict[str, Place]) -> Iterator[str]:
    """Yield places of secrets that may be inside the working folders."""
    for root in roots:
        for name in sorted(SECRET_FOLDERS | SECRET_FILES):
            yield os.path.join(root, name)
    for home in dict.fromkeys(_homes(roots.values())):
        place = Place.of(home)
        if any(_overlap(place, root) for root in roots.values()):
            for name in sorted({*SECRET_FOLDERS, *SECRET_FILES, *_IN_HOME}):
                yield os.path.join(home, name)
    with suppress(BadRequest):
        yield os.path.join(config_dir(), ".credentials.json")
    yield from _SYSTEM


def _beside(programs: tuple[str, ...]) -> Iterator[str]:
    for folder in programs:
        for name in sorted(SECRET_FOLDERS | SECRET_FILES):
            yield os.path.join(folder, name)


def _overlap(one: Place, other: Place) -> bool:
    return (
        inside_parts(one.real_parts, other.real_parts) is not None
        or inside_parts(other.real_parts, one.real_parts) is not None
    )


def _homes(roots: Iterable[Place]) -> Iterator[str]:
    """Yield the home folders that may have to do with some working folders."""
    with suppress(BadRequest):
        yield home_dir()
    yield "/root"
    for folder in ("/home", "/Users"):
        top = Place.of(folder).real_parts
        for root in roots:
            below = inside_parts(root.real_parts, top)
            if below:
                yield os.path.join(folder, below[0])
            elif below is not None or inside_parts(top, root.real_parts) is not None:
                with suppress(OSError):
                    yield from (os.path.join(folder, name) for name in os.listdir(folder))
