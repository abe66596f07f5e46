"""Devices of water-hydraulic arms: servo drives for the cylinders, a DAQ for the pressures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from softarm_ros.rigs.arms.hydraulic_checks import missing_torques
from softarm_ros.rigs.checks import check, checks_in
from softarm_ros.rigs.errors import Problem

_ROUNDING = 1e-9
# From a block of samples to the torque (measured: docs/arms_hydraulic.md), torque lag, axis.
LOOP_DELAY_S = 0.012
LEAST_MARGIN_DEG = 30.0


@check('actuators', 'devices')
def _axes(rig: Any) -> Iterator[Problem]:
    names = [actuator.name for actuator in rig.actuators]
    servo = rig.devices.servo
    if list(servo.names) != names:
        yield Problem(
            ('drives', 'servo', 'axes'),
            f'expected the actuators in their order: {", ".join(names)}',
            ', '.join(servo.names),
        )
        return
    missing = list(missing_torques(rig))
    yield from missing
    if missing:
        return
    for i, (actuator, axis) in enumerate(zip(rig.actuators, servo.axes)):
        needed = actuator.torque_per_pressure_N_m_Pa * actuator.pressure_max_Pa
        if axis.torque_limit_N_m < needed * (1.0 - _ROUNDING):
            yield Problem(
                ('drives', 'servo', 'axes', i, 'torque_limit_N_m'),
                f'expected at least {needed:g}, the nominal torque of pressure_max_Pa',
                f'{axis.torque_limit_N_m:g}',
            )
        if not servo.sensor_low_Pa < actuator.pressure_min_Pa:
            yield Problem(
                ('drives', 'servo', 'sensor_low_Pa'),
                f'expected less than pressure_min_Pa of {actuator.name!r}',
                f'{servo.sensor_low_Pa:g}',
            )
        if not actuator.pressure_max_Pa < servo.sensor_high_Pa:
            yield Problem(
                ('drives', 'servo', 'sensor_high_Pa'),
                f'expected more than pressure_max_Pa of {actuator.name!r}',
                f'{servo.sensor_high_Pa:g}',
            )


@check('actuators', 'devices')
def _sensors(rig: Any) -> Iterator[Problem]:
    actuators = {actuator.name: actuator for actuator in rig.actuators}
    inputs = rig.devices.daq.inputs
    found = [part.name for part in inputs if part.unit == 'Pa' and part.name in actuators]
    if found != list(actuators):
        yield Problem(
            ('drives', 'daq', 'inputs'),
            f'expected an input in Pa for each actuator, in their order: {", ".join(actuators)}',
            ', '.join(found) or 'none',
        )
        return
    for i, part in enumerate(inputs):
        actuator = actuators.get(part.name)
        if actuator is None:
            continue
        ends = sorted(float(v) for v in part.value([part.min_V, part.max_V]))
        if not ends[0] <= actuator.pressure_min_Pa < actuator.pressure_max_Pa <= ends[1]:
            yield Problem(
                ('drives', 'daq', 'inputs', i, 'scale'),
                f'expected a range that holds {actuator.pressure_min_Pa:g} to '
                f'{actuator.pressure_max_Pa:g} Pa, found {ends[0]:g} to {ends[1]:g} Pa',
                f'{part.scale:g}',
            )
        if part.open_below_V is not None and float(part.value(part.open_below_V)) > min(
            actuator.pressure_min_Pa, rig.devices.servo.sensor_low_Pa
        ):
            yield Problem(
                ('drives', 'daq', 'inputs', i, 'open_below_V'),
                'expected a voltage below that of the least pressure a sound sensor says '
                f'(sensor_low_Pa = {rig.devices.servo.sensor_low_Pa:g})',
                f'{part.open_below_V:g}',
            )


@check('actuators', 'plant', 'devices')
def _same_drives(rig: Any) -> Iterator[Problem]:
    most = rig.plant.drive.max_torque_N_m
    for i, axis in enumerate(rig.devices.servo.axes):
        if axis.torque_limit_N_m > most * (1.0 + _ROUNDING):
            yield Problem(
                ('drives', 'servo', 'axes', i, 'torque_limit_N_m'),
                f'expected at most plant.drive.max_torque_N_m = {most:g}',
                f'{axis.torque_limit_N_m:g}',
            )


@check('pressure_loop', 'devices')
def _stable(rig: Any) -> Iterator[Problem]:
    loop = rig.pressure_loop
    # A block's mean is half a block old when it arrives, and is used until the next block.
    delay_s = rig.devices.daq.block_s + LOOP_DELAY_S
    margin = loop.phase_margin_deg(delay_s)
    if margin < LEAST_MARGIN_DEG:
        yield Problem(
            ('arm', 'pressure_loop', 'filter_s'),
            f'leaves a phase margin of {margin:.0f} deg at gain {loop.gain:g} with the '
            f'{1e3 * delay_s:.0f} ms from sensor to torque; expected at least '
            f'{LEAST_MARGIN_DEG:g} deg, by a longer filter or less gain',
            f'{loop.filter_s:g}',
        )


CHECKS = checks_in(globals())
