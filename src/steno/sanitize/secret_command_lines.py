"""Detects passwords among the words of a command, which look like any other argument.

A needle is the name of a program. The words from there to the end of the command are read once, and every option that
takes a password is looked up in a table.
"""

import re
from functools import cache
from itertools import pairwise
from typing import Final

import msgspec

from steno.sanitize.secret_credentials import cookie_value_spans
from steno.sanitize.secret_family import (
    MASK_PATTERN,
    LazyPattern,
    SecretFamily,
    SecretMatch,
    Span,
    cover_masks,
    find_mask_end,
    is_placeholder,
    remove_masks,
    starts_word,
)

_MAX_BYTES: Final = 4_000
_MAX_USER: Final = 32
_MIN_JOINED: Final = 4
"""Minimum length of a password attached to its option; shorter text is another option."""
_USER_AND_PASSWORD: Final = 2
"""Number of words after `htpasswd -b` if the file is missing."""
_MAX_WORDS: Final = 80
_MAX_NAME: Final = 24
_WINDOW: Final = 1_000
_SPACE: Final = LazyPattern(rb"(?:[ \t]|\\{1,15}\r?\n|\\{3,15}n){1,40}+")
"""Separator between words, including a line continuation."""
_PIECE: Final = (
    rb"(?:\\{0,7}\"[^\"\\\n]{0,600}+\\{0,7}\"|\\{0,7}'[^'\\\n]{0,600}+\\{0,7}'|[^\s\"'\\|;&<>()`]{1,600}+"
    rb"|\\{1,2}[^\snrt\"']|" + MASK_PATTERN + rb")"
)
_WORD: Final = LazyPattern(_PIECE + rb"{1,9}+")
"""A word of a command. A mask is part of a word, otherwise a masked command would end there."""


class _PasswordOptions(msgspec.Struct, frozen=True):
    """The options with which a program takes a password."""

    next: tuple[bytes, ...] = ()
    """Options whose password is the next word."""
    joined: tuple[bytes, ...] = ()
    """Options whose password is the rest of the same word."""
    pair: tuple[bytes, ...] = ()
    """Options with a user and a password, joined by a separator."""
    sign: bytes = b":"
    cookie: tuple[bytes, ...] = ()
    needs: tuple[bytes, ...] = ()
    """Words of which one must occur earlier."""
    word: int = 0
    """Position of the password after the required word."""


