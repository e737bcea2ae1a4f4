r"""Passwords among the words of a command, which only the program tells from other words.

A needle is the name of a program. From there the words are read up to the end of the command, once,
and every option that a program in it takes a password with is looked up in a table.
"""

import re
from functools import cache
from itertools import pairwise
from typing import Final

import msgspec

from steno.safe.credentials import cookie_spans
from steno.safe.family import Family, Match, Span, begins_word
from steno.safe.lazy_pattern import LazyPattern
from steno.safe.mask_text import MASK, covered_masks, mask_end, without_masks
from steno.safe.secret_values import is_placeholder

__all__ = ["COMMAND_LINES"]

_MOST_BYTES: Final = 4_000
_USER: Final = 32
_JOINED: Final = 4
"""Letters of a password that is written right behind its option; fewer are other options."""
_USER_AND_PASSWORD: Final = 2
"""Words behind `htpasswd -b` where the file is missing."""
_MOST_WORDS: Final = 80
_LONGEST: Final = 24
_WINDOW: Final = 1_000
_SPACE: Final = LazyPattern(rb"(?:[ \t]|\\{1,15}\r?\n|\\{3,15}n){1,40}+")
"""What parts two words: also a line that goes on behind a backslash."""
_PIECE: Final = (
    rb"(?:\\{0,7}\"[^\"\\\n]{0,600}+\\{0,7}\"|\\{0,7}'[^'\\\n]{0,600}+\\{0,7}'|[^\s\"'\\|;&<>()`]{1,600}+"
    rb"|\\{1,2}[^\snrt\"']|" + MASK + rb")"
)
_WORD: Final = LazyPattern(_PIECE + rb"{1,9}+")
"""A word of a command. A mask is a part of one, else a command would end where it was masked."""


class _Program(msgspec.Struct, frozen=True):
    """The options with which a program takes a password."""

    next: tuple[bytes, ...] = ()
    """Options whose password is the next word."""
    joined: tuple[bytes, ...] = ()
    """Options whose password is the rest of the same word."""
    pair: tuple[bytes, ...] = ()
    """Options of a user and a password, joined by a sign."""
    sign: bytes = b":"
    cookie: tuple[bytes, ...] = ()
    needs: tuple[bytes, ...] = ()
    """Words of which one has to stand before."""
    word: int = 0
    """The number of the word behind the needed one that is a password."""


