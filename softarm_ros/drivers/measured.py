"""Measurements that the drives of a rig make of its actuators."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

STATES_HZ = 100.0  # state rate of a stepper board


@dataclass(frozen=True)
class Measured:
    """
    A measurement made by a device.

    Attributes
    ----------
    device : str
        Name of the device in the rig file.
    topic : str
        Topic of the measurement, relative to the namespace of the rig.
    what : str
        Measured quantities, as text for people.
    rate_hz : float
        Rate of the measurement.

    """

    device: str
    topic: str
    what: str
    rate_hz: float


def measured_by(name: str, config: Any, *, drives: bool) -> Iterator[Measured]:
    """Yield the measurements of a device; `drives`: whether it drives the actuators."""
    state = 'actuators/state'
    if name == 'steppers':
        yield Measured(name, state, 'contraction as counted, speed', STATES_HZ)
    elif name == 'dynamixel':
        pull = ', pull' if config.torque_per_current_N_m_A is not None else ''
        yield Measured(name, state, f'contraction, speed{pull}', config.rate_hz)
    elif name == 'servo':
        yield Measured(name, state, 'pressure, its rate, torque', config.rate_hz)
    elif name == 'valves':
        yield Measured(name, state, 'length, estimated from the times of valves', config.rate_hz)
    elif name == 'daq':
        rate = config.sample_rate_hz / config.block_samples
        units = {part.unit for part in config.inputs}
        if drives:
            what = 'tension' if 'N' in units else 'pressure'
            yield Measured(name, state, f'{what}, its rate', rate)
        if 'Pa' in units:
            yield Measured(name, 'chambers/pressure', 'pressure', rate)
        if config.force_sensor is not None:
            yield Measured(name, 'wrench', 'force and moment on the base', rate)
