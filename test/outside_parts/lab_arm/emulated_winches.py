"""Emulated winches, which wind the cables of a simulated arm."""

import socket

import numpy as np

from lab_arm.winches import MICRO

REPORT_S = 0.01


class EmulatedWinches:
    def __init__(self, plant):
        self.plant = plant
        self._socket = None
        self._driver = None
        self._next_report_s = 0.0
        self._unplugged = False
        self._commands = 0

    @property
    def time_s(self):
        return self.plant.time_s

    def start(self, folder):
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.bind(('127.0.0.1', 0))
        (folder / 'lab_winches.port').write_text(str(self._socket.getsockname()[1]))

    def advance(self, duration_s):
        self.plant.step(self._asked(), duration_s)
        if self._driver and not self._unplugged and self.time_s >= self._next_report_s:
            self._next_report_s = self.time_s + REPORT_S
            position = self.plant.actuator_state().position
            words = ' '.join(str(round(value / MICRO)) for value in position)
            self._socket.sendto(words.encode(), self._driver)

    def close(self):
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def inject(self, fault):
        if fault != 'lab_winches unplug':
            raise ValueError(f'no fault {fault!r} here; known: lab_winches unplug')
        self._unplugged = True
        return 'unplugged'

    def report(self):
        return {'commands': str(self._commands)}

    def _asked(self):
        """Return the newest command, or None."""
        newest = None
        while True:
            try:
                words, self._driver = self._socket.recvfrom(256)
            except BlockingIOError:
                return newest
            if self._unplugged or words == b'?':
                continue
            if words == b'stop':
                self.plant.hold()
                newest = None
                continue
            self._commands += 1
            newest = MICRO * np.array(words.split(), dtype=float)


def build(plant, config, drives, seed, lab_winches):
    return EmulatedWinches(plant)