_MYSQL: Final = _Program(joined=(b"-p",))
_LDAP: Final = _Program(next=(b"-w",), joined=(b"-w",))
_MONGO: Final = _Program(next=(b"-p",), joined=(b"-p",))
_LOGIN: Final = _Program(next=(b"-p",), joined=(b"-p",), needs=(b"login",))
_ARCHIVE: Final = _Program(joined=(b"-p",))
_CAPITAL: Final = _Program(next=(b"-P",), joined=(b"-P",))
_SMB: Final = _Program(pair=(b"-U", b"--user"), sign=b"%")
_PROGRAMS: Final[dict[bytes, _Program]] = {
    b"curl": _Program(
        pair=(b"-u", b"--user", b"-U", b"--proxy-user"),
        next=(b"--pass", b"--proxy-pass", b"--tlspassword", b"--oauth2-bearer", b"--key-pass"),
        cookie=(b"-b", b"--cookie"),
    ),
    b"http": _Program(pair=(b"-a", b"--auth")),
    b"https": _Program(pair=(b"-a", b"--auth")),
    b"xh": _Program(pair=(b"-a", b"--auth")),
    b"wget": _Program(
        next=(b"--password", b"--http-password", b"--ftp-password", b"--proxy-password")
    ),
    b"mysql": _MYSQL,
    b"mysqldump": _MYSQL,
    b"mysqladmin": _MYSQL,
    b"mysqlimport": _MYSQL,
    b"mysqlcheck": _MYSQL,
    b"mysqlsh": _MYSQL,
    b"mycli": _Program(joined=(b"-p",), next=(b"-p",)),
    b"mariadb": _MYSQL,
    b"mariadb-dump": _MYSQL,
    b"mariadb-admin": _MYSQL,
    b"sshpass": _Program(next=(b"-p",), joined=(b"-p",)),
    b"redis-cli": _Program(next=(b"-a", b"--pass")),
    b"valkey-cli": _Program(next=(b"-a", b"--pass")),
    b"mongo": _MONGO,
    b"mongosh": _MONGO,
    b"mongodump": _MONGO,
    b"mongorestore": _MONGO,
    b"mongoexport": _MONGO,
    b"mongoimport": _MONGO,
    b"docker": _LOGIN,
    b"podman": _LOGIN,
    b"nerdctl": _LOGIN,
    b"buildah": _LOGIN,
    b"helm": _LOGIN,
    b"oras": _LOGIN,
    b"crane": _LOGIN,
    b"skopeo": _Program(
        pair=(b"--creds", b"--src-creds", b"--dest-creds"),
        next=(b"-p",),
        needs=(b"login", b"copy", b"inspect", b"sync"),
    ),
    b"az": _LOGIN,
    b"oc": _LOGIN,
    b"cf": _Program(next=(b"-p",), needs=(b"login", b"auth")),
    b"snowsql": _Program(),
    b"ldapsearch": _LDAP,
    b"ldapmodify": _LDAP,
    b"ldapadd": _LDAP,
    b"ldapdelete": _LDAP,
    b"ldappasswd": _Program(next=(b"-w", b"-s", b"-a")),
    b"ldapwhoami": _LDAP,
    b"htpasswd": _Program(
        needs=(
            b"-b",
            b"-cb",
            b"-bc",
            b"-nb",
            b"-bn",
            b"-bB",
            b"-Bb",
            b"-cbB",
            b"-nbB",
            b"-nbBC",
            b"-bnB",
            b"-Bbn",
            b"-Bbc",
        ),
    ),
    b"openssl": _Program(next=(b"-k", b"-K")),
    b"unzip": _CAPITAL,
    b"zip": _CAPITAL,
    b"7z": _ARCHIVE,
    b"7za": _ARCHIVE,
    b"7zz": _ARCHIVE,
    b"7zr": _ARCHIVE,
    b"rar": _Program(joined=(b"-p", b"-hp")),
    b"unrar": _ARCHIVE,
    b"sqlcmd": _CAPITAL,
    b"bcp": _CAPITAL,
    b"isql": _CAPITAL,
    b"tsql": _CAPITAL,
    b"mosquitto_pub": _CAPITAL,
    b"mosquitto_sub": _CAPITAL,
    b"ipmitool": _CAPITAL,
    b"smbclient": _SMB,
    b"rpcclient": _SMB,
    b"winexe": _SMB,
    b"smbmap": _Program(next=(b"-p",)),
    b"lftp": _Program(pair=(b"-u", b"--user"), sign=b","),
    b"ncftpput": _Program(next=(b"-p",)),
    b"xfreerdp": _Program(joined=(b"/p:",)),
    b"cmdkey": _Program(joined=(b"/pass:",)),
    b"rdesktop": _Program(next=(b"-p",)),
    b"plink": _Program(next=(b"-pw",)),
    b"pscp": _Program(next=(b"-pw",)),
    b"psexec": _Program(next=(b"-p",)),
    b"cqlsh": _Program(next=(b"-p",)),
    b"twine": _Program(next=(b"-p",)),
    b"influx": _Program(next=(b"-password",)),
    b"keytool": _Program(
        next=(b"-storepass", b"-keypass", b"-srcstorepass", b"-deststorepass", b"-new")
    ),
    b"jarsigner": _Program(next=(b"-storepass", b"-keypass")),
    b"ssh-keygen": _Program(next=(b"-N", b"-P")),
    b"rabbitmqctl": _Program(word=2, needs=(b"add_user", b"change_password", b"authenticate_user")),
    b"rabbitmqadmin": _Program(next=(b"-p",)),
    b"ngrok": _Program(word=1, needs=(b"authtoken", b"add-authtoken")),
    b"doctl": _Program(next=(b"-t",)),
    b"vault": _Program(word=1, needs=(b"login",)),
    b"wpa_passphrase": _Program(word=2, needs=(b"wpa_passphrase",)),
    b"net": _Program(),
    b"sqlplus": _Program(),
    b"kubectl": _Program(),
    b"jenkins-cli.jar": _Program(pair=(b"-auth",)),
    b"snmpwalk": _Program(next=(b"-A", b"-X", b"-c")),
    b"nmcli": _Program(next=(b"password", b"wifi-sec.psk", b"802-11-wireless-security.psk")),
    b"pdftk": _Program(next=(b"user_pw", b"owner_pw", b"input_pw")),
    b"security": _Program(
        next=(b"-w", b"-p"),
        needs=(
            b"add-generic-password",
            b"add-internet-password",
            b"unlock-keychain",
            b"create-keychain",
        ),
    ),
    b"echo": _Program(),
    b"printf": _Program(),
}
_ORACLE: Final = LazyPattern(rb"[A-Za-z][A-Za-z0-9_$#]{0,30}/(?P<secret>[^\s@/\"']{2,64})@")
_LITERAL: Final = LazyPattern(rb"--from-literal=?[A-Za-z0-9_.-]{1,64}=(?P<secret>.{3,})", re.DOTALL)
_PASS_WORD: Final = LazyPattern(rb"(?P<head>pass:)(?P<secret>.{2,})", re.DOTALL)
_STDIN: Final = LazyPattern(
    rb"[ ]{0,4}\|[ ]{0,4}(?:sudo[ ]{1,4}(?:-[A-Za-z]{1,6}[ ]{1,4}(?:[A-Za-z0-9_.#][A-Za-z0-9_.-]{0,31}[ ]{1,4})?){0,4}?(?:-[A-Za-z]{0,6}S|--stdin)|[^|;&\n]{0,120}?--?password-stdin|(?:sudo )?chpasswd|(?:sudo )?passwd --stdin|smbpasswd -s|[^|;&\n]{0,120}?--passphrase-fd 0|[^|;&\n]{0,80}?--with-token)"
)


