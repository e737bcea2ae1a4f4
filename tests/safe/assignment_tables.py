"""Names, values and what joins them: which of them make a secret."""

from typing import Final

from tests.safe.recording import Answers, Text

from steno.safe.masking import edits_of

_CODES: Final = {
    "password": "p",
    "env-password": "e",
    "named-secret": "n",
    "aws-secret-key": "a",
    "command-password": "c",
}
"""The letter of a family in a table; of others the whole id."""

NAMES: Final = """
password passwd pwd pass passphrase passcode psw pw passwort senha db_password dbPassword DB_PASSWORD
PASSWORD Password pass_word password1 password_2 password_x passwordx userpass bypass compass my_pass
MY_PASS mypwd my-pwd my.password root.password spring.datasource.password smtp_passwd wifi_passphrase
secret SECRET client_secret clientSecret CLIENT_SECRET clientsecret secrets secret1 secret_id
secretid secret_name secret_key SECRET_KEY secretKey secret_key_base secret_value secret_b64 token TOKEN tokens
access_token accessToken AccessToken refreshtoken token_type token_url token_count auth_token authToken
x_token token_x token_a TOKEN_9 api_key apiKey API_KEY ApiKey apikey APIKEY api-key API-KEY api_keys
api_key_id api_key_file key keys my_key cache_key cacheKey primary_key public_key publicKey PUBLIC_KEY
private_key privateKey signing_key account_key encryption_key stripe_key stripeKey STRIPE_KEY foo_keys
access_key aws_secret_access_key AWS_SECRET_ACCESS_KEY aws_access_key_id secret_access_token auth AUTH
basic_auth auth_user jwt JWT my_jwt salt SALT creds CREDS db_creds credential credentials cookie
my_cookie sessionid session_id PHPSESSID JSESSIONID session sid connect_sid psk wpa_psk mnemonic pepper
otp totp password_hash password_policy password_length password_file passwordField password_old
token_secret_old secret_of_mine publishable_token next_public_token pub_key_secret public_secret
tokenizer secretary passenger authority monkey keyboard turkey hockey key_data client_key_data
requirepass masterauth storepass keypass _authToken _password .password -password --password
API.KEY secret.token a.b.c.secret x-api-key X-Api-Key PRIVATE-TOKEN apiKeySecretRef password2FA
""".split()

_STRONG: Final = "‹20 alnum›"
NAME_COLUMNS: Final = (
    '{} = "hunter9x"',
    "{}=hunter9x",
    "{}: hunter9x",
    "{}=falcon",
    f"{{}}={_STRONG}",
    f'{{}}: "{_STRONG}"',
    "{}=‹8 hex›-‹4 hex›-‹4 hex›-‹4 hex›-‹12 hex›",
    "{}=‹32 hex›",
    "{}=‹40 base64›",
    "{}='rather!9x'",
    "{} is hunter9x",
    f"--{{}} {_STRONG}",
)