_MYSQL: Final = _PasswordOptions(joined=(b"-p",))
_LDAP: Final = _PasswordOptions(next=(b"-w",), joined=(b"-w",))
_MONGO: Final = _PasswordOptions(next=(b"-p",), joined=(b"-p",))
_LOGIN: Final = _PasswordOptions(next=(b"-p",), joined=(b"-p",), needs=(b"login",))
_ARCHIVE: Final = _PasswordOptions(joined=(b"-p",))
_CAPITAL: Final = _PasswordOptions(next=(b"-P",), joined=(b"-P",))
_SMB: Final = _PasswordOptions(pair=(b"-U", b"--user"), sign=b"%")
_PROGRAMS: Final[dict[bytes, _PasswordOptions]] = {
    b"curl": _PasswordOptions(
        pair=(b"-u", b"--user", b"-U", b"--proxy-user"),
        next=(b"--pass", b"--proxy-pass", b"--tlspassword", b"--oauth2-bearer", b"--key-pass"),
        cookie=(b"-b", b"--cookie"),
    ),
    b"http": _PasswordOptions(pair=(b"-a", b"--auth")),
    b"https": _PasswordOptions(pair=(b"-a", b"--auth")),
    b"xh": _PasswordOptions(pair=(b"-a", b"--auth")),
    b"wget": _PasswordOptions(next=(b"--password", b"--http-password", b"--ftp-password", b"--proxy-password")),
    **dict.fromkeys(b"mysql mysqldump mysqladmin mysqlimport mysqlcheck mysqlsh".split(), _MYSQL),
    b"mycli": _PasswordOptions(joined=(b"-p",), next=(b"-p",)),
    **dict.fromkeys(b"mariadb mariadb-dump mariadb-admin".split(), _MYSQL),
    b"sshpass": _PasswordOptions(next=(b"-p",), joined=(b"-p",)),
    b"redis-cli": _PasswordOptions(next=(b"-a", b"--pass")),
    b"valkey-cli": _PasswordOptions(next=(b"-a", b"--pass")),
    **dict.fromkeys(b"mongo mongosh mongodump mongorestore mongoexport mongoimport".split(), _MONGO),
    **dict.fromkeys(b"docker podman nerdctl buildah helm oras crane".split(), _LOGIN),
    b"skopeo": _PasswordOptions(
        pair=(b"--creds", b"--src-creds", b"--dest-creds"),
        next=(b"-p",),
        needs=(b"login", b"copy", b"inspect", b"sync"),
    ),
    b"az": _LOGIN,
    b"oc": _LOGIN,
    b"cf": _PasswordOptions(next=(b"-p",), needs=(b"login", b"auth")),
    b"snowsql": _PasswordOptions(),
    **dict.fromkeys(b"ldapsearch ldapmodify ldapadd ldapdelete".split(), _LDAP),
    b"ldappasswd": _PasswordOptions(next=(b"-w", b"-s", b"-a")),
    b"ldapwhoami": _LDAP,
    b"htpasswd": _PasswordOptions(needs=tuple(b"-b -cb -bc -nb -bn -bB -Bb -cbB -nbB -nbBC -bnB -Bbn -Bbc".split())),
    b"openssl": _PasswordOptions(next=(b"-k", b"-K")),
    b"unzip": _CAPITAL,
    b"zip": _CAPITAL,
    **dict.fromkeys(b"7z 7za 7zz 7zr".split(), _ARCHIVE),
    b"rar": _PasswordOptions(joined=(b"-p", b"-hp")),
    b"unrar": _ARCHIVE,
    **dict.fromkeys(b"sqlcmd bcp isql tsql mosquitto_pub mosquitto_sub ipmitool".split(), _CAPITAL),
    **dict.fromkeys(b"smbclient rpcclient winexe".split(), _SMB),
    b"smbmap": _PasswordOptions(next=(b"-p",)),
    b"lftp": _PasswordOptions(pair=(b"-u", b"--user"), sign=b","),
    b"ncftpput": _PasswordOptions(next=(b"-p",)),
    b"xfreerdp": _PasswordOptions(joined=(b"/p:",)),
    b"cmdkey": _PasswordOptions(joined=(b"/pass:",)),
    b"rdesktop": _PasswordOptions(next=(b"-p",)),
    b"plink": _PasswordOptions(next=(b"-pw",)),
    b"pscp": _PasswordOptions(next=(b"-pw",)),
    b"psexec": _PasswordOptions(next=(b"-p",)),
    b"cqlsh": _PasswordOptions(next=(b"-p",)),
    b"twine": _PasswordOptions(next=(b"-p",)),
    b"influx": _PasswordOptions(next=(b"-password",)),
    b"keytool": _PasswordOptions(next=(b"-storepass", b"-keypass", b"-srcstorepass", b"-deststorepass", b"-new")),
    b"jarsigner": _PasswordOptions(next=(b"-storepass", b"-keypass")),
    b"ssh-keygen": _PasswordOptions(next=(b"-N", b"-P")),
    b"rabbitmqctl": _PasswordOptions(word=2, needs=(b"add_user", b"change_password", b"authenticate_user")),
    b"rabbitmqadmin": _PasswordOptions(next=(b"-p",)),
    b"ngrok": _PasswordOptions(word=1, needs=(b"authtoken", b"add-authtoken")),
    b"doctl": _PasswordOptions(next=(b"-t",)),
    b"vault": _PasswordOptions(word=1, needs=(b"login",)),
    b"wpa_passphrase": _PasswordOptions(word=2, needs=(b"wpa_passphrase",)),
    b"net": _PasswordOptions(),
    b"sqlplus": _PasswordOptions(),
    b"kubectl": _PasswordOptions(),
    b"jenkins-cli.jar": _PasswordOptions(pair=(b"-auth",)),
    b"snmpwalk": _PasswordOptions(next=(b"-A", b"-X", b"-c")),
    b"nmcli": _PasswordOptions(next=(b"password", b"wifi-sec.psk", b"802-11-wireless-security.psk")),
    b"pdftk": _PasswordOptions(next=(b"user_pw", b"owner_pw", b"input_pw")),
    b"security": _PasswordOptions(
        next=(b"-w", b"-p"),
        needs=(b"add-generic-password", b"add-internet-password", b"unlock-keychain", b"create-keychain"),
    ),
    b"echo": _PasswordOptions(),
    b"printf": _PasswordOptions(),
}
_ORACLE: Final = LazyPattern(rb"[A-Za-z][A-Za-z0-9_$#]{0,30}/(?P<secret>[^\s@/\"']{2,64})@")
_KUBECTL_LITERAL: Final = LazyPattern(rb"--from-literal=?[A-Za-z0-9_.-]{1,64}=(?P<secret>.{3,})", re.DOTALL)
_PASS_WORD: Final = LazyPattern(rb"(?P<head>pass:)(?P<secret>.{2,})", re.DOTALL)
_PIPE_TO_PASSWORD_READER: Final = LazyPattern(
    rb"[ ]{0,4}\|[ ]{0,4}(?:sudo[ ]{1,4}(?:-[A-Za-z]{1,6}[ ]{1,4}(?:[A-Za-z0-9_.#][A-Za-z0-9_.-]{0,31}[ ]{1,4})?){0,4}?(?:-[A-Za-z]{0,6}S|--stdin)|[^|;&\n]{0,120}?--?password-stdin|(?:sudo )?chpasswd|(?:sudo )?passwd --stdin|smbpasswd -s|[^|;&\n]{0,120}?--passphrase-fd 0|[^|;&\n]{0,80}?--with-token)"
)