class _Part(msgspec.Struct, frozen=True):
    """A word of a command, without its quotes."""

    text: bytes
    """What it says; masks in it are covered."""
    begin: int
    end: int


_QUOTED: Final = LazyPattern(rb"(\\{0,7}[\"'])(.*?)\1\Z", re.DOTALL)


def _part(data: bytes, begin: int, end: int) -> _Part:
    text = covered_masks(data[begin:end])
    found = _QUOTED.match(text)
    if found is None:
        return _Part(text, begin, end)
    return _Part(found[2], begin + found.start(2), begin + found.end(2))


@cache
def _marks(name: bytes) -> tuple[bytes, ...]:
    """Return what has to stand somewhere behind the name of a program, else it takes no password."""
    if name in (b"echo", b"printf"):
        return b"sudo ", b"stdin", b"chpasswd", b"--with-token", b"passphrase-fd", b"smbpasswd"
    special = {
        b"net": (b"use", b"USE"),
        b"sqlplus": (b"@",),
        b"kubectl": (b"-literal",),
        b"openssl": (b"pass:", b" -k ", b" -K "),
    }
    if name in special:
        return special[name]
    program = _PROGRAMS.get(name, _Program())
    options = (*program.next, *program.joined, *program.pair, *program.cookie)
    return tuple(b" " + each for each in options) or program.needs


def _command_at(data: bytes, place: int) -> Match | None:
    """Read the words of a command, and find the passwords among them."""
    if not begins_word(data, place) or data[place - 1 : place] in (b"-", b"."):
        return None
    name = data[place : place + _LONGEST].partition(b" ")[0].removesuffix(b".exe")
    window = data[place : place + _WINDOW]
    if not any(mark in window for mark in _marks(name)):
        return None
    walk = _Walk(data, _Part(name, place, place + len(name)))
    end = walk.run(place)
    return Match(tuple(walk.spans), end)