VALUES: Final = (
    *(
        "a1",
        "ab1",
        "abc1",
        "abcd1",
        "abcde",
        "hunter9",
        "hunter",
        "hunter!",
        "hunter2!",
        "Hunter99",
    ),
    *(
        "12345",
        "123456",
        "12:34:56",
        "1.2.3",
        "v1.2.3",
        "1.2.3-rc1",
        "2026-11-15",
        "2026-11-15T10:20",
    ),
    *("50%", "10ms", "100mb", "3600sec", "a/b9", "/etc/x9", "./x9abc", "~/x9abc", "x://y9abc"),
    *(
        "$PASS9x",
        "${P9x}",
        "$(p9x)",
        "<p9x>",
        "{p9x}",
        "*p9x*",
        "%p9x%",
        "%(p9x)s",
        "%sab9",
        "@P9xabc",
    ),
    *(
        "&p9xabc",
        "[p9x]",
        "(p9x)",
        "!p9xabc",
        "os.environ9",
        "process.env.X9",
        "getenv9x",
        "ENV[9x]",
    ),
    *("env.X9abc", "env:X9abc", "vault:x9ab", "arn:x9abc", "op://x9ab", "ref+x9ab", "file:x9ab"),
    *(
        "http9xabc",
        "data:image9",
        "sha256:x9a",
        "self.x9ab",
        "this.x9ab",
        "args.x9ab",
        "config.x9a",
    ),
    *(
        "var.x9abc",
        "local.x9ab",
        "module.x9a",
        "params9x",
        "request.x9",
        "settings.9",
        "System.x9a",
    ),
    *(
        "changeme9",
        "change-me9",
        "placehold3r",
        "place-holder9",
        "your9pass",
        "yourpass1",
        "example9x",
    ),
    *(
        "sample9x",
        "dummy9x",
        "redacted9",
        "masked9x",
        "hidden9x",
        "replace9x",
        "insert9x",
        "to-do 9",
    ),
    *("default9", "none 9", "nil", "null", "undefined9", "true", "false", "string", "optional9"),
    *("secret9x", "token9xy", "api-key9", "empty9x", "invalid9", "put-9x", "abc123", "abc-123"),
    *(
        "blah9x",
        "foo9xyz",
        "foo!9",
        "bar!9xyz",
        "enter-9x",
        "some9xyz",
        "the-9xyz",
        "lorem9",
        "fake9x",
    ),
    *(
        "mock9x",
        "stub9xy",
        "prompt9",
        "vault9x",
        "variable9",
        "a...b9x",
        "...",
        "not-set9",
        "unset9x",
    ),
    *("xxxx9ab", "abcXXXX9", "***9abc", "aab9aab", "aaaaaaa", "ab9ab9ab", "aaaa1111", "a1a1a1a1"),
    *(
        "pa9",
        "pass9",
        "mypass9",
        "pw99",
        "pw1234",
        "tok",
        "key123",
        "hash_9",
        "salt9",
        "user_pass",
        "cred99",
    ),
    *(
        "foo.bar9",
        "a::b9xyz",
        "a->b9xyz",
        "foo.bar9!",
        "foo.b9()",
        "foo9x[0]",
        "f9xyz(a)",
        "foo9x.y",
    ),
    *(
        "Xk9mQ2vL",
        "Xk9mQ2v",
        "kq7zx2wm",
        "kq7zx2wmp4",
        "kqxzvwmpbtgd",
        "kqXzVwMpBtGd",
        "kqXzVwMpBtG",
    ),
    *(
        "kqxzvwmpbtgdkqxzvwmp",
        "kqxzvwmpbtgdkqxzvwm",
        "KQXZVWMPBTGDKQXZVWMP",
        "aB3!xY7?qW9z",
        "x9-k2-q7",
    ),
    *("‹15 alnum›", "‹16 alnum›", "‹12 alnum›", "‹11 alnum›", "‹16 hex›", "‹15 hex›", "‹16 five›"),
    *("‹20 digits›", "‹24 poor›", "‹32 words›", "‹24 count›", "‹600 alnum›", "‹23 keyboard›!#%=^9"),
    *(
        "‹22 alnum›!#$%",
        "‹19 alnum›!#$%&",
        "‹18 alnum›!#$%&",
        "‹20 alnum›0-9!#$%&",
        "‹30 letters›!#$%&",
    ),
    *("‹8 hex›-‹4 hex›-‹4 hex›-‹4 hex›-‹12 hex›", "‹8 hex›-‹4 hex›-‹4 hex›-‹4 hex›-‹11 hex›"),
    *(
        "hunter9,x",
        "hunter9;x",
        "hunter9&x",
        "hunter9|x",
        "hunter9<x",
        "hunter9:",
        "hunter9.",
        "hunter9.:",
    ),
    *(
        "correct horse battery",
        "two words",
        "one 9two three",
        "p4ss w0rd",
        "h9",
        "-hunter9",
        "--hunter9",
    ),
    *(
        "option",
        "file",
        "letmein",
        "let",
        "letm",
        "LETMEIN",
        "let-me-in",
        "let_me_in_now_ok",
        "letmein,",
    ),
    *("üñ9xabc", "hun\\u201cter9", "hunter9\\n", "stdin", "abcdefghijklm"),
)

VALUE_COLUMNS: Final = (
    'password = "{}"',
    "password = {}",
    "PASSWORD={}",
    "password: {}",
    "secret: '{}'",
    "secret={}",
    "SECRET={}",
    "stripe_key={}",
    'sessionid="{}"',
    'passphrase = "{}"',
    "the password is {}",
    "--password {}",
    "--password={}",
    "--secret {}",
    "--stripe-key {}",
    "token {} was",
    "login ada password {}",
    "set password '{}'",
    'f("password", "{}")',
    'password, "{}"',
    "<password>{}</password>",
    "password('{}')",
)


def _cell(template: str, row: str, *, name: bool) -> str:
    """Say what is masked: a letter where it is just the value, else from where to where."""
    notation = template.format(row)
    text = Text(notation)
    data = text.text.encode()
    found = edits_of(data)
    if not found:
        return "."
    if name:
        # The value of every column ends the text, but for a quote.
        end = len(data) - (data[-1:] in (b'"', b"'"))
        begin = _value_begin(data, end)
    else:
        begin = template.index("{}")
        end = len(data) - (len(template) - begin - 2)
    cells: list[str] = []
    for edit in found:
        code = _CODES.get(edit.family, edit.family)
        if (edit.begin, edit.end) != (begin, end):
            code += f"({edit.begin - begin},{edit.end - end})"
        cells.append(code)
    return "+".join(cells)


def _value_begin(data: bytes, end: int) -> int:
    """Return where the word begins that ends at a place."""
    begin = end
    while begin and data[begin - 1] not in b"= \"'":
        begin -= 1
    return begin


def names() -> Answers:
    """Return, for each name, behind which joints which values are masked."""
    made: Answers = [(f"# {number}: {column}", "") for number, column in enumerate(NAME_COLUMNS)]
    return made + [
        (row, " ".join(_cell(column, row, name=True) for column in NAME_COLUMNS)) for row in NAMES
    ]


def values() -> Answers:
    """Return, for each value, behind which names it is masked."""
    made: Answers = [(f"# {number}: {column}", "") for number, column in enumerate(VALUE_COLUMNS)]
    return made + [
        (row, " ".join(_cell(column, row, name=False) for column in VALUE_COLUMNS))
        for row in VALUES
    ]
