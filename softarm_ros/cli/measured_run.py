"""Commands and measurements of an arm, from a CSV file or a bag, in SI units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from softarm_ros.cli.actuation import shares_reached
from softarm_ros.cli.cli_errors import UsageError
from softarm_ros.geometry.arrays import Array
from softarm_ros.rigs.field_values import values_of, with_values
from softarm_ros.rigs.recording import MarkerConfig, RecordingConfig
from softarm_ros.rigs.schema import Rig

Rows = NDArray[np.int64]

FLIP_RAD = np.deg2rad(60.0)
APART_S = 0.5  # between rows: above it, an arm may turn by more than that
ROUNDING_S = 1e-6  # of recorded times


class MeasurementError(UsageError):
    """Measurements cannot be read; the message names the file, column or topic, and the error."""


@dataclass(frozen=True)
class Mount:
    """Pose of the base frame in the measurement frame: `position` (3,) [m], `rotation` (3, 3)."""

    position: Array
    rotation: Array


@dataclass(frozen=True)
class Followed:
    """
    Commands at all times of a file, including those without measurements.

    Attributes
    ----------
    time_s : (k,)
        Increasing times.
    commands : (k, m)
        As recorded, in SI units of the actuators; measured positions if the file has them.
    commanded : (k, m), optional
        Actuator commands, if `commands` holds measured positions.
    rows : (n,)
        Indices of the rows of the run among these times.

    """

    time_s: Array
    commands: Array
    commanded: Array | None
    rows: Rows


@dataclass(frozen=True)
class MeasuredRun:
    """
    Measurements of one file or bag.

    Attributes
    ----------
    source : str
        Name of the file.
    time_s : (n,), optional
        Times of the rows; None if rows are poses at rest.
    commands : (n, m)
        Actuation in effect at each row, in SI units of the actuators: measured positions, or
        commands with the delay and the shares reached applied.
    commanded : (n, m), optional
        Commands at each row, if `commands` holds measured positions.
    points : dict of (n, 3)
        Measured positions [m] by name.
    places : dict of MarkerConfig
        Places of these points on the arm.
    axes : dict of (n, 3)
        Measured z axes of section tips, unit vectors; NaN where markers were mistaken.
    mount : Mount
        Mount of the arm in the measurement frame.
    notes : tuple of str
        Notes about rows left out, and other remarks.
    tip_force : (n, 3), optional
        Measured force [N], in the frame of the tip.
    remembered : (n, f), optional
        Features of the past commands, if the rig has a residual.
    lagging : (n, f), optional
        States of the actuators' hysteresis, if the rig has some (`Hysteresis.remembered`).
    in_base : bool
        Whether measurements are in the base frame regardless of the rig's `recording`: those of a
        bag or a file of `softarm excite` are.
    around : dict of float
        Fields of the rig stated by the file: tip weight and gravity in the base frame.
    followed : Followed, optional
        Commands at all times of a file, if the run has only some of its rows: delay and memory
        depend on the commands in between.

    """

    source: str
    time_s: Array | None
    commands: Array
    points: dict[str, Array]
    places: dict[str, MarkerConfig]
    axes: dict[str, Array]
    mount: Mount
    notes: tuple[str, ...] = ()
    tip_force: Array | None = None
    remembered: Array | None = None
    lagging: Array | None = None
    in_base: bool = False
    around: dict[str, float] = field(default_factory=dict)
    commanded: Array | None = None
    followed: Followed | None = None

    def __len__(self) -> int:
        return len(self.commands)

    @property
    def asked(self) -> Array:
        """Return the commands (n, m), also if `commands` holds measured positions."""
        return self.commands if self.commanded is None else self.commanded

    def as_it_was(self, rig: Rig) -> Rig:
        """
        Return the rig with the tip weight and the gravity of this run.

        Raises
        ------
        MeasurementError
            If a tip weight is stated although the measured tip force already includes it.

        """
        if values_of(rig, list(self.around)) != self.around:
            rig = with_values(rig, self.around)
        if self.tip_force is not None and rig.tip_load_kg > 0.0:
            raise MeasurementError(
                f'{self.source}: tip_load_kg = {rig.tip_load_kg:g} beside a measured force on the '
                'tip (recording.tip_force), which has this weight, too: it would count twice; '
                'expected 0 (FILE:tip_load_kg=0), and a first row without the weight'
            )
        return rig

    def rows(self, chosen: Rows, *notes: str) -> MeasuredRun:
        """Return the run with the chosen rows only, and with additional notes."""
        return replace(
            self,
            time_s=None if self.time_s is None else self.time_s[chosen],
            commands=self.commands[chosen],
            points={name: values[chosen] for name, values in self.points.items()},
            axes={name: values[chosen] for name, values in self.axes.items()},
            notes=(*self.notes, *notes),
            tip_force=None if self.tip_force is None else self.tip_force[chosen],
            remembered=None if self.remembered is None else self.remembered[chosen],
            lagging=None if self.lagging is None else self.lagging[chosen],
            commanded=None if self.commanded is None else self.commanded[chosen],
            followed=None
            if self.followed is None
            else replace(self.followed, rows=self.followed.rows[chosen]),
        )


def with_memory(rig: Rig, run: MeasuredRun) -> MeasuredRun:
    """Return a run, its commands as recorded, with the memory of residual and hysteresis."""
    residual, hysteresis = rig.learned_residual(), rig.operator()
    commands, time, rows = commands_followed(rig, run)
    if hysteresis is not None and time is not None:
        run = replace(run, lagging=hysteresis.remembered(commands, time)[rows])
    if residual is None:
        return run
    return replace(run, remembered=residual.remembered(commands, time)[rows])


def commands_followed(rig: Rig, run: MeasuredRun) -> tuple[Array, Array | None, Rows]:
    """Return commands in effect (k, m), their times (k,), and the indices of the run's rows."""
    told = run.followed
    if told is None:
        return in_effect(rig, run).commands, run.time_s, np.arange(len(run))
    every = replace(
        run,
        time_s=told.time_s,
        commands=told.commands,
        commanded=told.commanded,
        followed=replace(told, rows=np.arange(len(told.time_s))),
    )
    return in_effect(rig, every).commands, told.time_s, told.rows