class _CommandWord(msgspec.Struct, frozen=True):
    """A word of a command, without its quotes."""

    text: bytes
    """Text of the word, with masks covered."""
    begin: int
    end: int


_QUOTED: Final = LazyPattern(rb"(\\{0,7}[\"'])(.*?)\1\Z", re.DOTALL)


def _command_word(data: bytes, begin: int, end: int) -> _CommandWord:
    text = cover_masks(data[begin:end])
    match = _QUOTED.match(text)
    if match is None:
        return _CommandWord(text, begin, end)
    return _CommandWord(match[2], begin + match.start(2), begin + match.end(2))


@cache
def _required_texts(name: bytes) -> tuple[bytes, ...]:
    """Return texts of which one must follow the name of a program for it to take a password."""
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
    program = _PROGRAMS.get(name, _PasswordOptions())
    options = (*program.next, *program.joined, *program.pair, *program.cookie)
    return tuple(b" " + option for option in options) or program.needs


def _match_command(data: bytes, place: int) -> SecretMatch | None:
    """Find the passwords among the words of a command."""
    if not starts_word(data, place) or data[place - 1 : place] in (b"-", b"."):
        return None
    name = data[place : place + _MAX_NAME].partition(b" ")[0].removesuffix(b".exe")
    window = data[place : place + _WINDOW]
    if not any(required in window for required in _required_texts(name)):
        return None
    scanner = _CommandScanner(data, _CommandWord(name, place, place + len(name)))
    end = scanner.scan(place)
    return SecretMatch(tuple(scanner.spans), end)


