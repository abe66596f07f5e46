"""A serial port with non-blocking writes: bytes are sent when the port has room."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import time
from typing import Any

_READ = 4096
_POLL_S = 0.002  # polling period of a port that `select` cannot watch
_MOST_WAITING = 256  # unsent bytes; a stalled line must not accumulate old commands
_ERRORS: tuple[type[Exception], ...] = (OSError, ValueError, TypeError)
with contextlib.suppress(ImportError):  # missing on Windows
    import termios

    _ERRORS = (*_ERRORS, termios.error)


class PortError(OSError):
    """The port cannot be opened, or has disappeared."""

    def of(self, port: str) -> str:
        """Return the message, preceded by the name of the port exactly once."""
        return f'{port}: {str(self).removeprefix(f"{port}: ")}'


class SerialPort:
    """
    An open port of pyserial (by name or URL), for one thread; any thread may call `wake`.

    Raises
    ------
    PortError
        If the port cannot be opened or is in use; later by any method, if it has disappeared.

    """

    def __init__(self, port: str, baud: int) -> None:
        import serial

        self._name = port
        try:
            self._port: Any = serial.serial_for_url(
                port, baudrate=baud, timeout=0, write_timeout=0, exclusive=True
            )
        except _ERRORS as error:  # SerialException is an OSError
            raise PortError(f'{port}: {_why_not_open(port, error)}') from error
        try:
            self._fd: int | None = self._port.fileno()
        except (OSError, AttributeError):  # some types of URL have none
            self._fd = None
        # Of the type: the property itself fails if the port has just disappeared.
        self._tells_waiting = hasattr(type(self._port), 'out_waiting')
        self._out = bytearray()
        self._woken, self._waker = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(self._waker, False)

    def restart(self, baud: int) -> None:
        """Change the baud rate and discard received bytes."""
        try:
            self._port.baudrate = baud
            self._port.reset_input_buffer()
        except _ERRORS as error:
            raise self._lost(error) from error

    @property
    def waiting(self) -> int:
        """Number of bytes not sent yet, as far as this computer knows."""
        try:
            return len(self._out) + (self._port.out_waiting if self._tells_waiting else 0)
        except _ERRORS as error:
            raise self._lost(error) from error

    def write(self, frame: bytes) -> bool:
        """Send a frame; return False, without sending, if older ones wait for the line."""
        self._flush()
        if self._out or self.waiting > _MOST_WAITING:
            return False
        self._out += frame
        self._flush()
        return True

    def read(self, until_s: float) -> bytes:
        """Return received bytes; wait for them until a monotonic time or for `wake`."""
        try:
            return bytes(self._port.read(_READ)) if self._wait(until_s) else b''
        except _ERRORS as error:
            raise self._lost(error) from error

    def wake(self) -> None:
        """Make `read` return at once."""
        with contextlib.suppress(OSError):  # pipe full: `read` wakes anyway; closed: no reader
            os.write(self._waker, b'.')

    def close(self, drain_s: float = 0.0) -> None:
        """Close the port; wait up to `drain_s` for unsent bytes."""
        deadline = time.monotonic() + drain_s
        with contextlib.suppress(*_ERRORS):
            while self.waiting and time.monotonic() < deadline:
                self._flush()
                time.sleep(_POLL_S)
        with contextlib.suppress(*_ERRORS, AttributeError):
            self._port.reset_output_buffer()  # otherwise closing may block on a dead line
        with contextlib.suppress(*_ERRORS):
            self._port.close()
        os.close(self._waker)
        os.close(self._woken)

    def _lost(self, error: Exception) -> PortError:
        return PortError(f'{self._name}: {error}')

    def _wait(self, until_s: float) -> bool:
        """Wait for input, a wake or a monotonic time; return whether there may be input."""
        if self._fd is None:
            time.sleep(max(min(_POLL_S, until_s - time.monotonic()), 0.0))
            return True
        writers = [self._fd] if self._out else []
        timeout = max(until_s - time.monotonic(), 0.0)
        readable, writable, _ = select.select([self._fd, self._woken], writers, [], timeout)
        if self._woken in readable:
            os.read(self._woken, 4096)
        if writable:
            self._flush()
        return self._fd in readable

    def _flush(self) -> None:
        """Write as many bytes as the port takes now."""
        # Check for room first: otherwise pyserial would spin on a full non-blocking port.
        while self._out and (self._fd is None or select.select([], [self._fd], [], 0)[1]):
            try:
                sent = self._port.write(bytes(self._out))
            except _ERRORS as error:
                raise self._lost(error) from error
            del self._out[: len(self._out) if sent is None else sent]
            if not sent:
                return


def _why_not_open(port: str, error: Exception) -> str:
    """Return why a port cannot be opened, with a hint to `softarm ports` if it helps."""
    code = getattr(error, 'errno', None)
    if '://' in port:
        return str(error)
    if code == errno.ENOENT:
        return 'is not there; softarm ports lists those there are'
    if code in (errno.EACCES, errno.EPERM):
        return 'this user may not open it; softarm ports says what to do'
    if code == errno.EBUSY or 'exclusively lock' in str(error):
        return 'in use by another program; end it, or correct the port'
    if code == errno.EISDIR or 'onfigure port' in str(error):
        what = 'is a directory' if code == errno.EISDIR else 'is no serial port'
        return f'{what}; softarm ports lists those there are'
    return str(error)
