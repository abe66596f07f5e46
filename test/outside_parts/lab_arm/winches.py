"""A drive: winches that receive and report contractions in micrometres, in UDP datagrams."""

import socket
import time

import numpy as np
from pydantic import Field

from softarm_ros.drivers.actuator_driver import ActuatorReading
from softarm_ros.geometry.configs import ConfigBlock
from softarm_ros.geometry.parts import Part

MICRO = 1e-6


class WinchConfig(ConfigBlock):
    host: str = Field(description='of the winches')
    port: int = Field(gt=0, lt=65536)


class Winches:
    def __init__(self, drives, config):
        self._limits, self._names = drives.limits, drives.names
        self._address = config.host, config.port
        self._socket = None
        self._reading = None
        self._homed = False

    def start(self):
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.sendto(b'?', self._address)

    def close(self):
        if self._socket is not None:
            self.hold()
            self._socket.close()
            self._socket = None

    def reset(self):
        """Do nothing: no problem is latched."""

    def not_ready(self):
        return '' if self._homed and self.reading() is not None else 'not homed, or not heard'

    def problems(self):
        return ()

    def values(self):
        return {'address': f'{self._address[0]}:{self._address[1]}'}

    def home(self):
        self._homed = True

    def follow(self, command):
        command = np.asarray(command, dtype=float)
        low, high = self._limits.position_min, self._limits.position_max
        for name, value, least, most in zip(self._names, command, low, high):
            if not least <= value <= most:
                raise ValueError(f'{name} = {value:g} m: expected {least:g} to {most:g}')
        words = ' '.join(str(round(value / MICRO)) for value in command)
        self._socket.sendto(words.encode(), self._address)
        return None

    def hold(self):
        self._socket.sendto(b'stop', self._address)

    def reading(self):
        while self._socket is not None:
            try:
                words = self._socket.recv(256)
            except BlockingIOError:
                break
            position = MICRO * np.array(words.split(), dtype=float)
            still = np.zeros_like(position)
            self._reading = ActuatorReading(time.monotonic(), position, still, still)
        return self._reading


def build(drives, lab_winches):
    return Winches(drives, lab_winches)


PART = Part(
    'drives',
    'lab_winches',
    WinchConfig,
    {
        'wound_cables': f'{__name__}:build',
        'wound_cables, emulated': 'lab_arm.emulated_winches:build',
    },
    'UDP winches',
)
