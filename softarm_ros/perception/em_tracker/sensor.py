"""An NDI tracker as a pose sensor."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
from collections.abc import Iterable

from softarm_ros.clock import MONOTONIC, Clock
from softarm_ros.geometry.sightings import Sighting
from softarm_ros.own_module import own_module
from softarm_ros.perception.captured import CapturedBody, CapturedFrame, CorruptFrameError
from softarm_ros.perception.em_tracker.config import EmTrackerConfig
from softarm_ros.perception.frame_sensor import FrameSensor
from softarm_ros.perception.sensor import STARTING, SensorProblem

PROCESS = 'softarm_ros.perception.em_tracker.tracker_process'
RESTART_S = 1.0
END_S = 2.0
SILENT_S = 5.0  # an unplugged device blocks the library for as long
# Until the first line: the library initialises all coils, one after another, and each twice.
START_S = 60.0
IDLE = b'{"idle"'
ERROR = b'{"error"'
REFUSED, PLUGGED = b'{"refused"', b'{"plugged"'
LONGEST_LINE = 65_536
_MM = 1.0e-3


class EmTrackerSensor(FrameSensor[EmTrackerConfig]):
    """
    Reads the coils of an NDI tracker; a `PoseSensor`.

    The library runs in a subprocess, which is restarted if it ends or stays silent, if the device
    cannot initialise a coil of the rig, and if a coil is plugged in while one of the rig is not
    seen. The time stamp of a frame is its number, which the device counts at a constant rate.
    """

    def __init__(self, config: EmTrackerConfig, frame_id: str, clock: Clock = MONOTONIC) -> None:
        super().__init__(config, frame_id, clock)
        self._process: subprocess.Popen[bytes] | None = None
        self._rest = b''
        self._open = False
        self._next_start_s = 0.0
        self._heard_s = 0.0
        self._starting = False  # whether the process has not written anything yet
        self._said = ''
        self._refused = ''  # coils that the device cannot initialise, and why
        self._wanted = {body.name for body in config.bodies}
        self._unseen = self._wanted  # coils that the newest frame lacks
        self._idle_s = -float('inf')  # when the device last answered without a new frame
        self._starts = 0
        self._handles: tuple[str, ...] | None = None

    def close(self) -> None:
        """See `PoseSensor`."""
        self._open = False
        self._end()

    def _listen(self) -> None:
        self._open = True

    def _listening(self) -> bool:
        return self._open

    def _receive(self, left_s: float) -> list[Sighting]:
        process = self._process or self._start()
        if process is None:
            self._clock.sleep(min(left_s, 0.05))
            return []
        return self._read_lines(process, min(left_s, 0.1))

    def _values(self) -> dict[str, str]:
        return {'starts': str(self._starts)}

    def _bodies_of_device(self) -> Iterable[str] | None:
        return self._handles

    def _silence(self) -> SensorProblem:
        """Return the problem that explains why no frames arrive."""
        if self._refused:
            return SensorProblem(
                'no-frames',
                'device',
                f'the NDI tracker at {self.config.port} cannot initialise {self._refused}',
                'look at the plug of that coil and at the tool file in it (SROM), or try another '
                'coil; it is tried again',
            )
        if self._starting and not self._said:
            return SensorProblem(
                STARTING,
                'device',
                f'the NDI tracker at {self.config.port} is being started, one coil after another',
                'wait until all coils are initialised',
            )
        idle = self._idle_s > self._intake.last_arrival_s()
        if idle and self._clock.now_s() - self._idle_s < SILENT_S:
            return SensorProblem(
                'no-frames',
                'device',
                f'the NDI tracker at {self.config.port} answers but counts no frames',
                'look at its field generator and at its coils, or switch it off and on',
            )
        return SensorProblem(
            'no-server',
            'device',
            f'no NDI tracker answers at {self.config.port}'
            + (f' ({self._said})' if self._said else ''),
            'switch it on, look at its cable and name (softarm ports), and whether this '
            'user may open the port (group dialout)',
        )

    # -- the process

    def _start(self) -> subprocess.Popen[bytes] | None:
        now = self._clock.now_s()
        if now < self._next_start_s:
            return None
        self._next_start_s = now + RESTART_S
        self._heard_s, self._rest, self._starting = now, b'', True
        self._starts += 1
        self._process = subprocess.Popen(
            own_module(PROCESS, self.config.port),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        return self._process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:  # the library ignores signals while it waits
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()

    def _read_lines(self, process: subprocess.Popen[bytes], timeout_s: float) -> list[Sighting]:
        assert process.stdout is not None
        readable, _, _ = select.select([process.stdout], [], [], timeout_s)
        if not readable:
            limit_s = START_S if self._starting else SILENT_S
            if self._clock.now_s() - self._heard_s > limit_s:
                self._said = self._said or 'the library is silent'
                self._end()
            return []
        data = os.read(process.stdout.fileno(), LONGEST_LINE)
        if not data:
            self._end()  # the process has ended; its last line was the reason, unless it crashed
            code = process.returncode
            if code < 0 and code != -signal.SIGTERM:
                name = signal.Signals(-code).name
                self._said = f'the process of the library was killed by {name}'
            return []
        *lines, self._rest = (self._rest + data).split(b'\n')
        seen: list[Sighting] = []
        for line in lines:
            # A line may end the process; the rest of what it has written is then not used.
            if self._process is process and not self._is_idle(line):
                sighting = self._take(line)
                seen += [] if sighting is None else [sighting]
        return seen

    def _is_idle(self, line: bytes) -> bool:
        """Return whether a line reports an answer without a new frame; record its time."""
        now, idle = self._clock.now_s(), line.startswith(IDLE)
        if idle:
            self._idle_s = now
        if self._starting or not idle:  # a device that stays idle is restarted
            self._heard_s = now
        self._starting = False
        return idle

    def _take(self, line: bytes) -> Sighting | None:
        if line.startswith(ERROR):  # why the process ends: no reply was corrupt
            with contextlib.suppress(ValueError, KeyError):
                self._said, self._refused = str(json.loads(line)['error']), ''
            return None
        if line.startswith(REFUSED):
            self._take_refused(line)
            return None
        if line.startswith(PLUGGED):
            if self._unseen:
                self._said = 'a coil was plugged in, so the library starts again'
                self._end()
            return None
        try:
            frame = self.frame_of(line).of_arm(self._wanted)
        except CorruptFrameError as error:
            self._report_corrupt(
                self._clock.now_s(),
                'device',
                f'a reply was not used: {error}',
                'check the cable, and keep it away from cables of motors; a device that was '
                'switched off and on is started again',
            )
            return None
        self._said = self._refused = ''
        return self._intake.take(frame)

    def _take_refused(self, line: bytes) -> None:
        """Start again if the device cannot initialise a coil of the rig; others do not matter."""
        refused: dict[str, str] = {}
        with contextlib.suppress(ValueError, KeyError):
            refused = json.loads(line)['refused']
        told = [f'coil {name} ({why})' for name, why in refused.items() if name in self._wanted]
        if told:
            self._refused = ', '.join(told)
            self._end()

    def frame_of(self, line: bytes) -> CapturedFrame:
        """
        Return the frame in a line from the process.

        Raises
        ------
        CorruptFrameError
            If the line reports an unreadable reply, or is not a frame.

        """
        try:
            said = json.loads(line)
            if 'unread' in said:
                self._said = str(said['unread'])
                raise CorruptFrameError(self._said)
            return self._frame(int(said['frame']), float(said['time_s']), said['tools'])
        except (ValueError, KeyError, TypeError, IndexError, OverflowError) as error:
            if isinstance(error, CorruptFrameError):
                raise
            raise CorruptFrameError(f'{type(error).__name__}: {error}') from error

    def _frame(self, number: int, arrived_s: float, tools: list[list[float]]) -> CapturedFrame:
        bodies: list[CapturedBody] = []
        lost: list[str] = []
        for handle, quality, *numbers in tools:
            name = f'{handle:02X}'
            if numbers[0] is None:
                lost.append(name)
                continue
            w, x, y, z, *position = map(float, numbers)
            where = (_MM * position[0], _MM * position[1], _MM * position[2])
            bodies.append(CapturedBody(name, where, (x, y, z, w), _MM * float(quality or 0.0)))
        self._handles = tuple(sorted([body.name for body in bodies] + lost))
        self._unseen = self._wanted - {body.name for body in bodies}
        time_s = number / self.config.rate_hz
        latency_s = self.config.device_latency_s
        return CapturedFrame(
            number, time_s, time_s + latency_s, arrived_s, tuple(bodies), (), tuple(lost)
        )
