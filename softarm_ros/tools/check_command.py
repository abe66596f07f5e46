"""`softarm check`: what a rig file says, in a few lines, and what is out of its reach."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from softarm_ros.control.reach import check_reach
from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.assembly import build_trajectory, describe_reach

Array = NDArray[np.float64]
_REACH_POSES = 4000


def summary(rig: Rig) -> Iterator[str]:
    """Yield lines about a valid rig: reach, actuators, rates, plant, trajectories."""
    sections = ', '.join(section.name for section in rig.sections)
    tips = _tips_in_plane(rig)
    rest = rig.model('constant_curvature').rest_length_m
    bends = ', '.join(f'{s.max_bending_angle_deg:g}' for s in rig.sections)
    yield f'arm           {len(rig.sections)} section(s): {sections}; {1e3 * rest:.1f} mm at rest'
    yield (
        f'reach         up to {1e3 * np.max(np.abs(tips[:, 0])):.1f} mm from the axis, '
        f'z {1e3 * np.min(tips[:, 2]):.1f} to {1e3 * np.max(tips[:, 2]):.1f} mm '
        f'(bending up to {bends} deg)'
    )
    yield from _actuators(rig)
    yield (
        f'rates         control {rig.tracker.rate_hz:g} Hz, feedback {rig.feedback.rate_hz:g} Hz '
        f'({rig.feedback.kind}, {rig.feedback.pose_topic})'
    )
    s = rig.supervisor
    yield (
        f'held after    {1e3 * s.feedback_timeout_s:g} ms without a pose, '
        f'{1e3 * s.command_timeout_s:g} ms without a command, '
        f'{1e3 * s.heartbeat_timeout_s:g} ms without a heartbeat'
    )
    p = rig.plant
    yield (
        f'plant         {len(p.sections)} x {p.segments_per_section} segments, step '
        f'{1e3 * p.time_step_s:g} ms, gravity {_vector(rig.gravity_m_s2)} m/s^2'
    )
    yield f'model         {rig.default_model}'
    yield f'trajectories  {", ".join(rig.trajectories)} (default {rig.default_trajectory})'


def _actuators(rig: Rig) -> Iterator[str]:
    limits = rig.actuator_limits()
    yield f'actuators     {len(limits.names)}: {", ".join(limits.names)}'
    columns = (limits.position_min, limits.position_max, limits.max_speed, limits.max_acceleration)
    for low, high, speed, acceleration in sorted(set(zip(*(c.tolist() for c in columns)))):
        yield (
            f'              {1e3 * low:g} to {1e3 * high:g} mm, {1e3 * speed:g} mm/s, '
            f'{1e3 * acceleration:g} mm/s^2'
        )


def warnings(rig: Rig) -> Iterator[str]:
    """Yield what is out of reach in the rig's own trajectories."""
    model, limits = rig.model(), rig.actuator_limits()
    for name in rig.trajectories:
        line = describe_reach(check_reach(model, limits, build_trajectory(rig, name).path))
        if line is not None:
            yield f'trajectory {name!r}: {line}'


def _vector(values: tuple[float, ...]) -> str:
    return '(' + ', '.join(f'{v:g}' for v in values) + ')'


def _tips_in_plane(rig: Rig) -> Array:
    """Return tips (n, 3) [m] of a grid of all bendings in the x-z plane."""
    model = rig.model('constant_curvature')
    count = max(3, int(_REACH_POSES ** (1.0 / len(rig.sections))))
    grids = [
        np.linspace(-1.0, 1.0, min(count, 181)) * math.radians(s.max_bending_angle_deg)
        for s in rig.sections
    ]
    tips = []
    for bends in itertools.islice(itertools.product(*grids), 4 * _REACH_POSES):
        configuration = np.zeros(2 * len(bends))
        configuration[::2] = bends
        tips.append(model.tip_and_jacobian(configuration)[0])
    return np.array(tips)
