"""The way to the API: the connections, what may be read of an answer, and what breaks."""

from collections.abc import Generator
from contextlib import aclosing, contextmanager
from typing import TYPE_CHECKING, Final, cast

from steno._version import __version__
from steno.model.endpoint import Endpoint
from steno.model.wire import ApiError

if TYPE_CHECKING:
    import httpx2

__all__ = ["connected", "read_up_to", "told"]

_VERSION: Final = "2023-06-01"


def connected(endpoint: Endpoint, betas: tuple[str, ...]) -> "httpx2.AsyncClient":
    """Return a client with connections of its own, which signs what it sends."""
    import ssl

    import httpx2

    def sign(request: httpx2.Request) -> httpx2.Request:
        endpoint.sign(request.headers)
        return request

    headers = {
        "content-type": "application/json",
        "accept-encoding": "identity",
        "anthropic-version": _VERSION,
        "user-agent": f"steno/{__version__}",
    }
    if betas:
        headers["anthropic-beta"] = ",".join(betas)
    # Reading the machine's certificates takes longer than a small request does.
    plain = endpoint.base_url.startswith("http:")
    return httpx2.AsyncClient(
        auth=sign,
        headers=headers,
        verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if plain else httpx2.create_ssl_context(),
        http2=False,
        follow_redirects=False,  # the key would go along
        trust_env=not endpoint.local,
        timeout=httpx2.Timeout(endpoint.timeout, connect=endpoint.connect),
        limits=httpx2.Limits(
            max_connections=64, max_keepalive_connections=8, keepalive_expiry=60.0
        ),
    )


async def read_up_to(response: "httpx2.Response", most: int) -> bytes:
    """Read an answer, at most so much of it."""
    raw = bytearray()
    async with aclosing(response.aiter_bytes()) as chunks:
        async for chunk in chunks:
            raw += chunk
            if len(raw) >= most:
                break
    return bytes(raw[:most])


@contextmanager
def told(endpoint: Endpoint, silent: str) -> Generator[None, None, None]:
    """Turn what goes wrong on the way to the API into an ApiError, without the key."""
    import httpx2

    try:
        yield
    except (httpx2.TimeoutException, TimeoutError):
        raise ApiError(silent, kind="timeout") from None
    except httpx2.InvalidURL:
        raise ApiError("the address of the API is no URL", kind="bad_url") from None
    except (httpx2.HTTPError, httpx2.StreamError, OSError) as error:
        said = endpoint.shown(str(error)) or type(error).__name__
        if "CERTIFICATE_VERIFY_FAILED" in said:
            failure = ApiError(
                f"{endpoint.host} is not who it says: {said}", kind="certificate_error"
            )
            failure.hint = "behind a proxy with a certificate of its own, set SSL_CERT_FILE"
            raise failure from None
        if isinstance(error, httpx2.ConnectError | httpx2.ProxyError):
            message = f"cannot connect to {endpoint.place}: {said}"
            # Nobody listens there, and that rarely changes while one waits.
            kind = "connection_refused" if _is_refused(error) else "connection_error"
            raise ApiError(message, kind=kind) from None
        message = f"the connection to {endpoint.host} broke: {said}"
        raise ApiError(message, kind="connection_error") from None


def _is_refused(error: BaseException) -> bool:
    """Whether nobody listens at an address, which stands among the causes of an error."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, BaseExceptionGroup):
            # One for each address of the host.
            each = cast("BaseExceptionGroup[BaseException]", cause).exceptions
            return all(map(_is_refused, each))
        if isinstance(cause, ConnectionRefusedError):
            return True
        cause = cause.__cause__ or cause.__context__
    return False
