"""Runs of simulated arms that record estimators, observing or in the loop, and the truth."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from softarm_reproduction.nominal import NOMINAL
from softarm_ros.control.config import EstimatorConfig, TrackerConfig
from softarm_ros.control.estimator import Estimate, Estimator, Health, Innovations
from softarm_ros.control.measurement_frame import MeasurementFrame
from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.poses import displacement
from softarm_ros.plant.config import MocapConfig
from softarm_ros.plant.mocap import Mocap, PoseMeasurement
from softarm_ros.rigs.loader import load_rig
from softarm_ros.rigs.schema import Rig
from softarm_ros.rigs.sensors import KIND, Sensors
from softarm_ros.runtime.arm_assembly import build_plant
from softarm_ros.runtime.assembly import build_control_loop, build_estimator, build_pose_intake
from softarm_ros.runtime.loop import Phase
from softarm_ros.runtime.pose_intake import measure, sighting_of

RIGS = (
    'cable_arm_single',
    'cable_arm',
    'trunk',
    'pneumatic_arm',
    'fishbone_arm',
    'hydraulic_arm',
    'pam_arm',
)
NOISE_M, DELAY_S = 2.0e-4, 0.01  # sensor noise and delay for which the bars are stated
# Fields of a machine's pose sensor that hold the remaining calibration errors.
_CALIBRATION = tuple(f'pose_sensor.{of}' for of in ('frame_', 'marker_offset_m', 'drift_m'))
_TURN = 10.0  # orientation noise per position noise [rad/m] of a marker triangle of 0.1 m


class SpoilingMocap(Mocap):
    """A sensor that displaces a share of its frames by a distance [m], or drops them."""

    def __init__(self, config: MocapConfig, seed: int, share: float, by_m: float | None) -> None:
        super().__init__(config, seed)
        self._rng = np.random.default_rng([seed, 5])
        self._share, self._by_m = share, by_m

    def poll(self, now_s: float) -> list[PoseMeasurement]:
        """Return the arrived frames, a share of them randomly displaced or dropped."""
        frames = [self._spoiled(frame) for frame in super().poll(now_s)]
        return [frame for frame in frames if frame is not None]

    def _spoiled(self, frame: PoseMeasurement) -> PoseMeasurement | None:
        away = self._rng.standard_normal(3)
        if self._rng.random() >= self._share:
            return frame
        if self._by_m is None:
            return None
        tips = frame.section_tips.copy()
        tips[:, :3, 3] += self._by_m * away / np.linalg.norm(away)
        return PoseMeasurement(frame.stamp_s, tips, frame.frame_id)


class OtherNoiseMocap(Mocap):
    """A sensor with a different noise sequence and otherwise unchanged random numbers."""

    def __init__(self, config: MocapConfig, seed: int) -> None:
        super().__init__(config, seed)
        streams = np.random.SeedSequence([seed, 6]).spawn(2)
        self._position_noise, self._orientation_noise = map(np.random.default_rng, streams)


class RememberingMocap(Mocap):
    """
    A sensor that records the true poses of its frames.

    Attributes
    ----------
    seen : list of (float, (sections, 4, 4))
        Exposure times [s] and true poses of all frames, arrived or still delayed.

    """

    def __init__(self, config: MocapConfig, seed: int) -> None:
        super().__init__(config, seed)
        self.seen: list[tuple[float, Array]] = []

    def capture(self, now_s: float, section_tips: Array) -> None:
        """Capture a frame of the true poses (sections, 4, 4)."""
        before = len(self._under_way)
        super().capture(now_s, section_tips)
        if len(self._under_way) > before:
            self.seen.append((now_s, section_tips.copy()))


@dataclass
class Track:
    """
    The output of an estimator at each cycle: positions [m], pose errors, covariances.

    `errors` are truth minus estimate (6,), position first, in base axes.
    """

    tips: list[Array] = field(default_factory=list)
    errors: list[Array] = field(default_factory=list)
    covariances: list[Array] = field(default_factory=list)
    health: list[Health] = field(default_factory=list)
    innovations: list[Innovations] = field(default_factory=list)

    def add(self, estimate: Estimate, truth: Array) -> None:
        """Add an estimate and the true pose (4, 4) of the tip."""
        known = bool(np.isfinite(estimate.tip).all())
        error = displacement(estimate.tip, truth) if known else np.full(6, np.nan)
        error[:3] = truth[:3, 3] - estimate.tip[:3, 3]
        covariance = estimate.tip_covariance
        self.tips.append(estimate.tip[:3, 3].copy())
        self.errors.append(error)
        self.covariances.append(np.full((6, 6), np.nan) if covariance is None else covariance)
        self.health.append(estimate.health)
        self.innovations.append(estimate.innovations or Innovations())

    def error_m(self) -> Array:
        """Return the distances (n,) of the estimates from the true tip [m]."""
        return np.linalg.norm(np.array(self.errors)[:, :3], axis=1)

    def nees(self, rows: slice = slice(0, 3)) -> Array:
        """Return the squared errors (n,), normalised by their covariances."""
        errors = np.array(self.errors)[:, rows]
        covariances = np.array(self.covariances)[:, rows, rows]
        return np.einsum(
            'ni,ni->n', errors, np.linalg.solve(covariances, errors[..., None])[..., 0]
        )

    def innovated(self, on: Array) -> tuple[Array, Array]:
        """Return rows (n,) and sums of squares (n,) of the innovations at selected cycles (n,)."""
        rows = np.array([one.rows for one in self.innovations])
        squares = np.array([one.squares for one in self.innovations])
        return np.diff(rows, prepend=0)[on], np.diff(squares, prepend=0.0)[on]


@dataclass
class Run:
    """
    The record of one run.

    Attributes
    ----------
    time_s, phase, truth, raw, reference, command, pace
        Per cycle: simulated time, phase, true tip (3,), newest measured tip (3,), current
        reference (3,), command (m,), pace along the path.
    postures, actuations
        Per cycle: the model's section tips (sections, 4, 4) at the command, and the measured
        actuation (m,).
    tracks : mapping
        Tracks of the observing estimators; `loop` is that of the estimator in the loop.

    """

    time_s: list[float] = field(default_factory=list)
    phase: list[Phase] = field(default_factory=list)
    truth: list[Array] = field(default_factory=list)
    raw: list[Array] = field(default_factory=list)
    reference: list[Array] = field(default_factory=list)
    command: list[Array] = field(default_factory=list)
    pace: list[float] = field(default_factory=list)
    postures: list[Array] = field(default_factory=list)
    actuations: list[Array] = field(default_factory=list)
    tracks: dict[str, Track] = field(default_factory=dict)

    def tracking(self) -> Array:
        """Return a mask (n,) of the cycles that track the path."""
        return np.array([phase is Phase.TRACK for phase in self.phase])

    def raw_error_m(self) -> Array:
        """Return the distances (n,) of the newest measurement from the current true tip [m]."""
        return np.linalg.norm(np.array(self.raw) - np.array(self.truth), axis=1)

    def tracking_error_m(self) -> Array:
        """Return the distances (n,) of the true tip from the current reference [m]."""
        return np.linalg.norm(np.array(self.reference) - np.array(self.truth), axis=1)


def rig_of(
    name: str,
    *,
    speed: float = 1.0,
    estimator: str = 'direct',
    noise_m: float | None = NOISE_M,
    delay_s: float | None = DELAY_S,
    dropouts: bool = True,
    fields: Mapping[str, object] | None = None,
    nominal: bool = True,
    calibrated: bool = False,
) -> Rig:
    """
    Return a rig with a given sensor noise and delay (None: its own), speed and estimator.

    Without `nominal`, every seed is another machine. With `calibrated`, its base frame and markers
    are known exactly, because no estimator can observe their remaining calibration errors.
    """
    rig = load_rig(name, NOMINAL) if nominal else load_rig(name)
    plant = rig.plant_for('sim')
    changes: dict[str, float] = {} if dropouts else {'dropout_probability': 0.0}
    if noise_m is not None:
        changes |= {'position_noise_m': noise_m, 'orientation_noise_rad': _TURN * noise_m}
    if delay_s is not None:
        changes['delay_s'] = delay_s
    mocap = plant.mocap.model_copy(update=changes)
    if calibrated and plant.machine is not None:
        kept = {
            field: spread
            for field, spread in plant.machine.spreads.items()
            if not field.startswith(_CALIBRATION)
        }
        machine = plant.machine.model_copy(update={'spreads': kept})
        plant = plant.model_copy(update={'machine': machine})
    feedback = rig.feedback.model_copy(
        update={'position_noise_m': mocap.position_noise_m, 'delay_s': mocap.delay_s}
    )
    path = rig.trajectories[rig.default_trajectory]
    faster = path.model_copy(update={'speed': speed * path.speed})
    sensed = (
        {'orientation_noise_rad': mocap.orientation_noise_rad} if estimator != 'direct' else {}
    )
    return rig.model_copy(
        update={
            'plant': plant.model_copy(update={'mocap': mocap}),
            'sensors': Sensors.of({**rig.sensors.devices(), KIND: feedback}, feedback),
            'trajectories': {**rig.trajectories, rig.default_trajectory: faster},
            'estimator': EstimatorConfig.model_validate(
                {'kind': estimator, **sensed, **(fields or {})}
            ),
        }
    )


def with_estimator(rig: Rig, kind: str, **fields: object) -> Rig:
    """Return the same rig with another estimator."""
    turn = rig.plant_for('sim').mocap.orientation_noise_rad
    own = {} if kind == 'direct' else {'orientation_noise_rad': turn, **fields}
    return rig.model_copy(
        update={'estimator': EstimatorConfig.model_validate({'kind': kind, **own})}
    )


def with_gain(rig: Rig, factor: float) -> Rig:
    """Return the same rig with its feedback gain multiplied by a factor."""
    fields = rig.tracker.model_dump()
    fields['feedback_gain_1_s'] *= factor
    return rig.model_copy(update={'tracker': TrackerConfig.model_validate(fields)})


def run(
    rig: Rig,
    beside: Sequence[str] = (),
    *,
    seed: int = 0,
    seconds: float | None = None,
    sensor: Callable[[MocapConfig, int], Mocap] | None = None,
    blind: Callable[[float], bool] | None = None,
    tip_only: bool = False,
) -> Run:
    """
    Drive the default path and return the record of the run.

    Parameters
    ----------
    rig : Rig
        Rig whose estimator closes the loop.
    beside : sequence of str
        Kinds of the observing estimators.
    seed : int
        Seed of all random numbers.
    seconds : float, optional
        Duration of tracking; default: the whole path.
    sensor : callable, optional
        Returns the sensor to use instead of the rig's own, from that sensor's config and the seed.
    blind : callable, optional
        Returns whether the sensor is off, from the time since tracking began [s].
    tip_only : bool
        Give the observing estimators only the position of the tip.

    """
    loop = build_control_loop(rig, None, laps=1)
    plant = build_plant(rig, seed)
    if sensor is not None:
        plant.look_with(sensor(rig.plant_for('sim').mocap, seed))
    intake = build_pose_intake(rig, loop.model)
    watching: dict[str, Estimator] = {
        kind: build_estimator(with_estimator(rig, kind), loop.model) for kind in beside
    }
    result = Run(tracks={name: Track() for name in (*watching, 'loop')})
    loop.start(plant.time_s)
    raw, began = np.full(3, np.nan), None
    while loop.phase is not Phase.DONE:
        now = plant.time_s
        if loop.phase is Phase.TRACK and began is None:
            began = now
        tracked = 0.0 if began is None else now - began
        if seconds is not None and tracked >= seconds:
            break
        if blind is not None:
            plant.mocap_enabled = began is None or not blind(tracked)
        frames = measure(plant, intake, now)
        for frame in frames:
            raw = frame.section_tips[-1, :3, 3]
            whole = None if tip_only else frame.section_tips
            sighting = sighting_of(MeasurementFrame(round(1e9 * frame.stamp_s), raw, whole))
            for one in watching.values():
                one.observe(sighting)
        taken = intake.take(now)
        loop.pace = intake.estimator.pace(now)
        truth = plant.true_section_tips()[-1]
        said = {name: one.estimate(now) for name, one in watching.items()}
        said['loop'] = intake.newest
        seen = {name: estimate for name, estimate in said.items() if estimate is not None}
        record = len(seen) == len(said) and bool(np.isfinite(raw).all())
        if record:
            result.time_s.append(now)
            result.phase.append(loop.phase)
            result.truth.append(truth[:3, 3].copy())
            result.raw.append(raw.copy())
            for name, estimate in seen.items():
                result.tracks[name].add(estimate, truth)
        output = loop.cycle(now, None if taken is None else taken[0])
        if record:
            result.reference.append(output.reference_position.copy())
            result.command.append(output.actuation.copy())
            result.pace.append(loop.pace)
        actuation = loop.tracker.measured(plant.actuator_state().position)
        if record:
            result.postures.append(loop.tracker.posture.section_tips.copy())
            result.actuations.append(actuation.copy())
        for one in (intake.estimator, *watching.values()):
            one.command(now, loop.tracker.posture)
            one.actuated(now, actuation)
        plant.step(loop.limits.check(output.actuation), loop.period_s)
    return result
