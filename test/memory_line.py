"""A serial line in memory, in the time of a clock: replaces `PtyLine` and `SerialPort`."""

from __future__ import annotations

from collections import deque

from softarm_ros.drivers.serial_port import PortError

PERIOD_S = 1e-3  # period at which the device reads its line
BIT_S = 1e-6


class MemoryLine:
    """Both ends of a line to a device that answers bytes with bytes."""

    def __init__(self, clock):
        self.clock = clock
        self.failure = ''
        self.plugged = False
        self._delay_s = 0.0
        self._port = None
        self._answers = deque()
        self._stop = clock.event()

    def made(self, answer, idle, name):
        """Take the arguments of a `PtyLine`; return this line in its place."""
        self._answer, self._idle = answer, idle
        self._running = self.clock.task(self._run, name)
        return self

    def start(self, link=None):
        self.plugged = True
        self._running.start()

    def close(self):
        if not self._stop.is_set():
            self._stop.set()
            self._running.join()

    def plug(self):
        self.plugged = True

    def unplug(self):
        self.plugged = False
        if self._port is not None:
            self._port.lose()
            self._port = None

    def delay(self, seconds):
        self._delay_s = seconds

    def open_port(self, name, baud):
        if not self.plugged:
            raise PortError(f'could not open port {name}: it is not there')
        self._port = LinePort(self, self.clock)
        return self._port

    def give(self, port, data):
        if port is self._port and self.plugged:
            answer = self._answer(data)
            took_s = 10 * BIT_S * (len(data) + len(answer))
            self._answers.append((self.clock.now_s() + took_s + self._delay_s, answer))

    def _run(self):
        while not self._stop.wait(PERIOD_S):
            while self._answers and self._answers[0][0] <= self.clock.now_s():
                answer = self._answers.popleft()[1]
                if self._port is not None:
                    self._port.arrive(answer)
            self._idle()


class LinePort:
    """Replaces `SerialPort`."""

    def __init__(self, line, clock):
        self._line, self._clock = line, clock
        self._come = bytearray()
        self._news = clock.event()
        self._gone = False

    def write(self, frame):
        self._check()
        self._line.give(self, frame)
        return True

    def read(self, until_s):
        self._check()
        if not self._come and until_s > self._clock.now_s():
            self._news.wait(until_s - self._clock.now_s())
        self._news.clear()
        self._check()
        taken = bytes(self._come)
        self._come.clear()
        return taken

    def wake(self):
        self._news.set()

    def close(self, drain_s=0.0):
        pass

    def arrive(self, piece):
        self._come += piece
        self._news.set()

    def lose(self):
        self._gone = True
        self._news.set()

    def _check(self):
        if self._gone:
            raise PortError('the port is gone')
