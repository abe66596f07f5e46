"""The view of a body tracker on a simulated arm, in its own frame and time, with its faults."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from softarm_ros.emulation.emulated_arm import EmulationError
from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.poses import inverse_pose, pose
from softarm_ros.geometry.rotations import exp_so3, rotation_x, rotation_z
from softarm_ros.perception.base_calibration_file import read_base
from softarm_ros.perception.base_frame import BaseCalibration, moved
from softarm_ros.perception.config import PoseSensorConfig
from softarm_ros.perception.sensor import SensorError
from softarm_ros.plant.mocap import PoseMeasurement

# Pose of the arm's base in the room, which is the tracker's frame.
X_RB = pose(rotation_z(0.6) @ rotation_x(np.radians(172.0)), [0.41, -0.23, 1.37])
FLIP = pose(rotation_z(np.pi), np.zeros(3))
EPOCH_S = 5_000.0  # time since the device was switched on
CLOCK_STEP_S = 0.7
JITTER_S = 0.03
FAULTS = ('blind', 'hide', 'swap', 'flip', 'jitter', 'clock', 'clock-back', 'rename', 'mend')
FAULTS_OF_BODIES = ('hide', 'swap', 'flip', 'rename')


@dataclass(frozen=True)
class Scene:
    """
    One exposure, as the device reports it.

    Attributes
    ----------
    number : int
        Number of the exposure.
    exposed_s, sent_s : float
        Times on the device's clock [s].
    bodies : dict
        Pose (4, 4) by name; None if the body is not seen.
    points : dict
        Position (3,) by name.

    """

    number: int
    exposed_s: float
    sent_s: float
    bodies: dict[str, Array | None] = field(default_factory=dict)
    points: dict[str, Array] = field(default_factory=dict)


class TrackedScene:
    """
    Turns measurements of a plant's cameras into exposures, with faults on request; faults add up.

    The plant's measurement includes noise of the section tips; the base body gets equal noise.

    Parameters
    ----------
    config
        Names and places of the tracked bodies and points.
    sections
        Names of the sections, base to tip.
    seed
        Seed of the base's noise, of jitter, and of the bits that a server flips.
    own_faults
        Additional faults of the scene's server, which reads `faults`.

    Attributes
    ----------
    frame : (4, 4)
        Pose of the base in the frame of the device.

    """

    def __init__(
        self,
        config: PoseSensorConfig,
        sections: Sequence[str],
        seed: int,
        own_faults: Sequence[str] = (),
    ) -> None:
        self._places = config.places(tuple(sections))
        if lacking := config.not_emulated(tuple(sections)):
            raise EmulationError(lacking)
        self._config = config
        self._sections = len(sections)
        self._body_names = [body.name for body in config.bodies]
        self._noise = np.random.default_rng([seed, 0])
        self._random = np.random.default_rng([seed, 1])
        self._queue: deque[tuple[float, Scene]] = deque()
        self._clock_s = EPOCH_S
        self._number = 0
        self._faults: frozenset[str] = frozenset()
        self._own_faults = tuple(own_faults)
        self._garbling = np.random.default_rng([seed, 2])
        self.frame = base_frame(config, seed)

    @property
    def names(self) -> list[str]:
        """Present names of the bodies on the device."""
        return [self._called(name) for name in self._body_names]

    @property
    def points(self) -> list[str]:
        """Names of the single markers."""
        return [point.name for point in self._config.points]

    @property
    def faults(self) -> frozenset[str]:
        """Present faults."""
        return self._faults

    def told_faults(self) -> str:
        """Return the present faults as text for reports: `corrupt, flip`, or `none`."""
        return ', '.join(sorted(self._faults)) or 'none'

    def inject(self, fault: str) -> str:
        """
        Add a fault, step the clock, or end all faults with `mend`.

        Raises
        ------
        ValueError
            If there is no such fault; the message lists the known ones.

        """
        of_scene = [f for f in FAULTS if self._body_names or f not in FAULTS_OF_BODIES]
        known = (*of_scene, *self._own_faults)
        if fault not in known:
            raise ValueError(f'no fault {fault!r} here; known: {", ".join(known)}')
        if fault in ('clock', 'clock-back'):
            self._clock_s += CLOCK_STEP_S if fault == 'clock' else -CLOCK_STEP_S
        elif fault == 'mend':
            self._faults = frozenset()
        else:
            self._faults |= {fault}
        return fault

    def device_time_s(self, simulated_s: float) -> float:
        """Return the device's time [s] at a simulated time [s]."""
        return simulated_s + self._clock_s

    def passing(self, measured: Sequence[PoseMeasurement], now_s: float) -> list[Scene]:
        """Take exposures at a simulated time [s]; return the scenes that the device sends now."""
        for exposure in measured:
            self.expose(exposure, now_s)
        return self.take(now_s)

    def garbled(self, data: bytes, share: float = 0.5, most: int = 19, of: int = 8) -> bytes:
        """Return a packet; with `corrupt`, flip some of the `of` lowest bits of its bytes."""
        if 'corrupt' not in self._faults or self._garbling.random() >= share:
            return data
        bits = bytearray(data)
        for _ in range(self._garbling.integers(1, most + 1)):
            bits[self._garbling.integers(len(bits))] ^= 1 << int(self._garbling.integers(of))
        return bytes(bits)

    def expose(self, measured: PoseMeasurement, now_s: float) -> None:
        """Take an exposure that reaches the device's software at a simulated time [s]."""
        self._number += 1
        if 'blind' in self._faults:
            return
        scene = Scene(self._number, measured.stamp_s, now_s, *self._seen(measured.section_tips))
        late_s = JITTER_S * self._random.random() if 'jitter' in self._faults else 0.0
        self._queue.append((now_s + late_s, scene))

    def take(self, now_s: float) -> list[Scene]:
        """Return the scenes to send now, with times of the device's clock."""
        found: list[Scene] = []
        while self._queue and self._queue[0][0] <= now_s:
            scene = self._queue.popleft()[1]
            found.append(
                replace(
                    scene,
                    exposed_s=self.device_time_s(scene.exposed_s),
                    sent_s=self.device_time_s(scene.sent_s),
                )
            )
        return found

    def _seen(self, tips: Array) -> tuple[dict[str, Array | None], dict[str, Array]]:
        poses: dict[str, Array | None] = {}
        for name in self._body_names:
            place = self._places[name]
            seen = self._tip(name, tips) if place.section >= 0 else self._noisy_base()
            poses[name] = self.frame @ seen @ place.offset
        points: dict[str, Array] = {}
        for point in self._config.points:
            place = self._places[point.name]
            seen = self._tip(point.name, tips) if place.section >= 0 else np.eye(4)
            points[point.name] = (self.frame @ seen @ place.offset)[:3, 3]
        return self._broken(poses), points

    def _tip(self, name: str, tips: Array) -> Array:
        """Return the measured tip of a body or point; some arms measure only the last ones."""
        from_the_end = self._sections - self._places[name].section
        if from_the_end > len(tips):
            raise EmulationError(
                f'{name}: the simulated cameras of this arm see its last {len(tips)} sections'
            )
        tip: Array = tips[-from_the_end]
        return tip

    def _noisy_base(self) -> Array:
        shift = self._config.position_noise_m * self._noise.standard_normal(3)
        turn = self._config.orientation_noise_rad * self._noise.standard_normal(3)
        return pose(exp_so3(turn), shift)

    def _broken(self, poses: dict[str, Array | None]) -> dict[str, Array | None]:
        """Return the poses with faults applied to the last body, or the last two."""
        if not self._body_names:
            return poses
        last = self._body_names[-1]
        seen = poses[last]
        if 'hide' in self._faults:
            poses[last] = None
        elif 'flip' in self._faults and seen is not None:
            poses[last] = seen @ FLIP
        if 'swap' in self._faults and len(self._body_names) > 1:
            other = self._body_names[-2]
            poses[last], poses[other] = poses[other], poses[last]
        return {self._called(name): seen for name, seen in poses.items()}

    def _called(self, name: str) -> str:
        renamed = 'rename' in self._faults and name == self._body_names[-1]
        return f'{name} 2' if renamed else name


def base_frame(config: PoseSensorConfig, seed: int) -> Array:
    """
    Return the pose (4, 4) of the base in the device's frame: the calibration plus an error.

    The error is drawn from the covariance that the calibration states.

    Raises
    ------
    EmulationError
        If the calibration cannot be read.

    """
    if config.base_from == 'sensor':
        return np.eye(4)
    calibration = _calibration(config)
    if calibration is None:
        return X_RB
    random = np.random.default_rng([seed, 4])
    return moved(calibration.pose, random.multivariate_normal(np.zeros(6), calibration.covariance))


def base_error(config: PoseSensorConfig, seed: int) -> Array:
    """
    Return the motion (4, 4) of poses in the base frame that the calibration error causes.

    Identity without a calibration; raises as `base_frame`.
    """
    calibration = _calibration(config)
    if calibration is None:
        return np.eye(4)
    return inverse_pose(calibration.pose) @ base_frame(config, seed)


def _calibration(config: PoseSensorConfig) -> BaseCalibration | None:
    if config.base_calibration is None:
        return None
    try:
        return read_base(config.base_calibration)
    except SensorError as error:
        raise EmulationError(str(error)) from error