class _CommandScanner:
    """Scans the words of one command once."""

    def __init__(self, data: bytes, program: _CommandWord) -> None:
        self._data = data
        self.spans: list[Span] = []
        self._start_program(program)

    def _start_program(self, program: _CommandWord) -> None:
        """Start a new program at its first word."""
        self._name = program.text
        self._program = _PROGRAMS[program.text]
        self._words = [program]
        self._is_ready = not self._program.needs or program.text in self._program.needs
        self._words_after_needed = 0
        """Number of words after the required one."""

    def scan(self, place: int) -> int:
        """Scan from a position; return the end of the command."""
        data, limit = self._data, place + _MAX_BYTES
        for _ in range(_MAX_WORDS):
            word = _WORD.match(data, place) if place < limit else None
            if word is None:
                break
            part = _command_word(data, *word.span())
            self._read_word(part)
            place = word.end()
            gap = _SPACE.match(data, place)
            if gap is None:
                break
            place = gap.end()
        self._finish_command(place)
        return place

    def _read_word(self, part: _CommandWord) -> None:
        base = part.text.rpartition(b"/")[2].removesuffix(b".exe")
        is_value = part.text.startswith(b"-") or self._words[-1].text in self._program.next
        if base in _PROGRAMS and not is_value:
            self._finish_command(part.begin)
            self._start_program(_CommandWord(base, part.begin, part.end))
            return
        if self._is_ready:
            self._examine_word(part, self._program)
        else:
            self._is_ready = part.text in self._program.needs
        self._words.append(part)

    def _examine_word(self, part: _CommandWord, program: _PasswordOptions) -> None:
        previous, text = self._words[-1].text, part.text
        if not text.startswith(b"-"):
            self._words_after_needed += 1
            if self._words_after_needed == program.word:
                self._add_span(part.begin, part.end)
        self._examine_option(part, previous, program)
        if self._name == b"openssl" and (match := _PASS_WORD.match(text)):
            self._add_span(part.begin + match.start("secret"), part.end)
        elif self._name == b"kubectl" and (match := _literal_start(previous, text)):
            self._add_span(part.begin + match, part.end)
        elif self._name == b"sqlplus" and (match := _ORACLE.match(text)):
            self._add_span(part.begin + match.start("secret"), part.begin + match.end("secret"))

    def _examine_option(self, part: _CommandWord, previous: bytes, program: _PasswordOptions) -> None:
        option, _, rest = part.text.partition(b"=")
        if previous in program.next and not _is_option(part.text):
            self._add_span(part.begin, part.end)
        elif option.startswith(b"--") and option in program.next:
            self._add_span(part.end - len(rest), part.end)
        elif previous in program.pair:
            self._add_pair(part, 0, program.sign)
        elif previous in program.cookie:
            self._add_cookies(part, 0)
        else:
            self._examine_joined(part, program)

    def _examine_joined(self, part: _CommandWord, program: _PasswordOptions) -> None:
        text = part.text
        for option in program.joined:
            if text.startswith(option):
                inner = _command_word(self._data, part.begin + len(option), part.end)
                if len(inner.text) >= _MIN_JOINED:
                    self._add_span(inner.begin, inner.end)
                return
        for option in (*program.pair, *program.cookie):
            full_option = option + b"=" * option.startswith(b"--")
            if text.startswith(full_option):
                if option in program.cookie:
                    self._add_cookies(part, len(full_option))
                else:
                    self._add_pair(part, len(full_option), program.sign)
                return

    def _add_pair(self, part: _CommandWord, skip: int, sign: bytes) -> None:
        """Add the password after a user and a separator; without a separator the span is empty."""
        credential = _command_word(self._data, part.begin + skip, part.end)
        user, _, _ = credential.text.partition(sign)
        self._add_span(credential.begin + len(user) + 1, credential.end)

    def _add_cookies(self, part: _CommandWord, skip: int) -> None:
        cookie_word = _command_word(self._data, part.begin + skip, part.end)
        for begin, end in cookie_value_spans(cookie_word.text, cookie_word.begin, is_certain=True):
            self._add_span(begin, end)

    def _finish_command(self, place: int) -> None:
        """Finish a command by examining its operands."""
        operands = [word for word in self._words[1:] if not word.text.startswith(b"-")]
        if self._name == b"htpasswd" and self._is_ready:
            self._scan_htpasswd()
        elif self._name == b"net":
            self._scan_net(operands)
        elif self._name in (b"echo", b"printf") and operands:
            self._scan_echo(operands[-1], place)

    def _scan_htpasswd(self) -> None:
        """Find the password by its position: after file and user, or after the user with `-n`."""
        options: list[bytes] = []
        operands: list[_CommandWord] = []
        for previous, word in pairwise(self._words):
            if word.text.startswith(b"-"):
                if not operands:
                    options.append(word.text)
            elif operands or not (previous.text in options and previous.text.endswith((b"C", b"r"))):
                # `-C` and `-r` take a number.
                operands.append(word)
        without_file = any(b"n" in option for option in options)
        # With `-n`, a file may still be named; then the password follows the file and the user.
        first = 1 if without_file or len(operands) == _USER_AND_PASSWORD else 2
        for word in operands[first:3]:
            self._add_span(word.begin, word.end)

    def _scan_net(self, operands: list[_CommandWord]) -> None:
        texts = [word.text.lower() for word in operands]
        if texts[:1] == [b"user"]:
            for word in operands[2:3]:
                if not word.text.startswith(b"/"):
                    self._add_span(word.begin, word.end)
        elif texts[:1] == [b"use"]:
            for previous, word in pairwise(operands):
                names_user = previous.text.lower().startswith(b"/user:") or b"\\\\" in previous.text
                if names_user and not word.text.startswith((b"/", b"\\")):
                    self._add_span(word.begin, word.end)

    def _scan_echo(self, last: _CommandWord, place: int) -> None:
        """Find a password written to a program that reads one."""
        if _PIPE_TO_PASSWORD_READER.match(self._data, place) is None:
            return
        user, colon, _ = last.text.partition(b":")
        begin = last.begin + len(user) + 1 if colon and len(user) <= _MAX_USER else last.begin
        self._add_span(begin, last.end)

    def _add_span(self, begin: int, end: int) -> None:
        """Add a part of a word as a password, unless it is a placeholder or begins with a mask."""
        text = self._data[begin:end]
        if find_mask_end(text, 0) or is_placeholder(remove_masks(text)) or text.startswith(b"@"):
            return
        self.spans.append((begin, end))


def _literal_start(previous: bytes, text: bytes) -> int:
    if previous == b"--from-literal" and b"=" in text:
        return text.index(b"=") + 1
    match = _KUBECTL_LITERAL.match(text)
    return match.start("secret") if match else 0


def _is_option(text: bytes) -> bool:
    return text.startswith(b"-") and len(text) < _MAX_NAME and text[1:].replace(b"-", b"").isalpha()


COMMAND_LINE_FAMILIES: Final = (
    SecretFamily(
        "command-password",
        "passwords in command arguments",
        tuple(name + end for name in _PROGRAMS for end in (b" ", b".exe ")),
        _match_command,
        tuple(b"mysql sshp curl".split()),
    ),
)
