"""A board on a serial line, served by a thread: handshake, cycles, loss and reconnection."""

from __future__ import annotations

import threading
from collections.abc import Callable

from softarm_ros.clock import MONOTONIC, Clock
from softarm_ros.drivers.board_link import (
    BoardLink,
    BoardUser,
    LinkDownError,
    RebootedError,
    RefusedError,
)
from softarm_ros.drivers.messages import Kind, Type
from softarm_ros.drivers.polling import PollingThread
from softarm_ros.drivers.problems import ProblemLog, import_library
from softarm_ros.drivers.serial_config import SerialConfig
from softarm_ros.drivers.serial_counters import SerialCounter
from softarm_ros.drivers.serial_port import PortError, SerialPort

__all__ = [
    'BoardLink',
    'BoardUser',
    'LinkDownError',
    'RebootedError',
    'RefusedError',
    'SerialBoard',
]

OpenPort = Callable[[str, int], SerialPort]
LINK = 'link'
_SILENCE_S = 6.0  # the port is reopened if no answer comes for this long
_PING_S = 0.1
_COUNTERS_S = 1.0
_DRAIN_S = 0.1
_MIN_SPACING = 0.4  # share of a period between two cycles


class SerialBoard:
    """
    Maintains the connection to a board, and lets its user communicate with it.

    It reconnects automatically after a loss of the line, of the port or of the board's power. The
    loss of a connected board is a problem, latched under `link`. A board that was never connected
    is reported by `trouble` alone.

    Parameters
    ----------
    config
        Configuration of the line.
    kind
        Expected kind of board.
    user
        Configures and commands the board.
    problems
        Log to which losses are reported.
    clock, open_port
        Clock and function to open a port; by default those of the computer.

    """

    def __init__(
        self,
        config: SerialConfig,
        kind: Kind,
        user: BoardUser,
        problems: ProblemLog,
        clock: Clock = MONOTONIC,
        open_port: OpenPort = SerialPort,
    ) -> None:
        self._clock = clock
        self._open_port = open_port
        self.config = config
        self.kind = kind
        self.user = user
        self.counter = SerialCounter()
        self._problems = problems
        # Priority over other threads: the board stops by itself if this one sends nothing.
        self._thread = PollingThread(
            kind.name.lower(),
            self._run,
            self._on_failure,
            clock,
            interrupt=self.wake,
            goes_first=True,
        )
        self._stop = self._thread.ending
        self._started = False
        self._lock = threading.Lock()
        self._port: SerialPort | None = None
        self._woken = False
        self._trouble = 'not started'

    def start(self) -> None:
        """
        Start connecting in the background.

        Raises
        ------
        DriverError
            If pyserial is not installed.

        """
        import_library('serial')
        if not self._started:
            self._trouble = f'no answer from {self.config.port} yet'
            self._thread.start()
            self._started = True

    def close(self) -> None:
        """Let the user put the board into its final state; close the port; may be called twice."""
        if self._started:
            self._thread.close()
            self._started = False
            self._trouble = 'closed'
            self._problems.end_lasting()

    def wake(self) -> None:
        """Start the next cycle at once, or after the minimum spacing of cycles."""
        self._woken = True
        with self._lock:
            if self._port is not None:
                self._port.wake()

    @property
    def trouble(self) -> str:
        """Why the board cannot be used; '' if it is connected and configured."""
        return self._trouble

    def _run(self, thread: PollingThread) -> None:
        while not self._stop.is_set():
            try:
                port = self._open_port(self.config.port, self.config.baud)
            except PortError as error:
                self._trouble = str(error)
                self._stop.wait(self.config.reconnect_s)
                continue
            with self._lock:
                self._port = port
            try:
                self._serve(port)
            finally:
                with self._lock:
                    self._port = None
                port.close(_DRAIN_S if self._stop.is_set() else 0.0)
            self._stop.wait(self.config.reconnect_s)

    def _on_failure(self, error: BaseException) -> None:
        """Report an exception of the user or of this class; it has ended the thread."""
        self._trouble = f'{type(error).__name__}: {error}'
        self._problems.report_failure(LINK, error, self._clock.now_s())

    def _serve(self, port: SerialPort) -> None:
        """Repeat handshake and cycles while the port works and a board answers."""
        link = BoardLink(port, self.config, self.user, self.counter, self._clock)
        while not self._stop.is_set():
            answered = running = False
            try:
                reply = link.shake_hands(self.kind, self._clock.now_s() + _SILENCE_S, self._stop)
                answered = True
                self.user.connected(link, reply)
                running = True
                self.counter.connections += 1
                self._trouble = ''
                self._cycle(link)
                self.user.closing(link)
            except RefusedError as error:
                self._trouble = str(error)
                self.user.disconnected(str(error))
                self._stop.wait(self.config.reconnect_s)
            except LinkDownError as error:
                if self._stop.is_set():
                    return
                self._lost(error, running)
                if _port_is_gone(error) or not answered:
                    return

    def _lost(self, error: LinkDownError, running: bool) -> None:
        self._trouble = str(error)
        if isinstance(error, RebootedError):
            self.counter.reboots += 1
        if running:
            now, gone = self._clock.now_s(), _port_is_gone(error)
            self._problems.report(LINK, '', f'lost: {error}', now, outside=gone)
        self.user.disconnected(str(error))

    def _cycle(self, link: BoardLink) -> None:
        period = 1.0 / self.config.rate_hz
        began = due = self._clock.now_s()
        ping_s = counters_s = began
        while not self._stop.is_set():
            woken = False
            while (now := self._clock.now_s()) < due:
                link.listen(due)
                if self._woken:
                    self._woken, woken = False, True
                    due = min(due, max(self._clock.now_s(), began + _MIN_SPACING * period))
            self.counter.cycle_delay.add(now - due)
            began = now
            # If commands wake the cycles, a repetition must not come just before the next one.
            due = now + (1.5 if woken else 1.0) * period
            self.user.cycle(link, now)
            # One request at a time: a busy Arduino buffers only 64 bytes.
            if now >= ping_s:
                link.ping(now)
                ping_s = now + _PING_S
            elif now >= counters_s:
                link.send(Type.GET_COUNTERS)
                counters_s = now + _COUNTERS_S


def _port_is_gone(error: LinkDownError) -> bool:
    """Return whether the port has failed, rather than the board stayed silent."""
    return isinstance(error.__cause__, PortError)
