"""A serial port never blocks its thread: pseudo-terminals and a pyserial URL."""

import errno
import os
import socket
import threading
import time
import tty

import pytest
import serial
from manual_clock import wait_until
from pydantic import ValidationError

from softarm_ros.drivers.serial_config import SerialConfig
from softarm_ros.drivers.serial_port import PortError, SerialPort


@pytest.fixture
def line():
    """Return a port and the other end of its line."""
    far, near = os.openpty()
    tty.setraw(near)
    port = SerialPort(os.ttyname(near), 250_000)
    os.close(near)
    yield port, far
    port.close()
    os.close(far)


def test_bytes_pass_in_both_directions(line):
    port, far = line
    assert port.write(b'\1\2\0')
    assert os.read(far, 100) == b'\1\2\0'
    os.write(far, b'\3\0\4')
    assert port.read(time.monotonic() + 5.0) == b'\3\0\4'
    assert port.read(0.0) == b''


def test_write_to_a_full_line_fails_at_once_and_loses_no_bytes(line):
    port, far = line
    frame = bytes(range(1, 101))
    sent, began = 0, time.thread_time()
    while port.write(frame):
        sent += 1
        assert sent < 10_000
    for _ in range(100):
        assert not port.write(frame)
    assert time.thread_time() - began < 2.0
    taken = b''
    while len(taken) < sent * len(frame):  # nothing is lost, nothing cut in the middle
        taken += os.read(far, 65536)
        port.read(0.0)
    assert taken == sent * frame
    assert port.write(frame)


def test_wake_ends_a_waiting_read(line):
    port, _ = line
    began = time.monotonic()
    threading.Timer(0.05, port.wake).start()
    assert port.read(began + 30.0) == b''
    assert time.monotonic() - began < 20.0


def test_port_in_use_is_refused(line):
    port, _ = line
    with pytest.raises(PortError, match=r'^/dev/\S+: in use by another program; end it, or'):
        SerialPort(port._port.port, 250_000)


def test_read_and_write_raise_port_error_once_the_port_is_gone():
    far, near = os.openpty()
    name = os.ttyname(near)
    port = SerialPort(name, 250_000)
    os.close(near)
    os.close(far)
    with pytest.raises(PortError, match=f'^{name}: '):
        port.read(time.monotonic() + 5.0)
    with pytest.raises(PortError, match=f'^{name}: '):
        for _ in range(10):
            port.write(b'\1\0')
    port.close()


@pytest.mark.parametrize(
    ('name', 'why'),
    [
        ('/dev/missing-board', 'is not there; softarm ports lists'),
        ('/tmp', 'is a directory; softarm ports lists'),
        (os.devnull, 'is no serial port; softarm ports lists'),
        (__file__, 'is no serial port; softarm ports lists'),
        ('nothing://at/all', "invalid URL, protocol 'nothing' not known"),
    ],
)
def test_port_that_cannot_be_opened_is_named_with_the_cause(name, why):
    with pytest.raises(PortError) as refused:
        SerialPort(name, 250_000)
    assert str(refused.value).startswith(f'{name}: {why}')


def test_port_may_be_a_socket_url():
    with socket.create_server(('127.0.0.1', 0)) as server:
        port = SerialPort(f'socket://127.0.0.1:{server.getsockname()[1]}', 115_200)
        far, _ = server.accept()
        assert port.write(b'\1\0')
        assert far.recv(10) == b'\1\0'
        far.sendall(b'\2\0')
        assert port.read(time.monotonic() + 5.0) == b'\2\0'
        far.close()

        def gone():
            try:
                port.read(time.monotonic() + 0.1)
            except PortError:
                return True
            return False

        wait_until(gone, 20.0, 'loss')
        port.close()


@pytest.mark.parametrize(
    ('port', 'said'),
    [
        ('socket://boards.lab', 'expected socket://host:port'),
        ('rfc2217://10.0.0.1:99999', 'expected rfc2217://host:port'),
        ('tcp://10.0.0.1:4000', 'a URL of pyserial: socket, rfc2217'),
        ('/dev/ttyACM0', ''),
        ('COM3', ''),
        ('spy:///dev/ttyACM0', ''),
        ('socket://10.0.0.1:4000', ''),
    ],
)
def test_serial_config_refuses_port_urls_that_pyserial_cannot_open(port, said):
    try:
        assert SerialConfig(port=port, baud=115_200).port == port
    except ValidationError as error:
        assert said and said in str(error)
    else:
        assert not said


def test_port_lost_while_it_is_opened_raises_port_errors_only(monkeypatch):
    class Lost:
        """A port of pyserial whose device is gone."""

        def fileno(self):
            raise OSError

        @property
        def out_waiting(self):
            raise OSError(errno.EIO, 'Input/output error')

        def close(self):
            pass

    monkeypatch.setattr(serial, 'serial_for_url', lambda *_, **__: Lost())
    port = SerialPort('/dev/ttyUSB0', 9600)
    with pytest.raises(PortError, match='Input/output error'):
        port.write(b'a')
    port.close()
