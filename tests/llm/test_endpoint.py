"""Where the API is; and the key, which is shown nowhere."""

import copy
import pickle
import traceback

import pytest
from tests.llm.loopback import KEY

from steno.errors import BadRequest, StenoError
from steno.llm.endpoint import Endpoint, MissingKey


def signed(endpoint: Endpoint) -> dict[str, str]:
    headers: dict[str, str] = {}
    endpoint.sign(headers)
    return headers


def test_a_key_of_the_environment_is_sent_as_a_key() -> None:
    endpoint = Endpoint.from_environment({"ANTHROPIC_API_KEY": f" {KEY}\n"})
    assert endpoint.base_url == "https://api.anthropic.com"
    assert signed(endpoint) == {"x-api-key": KEY}


def test_a_token_is_sent_as_a_bearer_and_goes_before_a_key() -> None:
    environment = {"ANTHROPIC_AUTH_TOKEN": "token-1234", "ANTHROPIC_API_KEY": KEY}
    assert signed(Endpoint.from_environment(environment)) == {"authorization": "Bearer token-1234"}


def test_an_address_is_used_without_its_last_slash() -> None:
    environment = {"ANTHROPIC_BASE_URL": "https://gate.example/api/", "ANTHROPIC_API_KEY": KEY}
    endpoint = Endpoint.from_environment(environment)
    assert (endpoint.base_url, endpoint.host) == ("https://gate.example/api", "gate.example")


def test_custom_headers_are_sent_too_and_betas_are_kept_apart() -> None:
    told = "X-Team: blue\r\n\nX-Url: https://a:1/b\nAnthropic-Beta: one, two,\nX-Empty:"
    environment = {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_CUSTOM_HEADERS": told}
    endpoint = Endpoint.from_environment(environment)
    assert signed(endpoint) == {"x-api-key": KEY, "x-team": "blue", "x-url": "https://a:1/b", "x-empty": ""}
    assert endpoint.betas == ("one", "two")


def test_a_custom_header_may_be_what_one_signs_with() -> None:
    environment = {"ANTHROPIC_CUSTOM_HEADERS": "Authorization: Basic abc"}
    assert signed(Endpoint.from_environment(environment)) == {"authorization": "Basic abc"}


@pytest.mark.parametrize("environment", [{}, {"ANTHROPIC_API_KEY": " "}, {"ANTHROPIC_CUSTOM_HEADERS": "X-Team: blue"}])
def test_without_a_key_one_is_told_what_to_set(environment: dict[str, str]) -> None:
    with pytest.raises(MissingKey, match=r"no API key for api\.anthropic\.com") as caught:
        Endpoint.from_environment(environment)
    assert "ANTHROPIC_API_KEY" in caught.value.hint


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:8080",
        "http://127.8.9.1",
        "http://[::1]:80/x",
        "http://localhost:1",
        "HTTP://LOCALHOST",
        "https://example.com",
    ],
)
def test_encryption_is_not_needed_on_this_machine(url: str) -> None:
    assert Endpoint(url, api_key=KEY).base_url == url


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com",
        "http://10.0.0.1",
        "http://0.0.0.0",
        "http://127.0.0.1.example.com",
        "http://localhost.example.com",
        "http://127.1",
        "http://2130706433",
        "http://[::ffff:10.0.0.1]",
    ],
)
def test_encryption_is_needed_elsewhere_unless_told(url: str) -> None:
    with pytest.raises(BadRequest, match="without encryption"):
        Endpoint(url, api_key=KEY)
    assert Endpoint(url, api_key=KEY, plain_http=True).base_url == url


@pytest.mark.parametrize(
    "url",
    [
        "api.example.com",
        "ftp://example.com",
        "file:///etc/passwd",
        "https://",
        "https://[::1",
        "https://example.com:port",
        "https://example.com:99999",
        "https://example.com:0",
        f"https://user:{KEY}@example.com",
        f"http://127.0.0.1@{KEY}.example.com",
        f"https://example.com/?key={KEY}",
        f"https://example.com/#{KEY}",
        f"https://exa mple.com/{KEY}",
        f"https://example.com/\u00e9{KEY}",
        f"http://localhost\\.example.com/{KEY}",
        f"http://localhost\t.example.com/{KEY}",
        f"http://localhost%2eexample.com/{KEY}",
        f"https://example.com/a\nb{KEY}",
    ],
)
def test_an_address_that_is_none_is_refused_without_being_told(url: str) -> None:
    with pytest.raises(BadRequest) as caught:
        Endpoint(url, api_key=KEY)
    assert KEY not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    "environment",
    [
        {"ANTHROPIC_API_KEY": f"{KEY}\nx-evil: 1"},
        {"ANTHROPIC_API_KEY": f"{KEY}\u200b"},
        {"ANTHROPIC_AUTH_TOKEN": f"{KEY}\0"},
        {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_CUSTOM_HEADERS": KEY},
        {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_CUSTOM_HEADERS": f"a b: {KEY}"},
        {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_CUSTOM_HEADERS": f"X-A: {KEY}\x01"},
        {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_CUSTOM_HEADERS": "Content-Length: 5"},
        {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_CUSTOM_HEADERS": "Transfer-Encoding: x"},
        {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_CUSTOM_HEADERS": "Host: evil"},
    ],
)
def test_what_no_header_can_carry_is_refused_without_being_told(environment: dict[str, str]) -> None:
    with pytest.raises(StenoError) as caught:
        Endpoint.from_environment(environment)
    assert KEY not in "".join(traceback.format_exception(caught.value)) + caught.value.hint


def test_the_key_is_in_no_picture_and_in_no_copy_of_an_endpoint() -> None:
    endpoint = Endpoint(api_key=KEY, headers={"X-Pass": "word-of-pass"})
    for shown in (repr(endpoint), str(endpoint), f"{endpoint!a}", repr([endpoint])):
        assert shown.strip("[]") == "Endpoint('https://api.anthropic.com')"
    for taken in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError) as caught:
            taken(endpoint)
        assert KEY not in str(caught.value)


def test_what_others_say_is_shown_without_the_key_in_one_line() -> None:
    endpoint = Endpoint(auth_token=KEY, headers={"X-Pass": "word-of-pass", "X-Short": "a"})
    told = f"bad key '{KEY}'\n\x1b[31m (Bearer {KEY}) and word-of-pass"
    assert endpoint.redact(told) == "bad key '[hidden]' ␛[31m ([hidden]) and [hidden]"
    assert len(endpoint.redact("x" * 10_000)) == 2000
