"""
Parameters of a model that measurements can identify, each with name, unit, prior and bounds.

A parameter maps one unknown x to fields of a rig file, so that an identified value can be written
to the file and loaded again. x is in units of the prior's spread: 0 is the value in the file, and
1 is its expected error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Literal

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.rotations import exp_so3

Values = Mapping[str, float]
_ROUNDING = 1e-12  # of a part of a vector, relative to its length

Change = Literal['factor', 'shift', 'polar_x', 'polar_y', 'turn_x', 'turn_y', 'turn_z']

_HERE = 'softarm_ros.models'
# For each mechanics that an arm provides: a function of the arm's fields.
_OF_MECHANICS = {
    'cables': f'{_HERE}.cable_driven.identifiable:of_cables',
    'cable_pairs': f'{_HERE}.cable_driven.identifiable:of_pairs',
    'water_chambers': f'{_HERE}.hydraulics.identifiable:of_water_chambers',
    'air_chambers': f'{_HERE}.pneumatic.identifiable:of_air_chambers',
    'rod_cables': f'{_HERE}.tendon_rod.identifiable:of_rod_cables',
    'muscles': f'{_HERE}.minimum_energy.identifiable:of_muscles',
}
# For each mechanics and model, where a model has other parameters than the rest.
_OF_MODEL = {
    ('cables', 'constant_curvature'): f'{_HERE}.cable_driven.identifiable:of_arcs',
    ('cables', 'cosserat'): f'{_HERE}.cable_driven.identifiable:of_rod',
    ('cable_pairs', 'cosserat'): f'{_HERE}.cable_driven.identifiable:of_rod',
}


@dataclass(frozen=True)
class Parameter:
    """
    One unknown.

    Attributes
    ----------
    name : str
        Name of the quantity for the user.
    group : str
        Parameters of a group are identified together: `--parameters mount,stiffness`.
    fields : tuple of str
        Fields of the rig file, written as in error messages; all of them change together.
    change : str
        `factor`: times exp(spread x); `shift`: plus spread x; `polar_x`, `polar_y`: shift of the x
        or y part of a vector stored as length and angle [deg] (two fields); `turn_x` ...: rotation
        of the axes z and x (six fields) about an axis of their own frame [rad].
    spread : float
        Standard deviation of the prior: relative for factors, else in the unit of the field.
    unit : str
        Unit of the field.
    low, high : float
        Bounds of the field.

    """

    name: str
    group: str
    fields: tuple[str, ...]
    change: Change
    spread: float
    unit: str = ''
    low: float = -math.inf
    high: float = math.inf

    def bounds(self, known: Values) -> tuple[float, float]:
        """Return the least and largest x that keep all fields within their bounds."""
        if self.change not in ('factor', 'shift'):
            return -math.inf, math.inf
        least, most = -math.inf, math.inf
        for field in self.fields:
            value = known[field]
            if self.change == 'shift':
                ends = (self.low - value) / self.spread, (self.high - value) / self.spread
            else:
                ends = (
                    math.log(self.low / value) / self.spread if self.low > 0.0 else -math.inf,
                    math.log(self.high / value) / self.spread if self.high > 0.0 else math.inf,
                )
            least, most = max(least, ends[0]), min(most, ends[1])
        return least, most

    def moved(self, values: Values, x: float) -> dict[str, float]:
        """Return the values of the fields after a change by x from the given values."""
        step = self.spread * x
        if self.change == 'factor':
            return {field: values[field] * math.exp(step) for field in self.fields}
        if self.change == 'shift':
            return {field: values[field] + step for field in self.fields}
        if self.change in ('polar_x', 'polar_y'):
            length, angle = (values[field] for field in self.fields)
            x_part = length * math.cos(math.radians(angle))
            y_part = length * math.sin(math.radians(angle))
            if self.change == 'polar_x':
                x_part += step
            else:
                y_part += step
            moved = (math.hypot(x_part, y_part), math.degrees(math.atan2(y_part, x_part)))
            return dict(zip(self.fields, moved))
        axes = np.array([values[field] for field in self.fields]).reshape(2, 3)
        z = axes[0] / np.linalg.norm(axes[0])
        x_axis = axes[1] - (axes[1] @ z) * z
        x_axis /= np.linalg.norm(x_axis)
        about = np.zeros(3)
        about['xyz'.index(self.change[-1])] = step
        turned = np.stack([x_axis, np.cross(z, x_axis), z], axis=1) @ exp_so3(about)
        return dict(zip(self.fields, [*turned[:, 2].tolist(), *turned[:, 0].tolist()]))

    def number(self, values: Values) -> float:
        """Return the parameter's value: its first field, the part of a vector, or 0 for a turn."""
        if self.change in ('polar_x', 'polar_y'):
            length, angle = (values[field] for field in self.fields)
            part = math.cos if self.change == 'polar_x' else math.sin
            value = length * part(math.radians(angle))
            return value if abs(value) > _ROUNDING * abs(length) else 0.0
        return 0.0 if self.change.startswith('turn') else values[self.fields[0]]

    def interval(self, found: float, low: float, high: float) -> tuple[float, float]:
        """Return the interval of `number` around `found` for the interval low..high of x."""
        if self.change == 'factor':
            return found * math.exp(self.spread * low), found * math.exp(self.spread * high)
        return found + self.spread * low, found + self.spread * high

    def wider(self, factor: float) -> Parameter:
        """Return the same parameter with its prior wider by a factor."""
        return replace(self, spread=factor * self.spread)


def moved_by(parameters: Sequence[Parameter], known: Values, x: Array) -> dict[str, float]:
    """Return all known fields after the parameters change by x (k,), one after the other."""
    values = dict(known)
    for parameter, step in zip(parameters, x):
        values.update(parameter.moved(values, float(step)))
    return values


def parameters_of(mechanics: str, arm: Any, model: str | None = None) -> tuple[Parameter, ...]:
    """
    Return the identifiable parameters of an arm, from its fields, for a model if one is named.

    Raises
    ------
    ValueError
        If no parameters exist for these mechanics.

    """
    if mechanics not in _OF_MECHANICS:
        raise ValueError(
            f'no identifiable parameters of mechanics {mechanics!r}; expected one of '
            f'{", ".join(_OF_MECHANICS)}'
        )
    place = _OF_MODEL.get((mechanics, model or ''), _OF_MECHANICS[mechanics])
    module, _, name = place.partition(':')
    function: Callable[[Any], tuple[Parameter, ...]] = getattr(import_module(module), name)
    return function(arm)
