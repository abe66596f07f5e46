"""Fields of a trajectory file, or of an entry of `trajectories` in a rig file."""

from __future__ import annotations

import math
from typing import Annotated, Literal

import numpy as np
from pydantic import AfterValidator, Field, model_validator

from softarm_ros.geometry.configs import Angle, ConfigBlock, Finite

MAX_DISTANCE_M = 100.0  # of a target from the base; a larger one is a wrong unit
MIN_SPACING_M = 1e-6
MAX_LAPS = 1000
Coordinate = Annotated[float, Field(ge=-MAX_DISTANCE_M, le=MAX_DISTANCE_M)]
Point = tuple[Coordinate, Coordinate, Coordinate]
Speed = Annotated[float, Field(ge=1e-6, allow_inf_nan=False)]
Size = Annotated[float, Field(gt=0.0, le=MAX_DISTANCE_M)]


def _unit(vector: tuple[float, float, float]) -> tuple[float, float, float]:
    length = math.hypot(*vector)
    if not 1e-9 < length < 1e9:
        raise ValueError(f'normal {list(vector)} has length {length:g}; expected 1e-9 to 1e9')
    return vector


Normal = Annotated[tuple[Finite, Finite, Finite], AfterValidator(_unit)]


class TrajectoryBase(ConfigBlock):
    """Fields common to all trajectories."""

    frame: Literal['base'] = 'base'
    speed: Speed = Field(default=0.03, description='speed along the path [m/s]')
    laps: int = Field(default=1, ge=1, le=MAX_LAPS)


class WaypointsConfig(TrajectoryBase):
    """Smooth curve (cubic spline over chord length) through points [m]."""

    type: Literal['waypoints']
    points: tuple[Point, ...] = Field(min_length=2)
    closed: bool = False

    @model_validator(mode='after')
    def _distinct(self) -> WaypointsConfig:
        points = np.array(self.points)
        if self.closed and np.linalg.norm(points[0] - points[-1]) < MIN_SPACING_M:
            points = points[:-1]
        if self.closed and len(points) < 3:
            raise ValueError(f'a closed curve needs at least 3 distinct points, got {len(points)}')
        gaps = np.linalg.norm(np.diff(points, axis=0), axis=1)
        if np.any(gaps < MIN_SPACING_M):
            i = int(np.argmin(gaps))
            raise ValueError(
                f'points[{i}] and points[{i + 1}] are {gaps[i]:.3g} m apart; '
                f'expected at least {MIN_SPACING_M:g} m'
            )
        return self


class CircleConfig(TrajectoryBase):
    """Circle of `radius` [m] about `center` in the plane of `normal`."""

    type: Literal['circle']
    center: Point
    radius: Size
    normal: Normal = (0.0, 0.0, 1.0)
    start_angle_deg: Angle = 0.0
    closed: Literal[True] = True


class LineConfig(TrajectoryBase):
    """Straight line; every second lap runs back."""

    type: Literal['line']
    start: Point
    end: Point
    closed: Literal[False] = False

    @model_validator(mode='after')
    def _distinct(self) -> LineConfig:
        if np.linalg.norm(np.subtract(self.end, self.start)) < MIN_SPACING_M:
            raise ValueError(f'start and end are the same point {list(self.start)}')
        return self


class SquareConfig(TrajectoryBase):
    """Square of `side` [m]; the tip stops in every corner."""

    type: Literal['square']
    center: Point
    side: Size
    normal: Normal = (0.0, 0.0, 1.0)
    start_angle_deg: Angle = Field(default=45.0, description='direction of the first corner')
    closed: Literal[True] = True


class CardioidConfig(TrajectoryBase):
    """Cardioid r = size (1 - cos t) [m] about its cusp at `center`; the tip stops at the cusp."""

    type: Literal['cardioid']
    center: Point
    size: Size
    normal: Normal = (0.0, 0.0, 1.0)
    start_angle_deg: Angle = 0.0
    closed: Literal[True] = True


TrajectoryConfig = Annotated[
    WaypointsConfig | CircleConfig | LineConfig | SquareConfig | CardioidConfig,
    Field(discriminator='type'),
]