class _Walk:
    """Goes through the words of one command, once."""

    def __init__(self, data: bytes, program: _Part) -> None:
        self._data = data
        self.spans: list[Span] = []
        self._start(program)

    def _start(self, program: _Part) -> None:
        """Go on with the words of a program, which is the first of them."""
        self._name = program.text
        self._program = _PROGRAMS[program.text]
        self._words = [program]
        self._ready = not self._program.needs or program.text in self._program.needs
        self._behind = 0
        """Words behind the one that was needed."""

    def run(self, place: int) -> int:
        """Read from a place; return where the command ends."""
        data, limit = self._data, place + _MOST_BYTES
        for _ in range(_MOST_WORDS):
            word = _WORD.match(data, place) if place < limit else None
            if word is None:
                break
            part = _part(data, *word.span())
            self._take(part)
            place = word.end()
            gap = _SPACE.match(data, place)
            if gap is None:
                break
            place = gap.end()
        self._finish(place)
        return place

    def _take(self, part: _Part) -> None:
        base = part.text.rpartition(b"/")[2].removesuffix(b".exe")
        is_value = part.text.startswith(b"-") or self._words[-1].text in self._program.next
        if base in _PROGRAMS and not is_value:
            self._finish(part.begin)
            self._start(_Part(base, part.begin, part.end))
            return
        if self._ready:
            self._examine(part, self._program)
        else:
            self._ready = part.text in self._program.needs
        self._words.append(part)

    def _examine(self, part: _Part, program: _Program) -> None:
        previous, text = self._words[-1].text, part.text
        if not text.startswith(b"-"):
            self._behind += 1
            if self._behind == program.word:
                self._add(part.begin, part.end)
        self._examine_option(part, previous, program)
        if self._name == b"openssl" and (found := _PASS_WORD.match(text)):
            self._add(part.begin + found.start("secret"), part.end)
        elif self._name == b"kubectl" and (found := _literal(previous, text)):
            self._add(part.begin + found, part.end)
        elif self._name == b"sqlplus" and (found := _ORACLE.match(text)):
            self._add(part.begin + found.start("secret"), part.begin + found.end("secret"))

    def _examine_option(self, part: _Part, previous: bytes, program: _Program) -> None:
        option, _, rest = part.text.partition(b"=")
        if previous in program.next and not _is_option(part.text):
            self._add(part.begin, part.end)
        elif option.startswith(b"--") and option in program.next:
            self._add(part.end - len(rest), part.end)
        elif previous in program.pair:
            self._pair(part, 0, program.sign)
        elif previous in program.cookie:
            self._cookies(part, 0)
        else:
            self._examine_joined(part, program)

    def _examine_joined(self, part: _Part, program: _Program) -> None:
        text = part.text
        for option in program.joined:
            if text.startswith(option):
                inner = _part(self._data, part.begin + len(option), part.end)
                if len(inner.text) >= _JOINED:
                    self._add(inner.begin, inner.end)
                return
        for option in (*program.pair, *program.cookie):
            whole = option + b"=" * option.startswith(b"--")
            if text.startswith(whole):
                if option in program.cookie:
                    self._cookies(part, len(whole))
                else:
                    self._pair(part, len(whole), program.sign)
                return

    def _pair(self, part: _Part, skip: int, sign: bytes) -> None:
        """Find the password behind a user and a sign; without a sign nothing is left of the word."""
        inner = _part(self._data, part.begin + skip, part.end)
        user, _, _ = inner.text.partition(sign)
        self._add(inner.begin + len(user) + 1, inner.end)

    def _cookies(self, part: _Part, skip: int) -> None:
        inner = _part(self._data, part.begin + skip, part.end)
        for begin, end in cookie_spans(inner.text, inner.begin, certain=True):
            self._add(begin, end)

    def _finish(self, place: int) -> None:
        """End a command: what only its last words say."""
        plain = [word for word in self._words[1:] if not word.text.startswith(b"-")]
        if self._name == b"htpasswd" and self._ready:
            self._htpasswd()
        elif self._name == b"net":
            self._net(plain)
        elif self._name in (b"echo", b"printf") and plain:
            self._echo(plain[-1], place)

    def _htpasswd(self) -> None:
        """Find the password by its place: behind file and user, or behind the user with `-n`."""
        options: list[bytes] = []
        plain: list[_Part] = []
        for previous, word in pairwise(self._words):
            if word.text.startswith(b"-"):
                if not plain:
                    options.append(word.text)
            elif plain or not (previous.text in options and previous.text.endswith((b"C", b"r"))):
                # Behind `-C` and `-r` stands a number.
                plain.append(word)
        without_file = any(b"n" in option for option in options)
        # With `-n`, who names a file all the same writes the password behind it and the user.
        first = 1 if without_file or len(plain) == _USER_AND_PASSWORD else 2
        for word in plain[first:3]:
            self._add(word.begin, word.end)

    def _net(self, plain: list[_Part]) -> None:
        texts = [word.text.lower() for word in plain]
        if texts[:1] == [b"user"]:
            for word in plain[2:3]:
                if not word.text.startswith(b"/"):
                    self._add(word.begin, word.end)
        elif texts[:1] == [b"use"]:
            for where, word in pairwise(plain):
                named = where.text.lower().startswith(b"/user:") or b"\\\\" in where.text
                if named and not word.text.startswith((b"/", b"\\")):
                    self._add(word.begin, word.end)

    def _echo(self, last: _Part, place: int) -> None:
        """Find what is written to a program that reads a password."""
        if _STDIN.match(self._data, place) is None:
            return
        user, colon, _ = last.text.partition(b":")
        begin = last.begin + len(user) + 1 if colon and len(user) <= _USER else last.begin
        self._add(begin, last.end)

    def _add(self, begin: int, end: int) -> None:
        """Take a part of a word for a password, unless it stands for one or begins with a mask."""
        text = self._data[begin:end]
        if mask_end(text, 0) or is_placeholder(without_masks(text)) or text.startswith(b"@"):
            return
        self.spans.append((begin, end))


def _literal(previous: bytes, text: bytes) -> int:
    if previous == b"--from-literal" and b"=" in text:
        return text.index(b"=") + 1
    found = _LITERAL.match(text)
    return found.start("secret") if found else 0


def _is_option(text: bytes) -> bool:
    return text.startswith(b"-") and len(text) < _LONGEST and text[1:].replace(b"-", b"").isalpha()


COMMAND_LINES: Final = (
    Family(
        "command-password",
        "passwords among the words of a command",
        tuple(name + end for name in _PROGRAMS for end in (b" ", b".exe ")),
        _command_at,
        tuple(b"mysql sshp curl".split()),
    ),
)
