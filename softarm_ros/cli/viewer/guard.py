"""
Access control of the viewer: only requests with its token, and none from pages of other sites.

viser's server answers every program and every web page that reaches its port. The guard checks
each request, for the page and for its websocket: the path must begin with a random token, the
`Host` header must be an address that the viewer listens at (which prevents DNS rebinding), and an
`Origin` header, if there is one, must be that of the viewer's own page.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hmac
import http
import ipaddress
import secrets
import socket
from collections.abc import Callable, Iterator
from typing import Any

HOST, ALL = '127.0.0.1', '0.0.0.0'
_FORBIDDEN = b' 403 '
_ANSWER_S = 5.0


class OpenDoorError(RuntimeError):
    """The server answers requests without a token."""


class Guard:
    """Holds the token of a server that listens at an address, and checks requests for it."""

    def __init__(self, listens_at: str = HOST) -> None:
        self.token = secrets.token_urlsafe(24)
        self._listens_at = listens_at

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        """Guard every websockets server that starts in this block."""
        import websockets.asyncio.server as servers

        serve = servers.serve

        def guarded(*arguments: Any, process_request: Any = None, **options: Any) -> Any:
            check = self._checked(process_request)
            return serve(*arguments, process_request=check, **options)

        servers.serve = guarded  # type: ignore[assignment,misc]
        try:
            yield
        finally:
            servers.serve = serve  # type: ignore[misc]

    def check_closed(self, port: int) -> None:
        """
        Check that requests for page and websocket without the token are refused.

        Raises
        ------
        OpenDoorError
            If the server answers them, as another version of viser might.

        """
        upgrade = (
            'Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n'
            'Sec-WebSocket-Key: c29mdGFybSBjbG9zZWQhIQ==\r\n'
        )
        host = HOST if self._listens_at == ALL else self._listens_at
        for more in ('', upgrade):
            with socket.create_connection((host, port), timeout=_ANSWER_S) as link:
                link.sendall(f'GET / HTTP/1.1\r\nHost: {host}:{port}\r\n{more}\r\n'.encode())
                answer = link.recv(64).split(b'\r\n')[0]
            if _FORBIDDEN not in answer:
                raise OpenDoorError(f'a request without the token is answered: {answer!r}')

    def refusal(self, path: str, headers: Any, port: int) -> str | None:
        """Return the reason to refuse a request, or None."""
        hosts = headers.get_all('Host')
        if len(hosts) != 1 or not self._is_ours(hosts[0].lower(), port):
            return 'this address is not known here'
        for origin in headers.get_all('Origin'):
            if origin.lower() != f'http://{hosts[0].lower()}':
                return 'the request comes from a page of another site'
        given = path.partition('?')[0].strip('/').split('/')[0]
        if not hmac.compare_digest(given.encode(), self.token.encode()):
            return 'the address needs the token that softarm printed'
        return None

    def _is_ours(self, host: str, port: int) -> bool:
        name, _, at = host.rpartition(':')
        if at != str(port):
            return False
        if name in (HOST, 'localhost', self._listens_at):
            return True
        if self._listens_at != ALL:
            return False
        try:  # a rebound name is never a number
            ipaddress.IPv4Address(name)
        except ValueError:
            return name == socket.gethostname().lower()
        return True

    def _checked(self, inner: Callable[[Any, Any], Any] | None) -> Callable[[Any, Any], Any]:
        def process_request(connection: Any, request: Any) -> Any:
            port = connection.local_address[1]
            refused = self.refusal(request.path, request.headers, port)
            if refused is not None:
                return connection.respond(http.HTTPStatus.FORBIDDEN, f'{refused}\n')
            if inner is None:
                return None
            rest = request.path.strip('/')[len(self.token) :]
            return inner(connection, dataclasses.replace(request, path=rest or '/'))

        return process_request