def in_effect(rig: Rig, run: MeasuredRun) -> MeasuredRun:
    """
    Return the run with the commands in effect at each row, by the rig's `recording`.

    Measured actuator positions, and runs in the base frame, are returned unchanged.
    """
    config = rig.recording
    if config is None or run.in_base or run.commanded is not None:
        return run
    time, told, commands = run.time_s, run.commands, run.commands
    if run.followed is not None:
        time, told = run.followed.time_s, run.followed.commands
        commands = told[run.followed.rows]
    if run.time_s is not None and time is not None and config.delay_s != 0.0:
        at = run.time_s - config.delay_s
        commands = np.stack([np.interp(at, time, column) for column in told.T], axis=1)
    return replace(run, commands=shares_reached(config, rig.actuator_names) * commands)


def mount_of(config: RecordingConfig) -> Mount:
    """Return the mount of the arm in the measurement frame."""
    z = np.asarray(config.mount.z_axis, dtype=float)
    z = z / np.linalg.norm(z)
    x = np.asarray(config.mount.x_axis, dtype=float)
    x = x - (x @ z) * z
    x = x / np.linalg.norm(x)
    rotation = np.stack([x, np.cross(z, x), z], axis=1)
    return Mount(np.asarray(config.mount.position_m, dtype=float), rotation)


def without_flips(run: MeasuredRun) -> MeasuredRun:
    """
    Return the run with NaN for axes that jump: the tracking system confused markers.

    Rows further apart than `APART_S` are not compared: the arm may have turned between them.
    """
    if run.time_s is None:
        return run
    axes, notes = {}, []
    for name, measured in run.axes.items():
        seen = np.flatnonzero(np.isfinite(measured).all(axis=1))
        apart = np.flatnonzero(np.diff(run.time_s[seen]) > APART_S) + 1
        flipped = np.zeros(len(run), dtype=bool)
        for rows in np.split(seen, apart):
            flipped[rows] = _flipped(measured[rows])
        axes[name] = np.where(flipped[:, None], np.nan, measured)
        if flipped.any():
            notes.append(
                f'left out: {np.count_nonzero(flipped)} axes of {name}, turned by more than '
                f'{np.rad2deg(FLIP_RAD):.0f} deg at once'
            )
    return replace(run, axes=axes, notes=(*run.notes, *notes))


def _flipped(axes: Array) -> NDArray[np.bool_]:
    """Return for each axis (n, 3) whether it jumps, seen from the first near the median axis."""
    flipped = np.zeros(len(axes), dtype=bool)
    first = int(np.argmax(axes @ np.median(axes, axis=0) > 0.0))
    for way in (range(first, len(axes)), range(first, -1, -1)):
        last = axes[first]
        for i in way:
            flipped[i] = axes[i] @ last < np.cos(FLIP_RAD)
            if not flipped[i]:
                last = axes[i]
    return flipped


def measured_axes(
    sections: Sequence[str], quaternions: Array
) -> tuple[dict[str, Array], tuple[str, ...]]:
    """
    Return the z axes (n, 3) of sections from quaternions (n, sections, 4), and notes.

    A section without an orientation in any row, such as a tip measured as a point, has no axes.
    """
    axes = {name: z_axes(quaternions[:, k]) for k, name in enumerate(sections)}
    without = [name for name, values in axes.items() if not np.isfinite(values).any()]
    notes = (f'no orientation of {", ".join(without)} was measured',) if without else ()
    return {name: values for name, values in axes.items() if name not in without}, notes


def z_axes(quaternions: Array) -> Array:
    """Return the z axes (n, 3) of rotations given as quaternions (n, 4), x, y, z, w."""
    norm = np.linalg.norm(quaternions, axis=1, keepdims=True)
    with np.errstate(invalid='ignore', divide='ignore'):
        x, y, z, w = (quaternions / norm).T
    return np.stack(
        [2.0 * (x * z + w * y), 2.0 * (y * z - w * x), 1.0 - 2.0 * (x * x + y * y)], axis=1
    )
