"""`softarm model`: forward and inverse kinematics of a rig on the command line."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from softarm_ros.cli.cli_errors import UsageError, parse_numbers
from softarm_ros.cli.edge_units import edge_unit
from softarm_ros.models.arm_model import Shape
from softarm_ros.rigs.schema import Rig


def forward_report(rig: Rig, actuation: str, model_name: str | None) -> Iterator[str]:
    """
    Yield lines about the shape under an actuation, which is given in display units.

    Raises
    ------
    UsageError, LimitError, ModelError
        If the values are not one number per actuator, are out of range, or have no solution.

    """
    limits = rig.actuator_limits()
    unit, factor = edge_unit(limits.unit)
    expected = f'expected {len(limits.names)} values in {unit}: {", ".join(limits.names)}'
    values = parse_numbers(actuation, '--actuation', expected, len(limits.names))
    si = limits.check(np.array(values) / factor)
    model = rig.model(model_name)
    shape = model.forward(si)
    yield _line('model', model.name)
    yield from _shape_lines(rig, shape)
    yield _line('actuation', _named(limits.names, factor * si, unit))


def inverse_report(
    rig: Rig, position_m: str, model_name: str | None
) -> tuple[list[str], str | None]:
    """
    Return lines about the actuation for a tip position [m], and the reason if it is not reached.

    Raises
    ------
    UsageError
        If the position is not three numbers.

    """
    expected = 'expected x,y,z in m, base frame'
    target = np.array(parse_numbers(position_m, '--position-m', expected, 3))
    model = rig.model(model_name)
    solution = model.inverse(target)
    lines = [_line('model', model.name), _line('target', _millimetres(target))]
    lines += _shape_lines(rig, solution.shape)
    unit, factor = edge_unit(rig.actuator_limits().unit)
    lines += [
        _line('actuation', _named(rig.actuator_names, factor * solution.actuation, unit)),
        _line('residual', f'{1e3 * solution.residual:.6f} mm'),
    ]
    if not solution.converged:
        return lines, solution.message or 'the solver did not converge'
    try:
        rig.actuator_limits().check(solution.actuation)
    except ValueError as error:
        return lines, f'beyond the actuators: {error}'
    return lines, None


def require(value: str | None, option: str, direction: str) -> str:
    """Return an option's value; raise UsageError if it is missing."""
    if value is None:
        raise UsageError(f'{direction} needs {option}; see softarm model --help')
    return value


def refuse_unused(actuation: str | None, position_m: str | None, direction: str) -> None:
    """Raise UsageError if the option of the other direction is given: it would be ignored."""
    other, value = {
        'forward': ('--position-m', position_m),
        'inverse': ('--actuation', actuation),
    }[direction]
    if value is not None:
        raise UsageError(f'{other} {value}: {direction} does not use it; see softarm model --help')


def _shape_lines(rig: Rig, shape: Shape) -> Iterator[str]:
    yield _line('tip', _millimetres(shape.tip[:3, 3]))
    yield _line('tip axis', _numbers(shape.tip[:3, 2], 6))
    bends = rig.configuration_limits().bends
    if len(bends) != len(rig.section_names):
        return
    for section, (bend_x, bend_y) in zip(rig.section_names, shape.configuration[bends]):
        theta = np.degrees(np.hypot(bend_x, bend_y))
        phi = np.degrees(np.arctan2(bend_y, bend_x)) if theta > 0.0 else 0.0
        yield _line(section, f'theta {_rounded(theta, 4)} deg, phi {_rounded(phi, 4)} deg')


def _line(label: str, text: str) -> str:
    return f'{label:<12}  {text}'


def _millimetres(position: np.ndarray) -> str:
    return f'{_numbers(1e3 * position, 4)} mm'


def _named(names: tuple[str, ...], values: np.ndarray, unit: str) -> str:
    parts = (f'{name} {_rounded(value, 4)}' for name, value in zip(names, values))
    return f'{", ".join(parts)} {unit}'


def _numbers(values: np.ndarray, decimals: int) -> str:
    return '(' + ', '.join(_rounded(value, decimals) for value in values) + ')'


def _rounded(value: float, decimals: int) -> str:
    return f'{round(value, decimals) + 0.0:.{decimals}f}'  # -0.0 + 0.0 is 0.0
