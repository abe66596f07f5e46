"""Identifiable parameters of a rig: those of its model and those of its recording."""

from __future__ import annotations

from softarm_ros.models.identifiable import Parameter, parameters_of
from softarm_ros.rigs.hysteresis_config import without_hysteresis
from softarm_ros.rigs.schema import Rig

MOUNT_SHARE = 0.02  # of the arm's length
TILT_SPREAD_RAD = 0.05
MARKER_SPREAD_M = 0.005
DELAY_SPREAD_S = 0.2
HYSTERESIS_SPREAD = 0.2  # of a weight, which is a share of the motion
# Groups identified only if named by --parameters: others explain the same, or data are lacking.
_ASKED_FOR = (
    'compliance', 'softening', 'weight', 'radii', 'stiffness_profile', 'radii_profile',
    'rest_curvature', 'torsion', 'tilt', 'axial', 'hysteresis',
)  # fmt: skip


def spelled_out(rig: Rig) -> Rig:
    """Return the rig with an explicit number for each field that can be identified."""
    hysteresis = rig.hysteresis or without_hysteresis(rig)
    return rig.model_copy(update={'arm': rig.arm.spelled_out(), 'hysteresis': hysteresis})


def all_parameters(rig: Rig) -> tuple[Parameter, ...]:
    """Return the parameters of the arm, its hysteresis, its mount, its markers and its delay."""
    return (
        *parameters_of(rig.mechanics_name, rig.arm, rig.default_model),
        *_of_hysteresis(rig),
        *_of_recording(rig),
    )


def usual_groups(rig: Rig) -> tuple[str, ...]:
    """Return the groups that are identified if --parameters names none."""
    groups = dict.fromkeys(p.group for p in all_parameters(rig))
    return tuple(group for group in groups if group not in _ASKED_FOR)


def _of_hysteresis(rig: Rig) -> list[Parameter]:
    config = rig.hysteresis
    if config is None:
        return []
    found = []
    for i in range(len(config.weights)):
        fields = {f'play {width:g}': f'weights[{i}][{k}]' for k, width in enumerate(config.widths)}
        fields[f'lag {config.lag_s:g} s'] = f'lag_shares[{i}]'
        what = f'section {i + 1} ' if len(config.weights) > 1 else ''
        found += [
            Parameter(
                f'{what}{name}', 'hysteresis', (f'hysteresis.{field}',), 'shift',
                HYSTERESIS_SPREAD, '1', 0.0, 0.95,
            )
            for name, field in fields.items()
        ]  # fmt: skip
    return found


def _of_recording(rig: Rig) -> list[Parameter]:
    config = rig.recording
    if config is None:
        return []
    place = 'recording.mount'
    shift = MOUNT_SHARE * rig.physics().rest_length_m
    found = []
    if config.section_tips or config.markers:
        found = [
            Parameter(f'mount {axis}', 'mount', (f'{place}.position_m[{i}]',), 'shift', shift, 'm')
            for i, axis in enumerate('xyz')
        ]
    axes = tuple(f'{place}.{axis}[{i}]' for axis in ('z_axis', 'x_axis') for i in range(3))
    found += [
        Parameter('mount tilt_x', 'mount', axes, 'turn_x', TILT_SPREAD_RAD, 'rad'),
        Parameter('mount tilt_y', 'mount', axes, 'turn_y', TILT_SPREAD_RAD, 'rad'),
    ]
    if rig.mechanics_name != 'cable_pairs':  # its bending directions include a yaw
        found.append(Parameter('mount yaw', 'mount', axes, 'turn_z', TILT_SPREAD_RAD, 'rad'))
    found += [
        Parameter(
            f'marker {name} {axis}', 'markers', (f'recording.markers.{name}.offset_m[{i}]',),
            'shift', MARKER_SPREAD_M, 'm',
        )
        for name in config.markers
        for i, axis in enumerate('xyz')
    ]  # fmt: skip
    if config.time is not None and config.settled_s == 0.0:
        found.append(
            Parameter('delay', 'delay', ('recording.delay_s',), 'shift', DELAY_SPREAD_S, 's', 0.0)
        )
    return found
