"""Emulate an NDI Aurora behind a pseudo-terminal: ASCII commands and replies with CRC-16."""

from __future__ import annotations

import contextlib
import math
import os
import pty
import select
import tty
from collections.abc import Sequence

import numpy as np

from softarm_ros.drivers.polling import PollingThread
from softarm_ros.emulation.tracked_scene import Scene, TrackedScene
from softarm_ros.geometry.poses import pose
from softarm_ros.geometry.rotations import quaternion_from_matrix
from softarm_ros.perception.em_tracker.config import EmTrackerConfig
from softarm_ros.plant.mocap import PoseMeasurement

WAIT_S = 0.05
OWN_FAULTS = ('corrupt', 'die', 'outside')
VERSION = (
    'Northern Digital Inc.\nAURORA Control Firmware\nNDI S/N: 0000\n'
    'Freeze Tag: AURORA Rev 007\nFreeze Date: 00/00/00\n'
)
_PORT_STATUS = 0x31  # occupied, initialised, enabled
_EARLY = 1e-3  # share of a period: rounding of the clock must not shift a frame
_OUT_OF_VOLUME = 0x40
_NOT_VOUCHED_FOR = 0x0800  # option of TX: also send poses outside the measurement volume
_OUTSIDE_M = 0.03  # error of such a pose


def crc16(data: bytes) -> int:
    """Return the CRC-16 (polynomial 0x8005, reflected, from 0) of a command or reply."""
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ 0xA001 if crc & 1 else crc >> 1
    return crc


class NdiDevice:
    """
    Answers like an Aurora with one coil per body of a scene; an `EmulatedSensor`.

    Its own faults, in addition to those of the scene: `corrupt` (bits of replies are flipped),
    `die` (it does not answer), `outside` (the last coil is outside the measurement volume).
    """

    def __init__(self, config: EmTrackerConfig, scene: TrackedScene) -> None:
        self._config = config
        self.scene = scene
        self._master = self._slave = -1
        self._newest: tuple[int, Scene] | None = None  # frame number, scene
        self._initialised: set[str] = set()
        self._enabled: set[str] = set()
        self._tracking = False
        self._replies = 0
        # A real device has its own processor: it does not wait for the simulated arm.
        self._thread = PollingThread(
            'ndi device', self._answer, lambda error: None, goes_first=True
        )

    # -- as an emulated sensor

    def start(self) -> dict[str, object]:
        """See `EmulatedSensor`."""
        self._master, self._slave = pty.openpty()
        tty.setraw(self._master)
        tty.setraw(self._slave)
        self._thread.start()
        return {'port': os.ttyname(self._slave)}

    def deliver(self, measured: Sequence[PoseMeasurement], now_s: float) -> None:
        """See `EmulatedSensor`."""
        for scene in self.scene.passing(measured, now_s):
            # The arm may be measured more often than this device samples: its frame is the first
            # exposure in each of its periods, and the frame number states the period.
            number = math.floor(scene.exposed_s * self._config.rate_hz + _EARLY)
            if self._newest is None or number != self._newest[0]:
                self._newest = (number, scene)

    def inject(self, fault: str) -> str:
        """See `EmulatedSensor`."""
        return self.scene.inject(fault)

    def report(self) -> dict[str, str]:
        """See `EmulatedSensor`."""
        return {
            'ndi_replies': str(self._replies),
            'ndi_fault': self.scene.told_faults(),
        }

    def close(self) -> None:
        """See `EmulatedSensor`."""
        self._thread.close()
        for end in (self._master, self._slave):
            if end >= 0:
                os.close(end)
        self._master = self._slave = -1

    # -- protocol

    def _answer(self, thread: PollingThread) -> None:
        heard = b''
        while not thread.ending.is_set():
            readable, _, _ = select.select([self._master], [], [], WAIT_S)
            if not readable:
                continue
            with contextlib.suppress(OSError):
                heard += os.read(self._master, 4096)
            *commands, heard = heard.split(b'\r')
            for command in commands:
                self._reply(command)

    def _reply(self, command: bytes) -> None:
        if 'die' in self.scene.faults:
            return
        text = self._text(command).encode()
        reply = text + b'%04X' % crc16(text)
        if self._tracking:
            # A non-ASCII byte would crash the library, and its process would be restarted.
            reply = self.scene.garbled(reply, share=0.1, most=1, of=7)
        reply += b'\r'
        self._replies += 1
        with contextlib.suppress(OSError):
            os.write(self._master, reply)

    def _text(self, command: bytes) -> str:
        """Return the reply to a command, without its checksum."""
        if len(command) < 5 or command[-4:] != b'%04X' % crc16(command[:-4]):
            return 'ERROR05'
        word, _, rest = command[:-4].decode('ascii', 'replace').partition(':')
        if word == 'INIT':
            self._initialised.clear()
            self._enabled.clear()
            self._tracking = False
            return 'OKAY'
        if word in ('COMM', 'TSTART', 'TSTOP'):
            self._tracking = word == 'TSTART' or (word == 'COMM' and self._tracking)
            return 'OKAY'
        if word == 'VER':
            return VERSION
        if word == 'GETINFO':
            return f'{rest}=007.000;1;0;0;16;;NDI firmware'
        if word == 'PHSR':
            return self._handles(rest)
        if word in ('PINIT', 'PENA'):
            handle = rest[:2].upper()
            if handle not in self.scene.names:
                return 'ERROR0D'
            (self._initialised if word == 'PINIT' else self._enabled).add(handle)
            return 'OKAY'
        if word == 'TX':
            return self._frame(int(rest or '0001', 16)) if self._tracking else 'ERROR0C'
        return 'ERROR01'

    def _handles(self, which: str) -> str:
        """Return the ports to free (01), to initialise (02) or to enable (03), or all ports."""
        names = sorted(self.scene.names)
        known = {
            '01': [],
            '02': [name for name in names if name not in self._initialised],
            '03': [n for n in names if n in self._initialised and n not in self._enabled],
        }
        found = known.get(which, names)
        return f'{len(found):02X}' + ''.join(f'{name}001' for name in found)

    def _frame(self, options: int) -> str:
        number, scene = self._newest or (0, None)
        enabled = sorted(self._enabled)
        lines = f'{len(enabled):02X}'
        for handle in enabled:
            seen = None if scene is None else scene.bodies.get(handle)
            lines += handle
            status = _PORT_STATUS
            if 'outside' in self.scene.faults and handle == self.scene.names[-1]:
                status |= _OUT_OF_VOLUME
                wrong = pose(np.eye(3), [_OUTSIDE_M, 0.0, 0.0])
                seen = wrong @ seen if seen is not None and options & _NOT_VOUCHED_FOR else None
            if seen is None:
                lines += 'MISSING'
            else:
                x, y, z, w = quaternion_from_matrix(seen[:3, :3])
                lines += ''.join(f'{round(1e4 * part):+06d}' for part in (w, x, y, z))
                lines += ''.join(f'{round(1e5 * part):+07d}' for part in seen[:3, 3])
                lines += f'{2000:+06d}'
            lines += f'{status:08X}{number:08X}\n'
        return lines + '0000'


def build(config: EmTrackerConfig, sections: Sequence[str], seed: int) -> NdiDevice:
    """Return the device, not yet started."""
    return NdiDevice(config, TrackedScene(config, sections, seed, OWN_FAULTS))
