"""A path with timing: jerk-limited, from rest to rest."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from ruckig import InputParameter, Result, Ruckig
from ruckig import Trajectory as RuckigTrajectory

from softarm_ros.control.path import Curve, Path, build_path
from softarm_ros.control.trajectory_config import MAX_LAPS, TrajectoryConfig
from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.counts import whole_number


@dataclass(frozen=True)
class ReferenceSample:
    """Reference position (3,) [m] and velocity (3,) [m/s], lap (0-based), progress 0..1."""

    position: Array
    velocity: Array
    lap: int
    progress: float


@dataclass(frozen=True)
class _Leg:
    """One rest-to-rest motion over `laps` laps of a curve, forwards or backwards."""

    curve: Curve
    profile: RuckigTrajectory
    start_time: float
    first_lap: int
    laps: int
    backwards: bool

    @property
    def duration(self) -> float:
        return float(self.profile.duration)


def _rest_to_rest(
    distance: float, speed: float, acceleration: float, jerk: float
) -> RuckigTrajectory:
    parameters = InputParameter(1)
    parameters.current_position = [0.0]
    parameters.target_position = [distance]
    parameters.max_velocity = [speed]
    parameters.max_acceleration = [acceleration]
    parameters.max_jerk = [jerk]
    profile = RuckigTrajectory(1)
    result = Ruckig(1).calculate(parameters, profile)
    if result not in (Result.Working, Result.Finished):
        raise ValueError(f'timing failed: {distance:g} m at {speed:g} m/s ({result})')
    return profile


class Trajectory:
    """
    Timed reference of the tip in the base frame.

    Parameters
    ----------
    config : TrajectoryConfig
        Shape, speed and laps.
    max_acceleration, max_jerk : float
        Limits along the path [m/s^2, m/s^3].
    laps : int, optional
        Overrides the number of laps in the configuration.

    """

    def __init__(
        self,
        config: TrajectoryConfig,
        *,
        max_acceleration: float,
        max_jerk: float,
        laps: int | None = None,
    ) -> None:
        self.config = config
        self.path: Path = build_path(config)
        self.laps = config.laps if laps is None else laps
        expected = f'1 to {MAX_LAPS}'
        if not 1 <= whole_number(self.laps, 'laps', f'a whole number, {expected}') <= MAX_LAPS:
            raise ValueError(f'laps = {self.laps}: expected {expected}')
        self._legs: list[_Leg] = []
        clock = 0.0
        for curve, first_lap, count, backwards in self._plan():
            profile = _rest_to_rest(curve.length * count, config.speed, max_acceleration, max_jerk)
            leg = _Leg(curve, profile, clock, first_lap, count, backwards)
            self._legs.append(leg)
            clock += leg.duration
        self.duration_s = clock
        self._starts = [leg.start_time for leg in self._legs]

    def _plan(self) -> list[tuple[Curve, int, int, bool]]:
        if self.path.periodic:
            return [(self.path.pieces[0], 0, self.laps, False)]
        legs: list[tuple[Curve, int, int, bool]] = []
        for lap in range(self.laps):
            backwards = not self.path.closed and lap % 2 == 1
            pieces = reversed(self.path.pieces) if backwards else self.path.pieces
            legs.extend((piece, lap, 1, backwards) for piece in pieces)
        return legs

    def sample(self, time_s: float) -> ReferenceSample:
        """Return the reference at `time_s` since the start; at rest before 0 and after the end."""
        t = min(max(time_s, 0.0), self.duration_s)
        index = max(bisect_right(self._starts, t) - 1, 0)
        leg = self._legs[index]
        position, velocity, _ = leg.profile.at_time(min(t - leg.start_time, leg.duration))
        travelled, speed = float(position[0]), float(velocity[0])
        lap = min(int(travelled / leg.curve.length + 1e-12), leg.laps - 1)
        s = travelled - lap * leg.curve.length
        if leg.backwards:
            s, speed = leg.curve.length - s, -speed
        point, tangent = leg.curve.at(s)
        progress = t / self.duration_s if self.duration_s > 0.0 else 1.0
        return ReferenceSample(point, speed * tangent, leg.first_lap + lap, progress)
