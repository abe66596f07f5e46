"""Access control of the viewer on viser's own server, with and without the token."""

import contextlib
import http.client
import socket

import pytest

viser = pytest.importorskip('viser', reason='needs viser')

from softarm_ros.cli.viewer.guard import Guard, OpenDoorError

UPGRADE = {
    'Upgrade': 'websocket',
    'Connection': 'Upgrade',
    'Sec-WebSocket-Version': '13',
    'Sec-WebSocket-Key': 'c29mdGFybSBjbG9zZWQhIQ==',
}


@contextlib.contextmanager
def serving(guard, host='127.0.0.1'):
    with guard.installed() if guard else contextlib.nullcontext():
        server = viser.ViserServer(host=host, port=8230, verbose=False)
    try:
        yield server.get_port()
    finally:
        server.stop()


@pytest.fixture(scope='module')
def door():
    guard = Guard()
    with serving(guard) as port:
        guard.check_closed(port)
        yield guard, port


def status(port, path, headers, host='127.0.0.1'):
    with contextlib.closing(http.client.HTTPConnection(host, port, timeout=20)) as link:
        link.request('GET', path, headers=headers)
        return link.getresponse().status


@pytest.mark.parametrize('upgrade', [{}, UPGRADE])
@pytest.mark.parametrize(
    ('path', 'headers'),
    [
        ('/', {}),
        ('/index.html', {}),
        ('/{wrong}', {}),
        ('/{half}', {}),
        ('/{token}x', {}),
        ('/x/{token}', {}),
        ('/?token={token}', {}),
        ('/{token}', {'Host': 'evil.example:8080'}),
        ('/{token}', {'Origin': 'http://evil.example'}),
        ('/{token}', {'Origin': 'null'}),
        ('/{token}', {'Origin': 'http://127.0.0.1:1'}),
    ],
)
def test_requests_without_the_token_or_from_other_pages_get_403(door, upgrade, path, headers):
    guard, port = door
    path = path.format(token=guard.token, half=guard.token[:16], wrong='x' * len(guard.token))
    assert status(port, path, {**upgrade, **headers}) == 403


@pytest.mark.parametrize('name', ['127.0.0.1', 'localhost'])
def test_requests_with_the_token_from_the_page_of_the_server_are_accepted(door, name):
    guard, port = door
    headers = {'Host': f'{name}:{port}', 'Origin': f'http://{name}:{port}'}
    assert status(port, f'/{guard.token}', headers) == 200
    assert status(port, f'/{guard.token}/?websocket=x', headers) == 200
    assert status(port, f'/{guard.token}', {**UPGRADE, **headers}) == 101


@pytest.mark.parametrize('listens_at', ['0.0.0.0', '127.0.0.2'])
def test_a_server_that_listens_at_more_addresses_needs_the_token_there_as_well(listens_at):
    """127.0.0.2 is a second address of this computer, as that of a network would be."""
    guard = Guard(listens_at)
    with serving(guard, listens_at) as port:
        guard.check_closed(port)

        def answer(path, name, origin=None):
            origin = f'http://{origin or name}:{port}'
            return status(port, path, {'Host': f'{name}:{port}', 'Origin': origin}, '127.0.0.2')

        assert answer(f'/{guard.token}', '127.0.0.2') == 200
        assert answer('/', '127.0.0.2') == 403
        assert answer(f'/{guard.token}', '127.0.0.2', 'evil.example') == 403
        assert answer(f'/{guard.token}', 'evil.example') == 403
        everywhere = listens_at == '0.0.0.0'
        assert answer(f'/{guard.token}', socket.gethostname()) == (200 if everywhere else 403)
        assert answer(f'/{guard.token}', '127.0.0.3') == (200 if everywhere else 403)


def test_every_guard_has_another_token():
    assert len({Guard().token for _ in range(100)}) == 100


def test_a_server_without_guard_is_detected():
    with serving(None) as port, pytest.raises(OpenDoorError, match='200'):
        Guard().check_closed(port)
