"""
Compare base force and torque of a stroking arm under water with Gong et al. 2018.

`python -m softarm_reproduction.stroke_study` prints the tables of docs/models_hydrodynamics.md.
The arm hangs from its sensor and swings in a plane. Force and torque are the peak values at the
sensor over a period, as in figure 4b of the paper.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from scipy.optimize import brentq, minimize, minimize_scalar

from softarm_ros.geometry.arrays import Array
from softarm_ros.models.hydrodynamics.morison import (
    Hydrodynamics,
    PieceMotion,
    WaterConfig,
    base_wrench,
)

LENGTH_M, DIAMETER_M, MASS_KG = 0.27, 0.034, 0.251
GRAVITY_M_S2 = 9.81
FREQUENCIES_HZ = (0.3, 0.4, 0.5)
STROKES_M = (0.05, 0.10, 0.15, 0.20)
PIECES, INSTANTS = 40, 200
# (frequency, stroke): peak force [N], peak torque [N m]; the other cells are in a lost figure.
MEASURED: dict[tuple[float, float], tuple[float | None, float]] = {
    (0.3, 0.05): (0.178, 0.015),
    (0.3, 0.20): (0.284, 0.022),
    (0.4, 0.15): (None, 0.031),
    (0.5, 0.05): (0.371, 0.036),
    (0.5, 0.20): (0.913, 0.084),
}

STEADY_CYLINDER = WaterConfig(drag_across=1.2, added_mass_across=1.0)

# Maps time [s] and frequency [Hz] to a value in -1..1 and its first two time derivatives.
Signal = Callable[[Array, float], tuple[Array, Array, Array]]
# Bent part of the arm: start and end [m] along it; the rest stays straight.
Bending = tuple[float, float]


@dataclass(frozen=True)
class StrokeModel:
    """
    The assumed motion of the arm and the loads to include.

    `half_stroke`: whether the stroke is measured from the middle instead of from end to end.
    `about_m`: reference point of the torque, as a distance [m] along the arm from its mount.
    """

    name: str
    signal: Signal
    bending: Bending | None = None
    water: WaterConfig = STEADY_CYLINDER
    half_stroke: bool = True
    own_mass: bool = True
    weight: bool = False
    about_m: float = 0.0


@dataclass(frozen=True)
class Peaks:
    """Largest force [N] and torque [N m] at the base over a period."""

    force: float
    torque: float

    @property
    def lever(self) -> float:
        """Return torque / force [m]."""
        return self.torque / self.force


def sine(time: Array, frequency_hz: float) -> tuple[Array, Array, Array]:
    """Return the harmonic signal and its first two time derivatives."""
    omega = 2.0 * math.pi * frequency_hz
    phase = omega * time
    return np.sin(phase), omega * np.cos(phase), -(omega**2) * np.sin(phase)


def switched(lag_s: float) -> Signal:
    """
    Return the signal of valves that switch twice a period, filtered by two equal lags [s].

    Position and velocity are continuous, as for an arm with mass behind a pressure regulator. The
    signal is the steady periodic response.
    """

    def signal(time: Array, frequency_hz: float) -> tuple[Array, Array, Array]:
        half = 0.5 / frequency_hz
        # y = 1 + (a + b t) e^-t solves y'' + 2 y' + y = 1; both change sign in half a period.
        end = half / lag_s
        decay = math.exp(-end)
        matrix = [[1.0 + decay, end * decay], [-1.0 - decay, 1.0 + (1.0 - end) * decay]]
        a, b = np.linalg.solve(np.array(matrix), np.array([-2.0, 0.0]))
        t = np.mod(time, half) / lag_s
        sign = np.where(np.mod(time, 2.0 * half) >= half, -1.0, 1.0)
        fall = sign * np.exp(-t)
        value = sign + (a + b * t) * fall
        rate = (b - a - b * t) * fall / lag_s
        return value, rate, (a - 2.0 * b + b * t) * fall / lag_s**2

    return signal


def motion_of(model: StrokeModel, frequency_hz: float, stroke_m: float) -> list[PieceMotion]:
    """
    Return the motion of the pieces at instants over a period.

    Without `bending` the profile is linear, w = z / L, for small displacements. With `bending`,
    that part has constant curvature and its angle follows the signal; the stroke is the tip's
    largest lateral displacement.

    Raises
    ------
    ValueError
        If the arm cannot reach the lateral displacement.

    """
    time = np.linspace(0.0, 1.0 / frequency_hz, INSTANTS, endpoint=False)
    amplitude = stroke_m if model.half_stroke else 0.5 * stroke_m
    s = (np.arange(PIECES) + 0.5) * LENGTH_M / PIECES
    zero, still = np.zeros(PIECES), np.zeros((PIECES, 3))
    largest = 0.0 if model.bending is None else _angle_of(model.bending, amplitude)
    motions = []
    for instant in np.stack(model.signal(time, frequency_hz), axis=1):
        y, dy, ddy = (float(value) for value in instant)
        if model.bending is None:
            along = s / LENGTH_M * amplitude
            motion = PieceMotion(
                np.stack((along * y, zero, s), axis=1),
                np.tile([0.0, 0.0, 1.0], (PIECES, 1)),
                np.stack((along * dy, zero, zero), axis=1),
                np.stack((along * ddy, zero, zero), axis=1),
                still,
            )
        else:
            start, end = model.bending
            turn, turning = largest * dy, largest * ddy
            position, tangent, first, second = _arc(model.bending, s, largest * y)
            spin = np.zeros((PIECES, 3))
            spin[:, 1] = turn * np.clip((s - start) / (end - start), 0.0, 1.0)
            velocity, acceleration = first * turn, first * turning + second * turn**2
            motion = PieceMotion(position, tangent, velocity, acceleration, spin)
        motions.append(motion)
    return motions


def _angle_of(bending: Bending, side_m: float) -> float:
    """Return the bending angle [rad] at a lateral displacement [m] of the tip."""
    tip = np.array([LENGTH_M])

    def side(angle: float) -> float:
        return float(_arc(bending, tip, angle)[0][0, 0])

    angles = np.linspace(0.0, math.pi, 181)
    sides = [side(angle) for angle in angles]
    top = int(np.argmax(sides))
    if side_m > sides[top]:
        raise ValueError(f'side displacement {side_m:g} m: this arm reaches {sides[top]:.4f} m')
    return float(brentq(lambda angle: side(angle) - side_m, 0.0, angles[top], xtol=1e-13))


def _arc(bending: Bending, s: Array, angle: float) -> tuple[Array, Array, Array, Array]:
    """Return points, tangents, and first and second derivatives of the points by the angle."""
    start, end = bending
    share = np.clip((s - start) / (end - start), 0.0, 1.0)
    arc, beyond = share * (end - start), np.maximum(s - end, 0.0)
    straight = np.minimum(s, start)
    # At the share sigma of the arc, the tangent is (sin, 0, cos)(angle sigma). Points and their
    # derivatives are integrals of it over the arc; beyond the arc, the tangent is constant.
    nodes, weights = np.polynomial.legendre.leggauss(12)
    out = np.zeros((3, len(s), 3))
    for node, weight in (*zip(0.5 + 0.5 * nodes, 0.5 * weights), (1.0, None)):
        length = beyond if weight is None else weight * arc
        sigma = node * share
        sine_, cosine = np.sin(angle * sigma), np.cos(angle * sigma)
        out[0, :, 0] += length * sine_
        out[0, :, 2] += length * cosine
        out[1, :, 0] += length * sigma * cosine
        out[1, :, 2] -= length * sigma * sine_
        out[2, :, 0] -= length * sigma**2 * sine_
        out[2, :, 2] -= length * sigma**2 * cosine
    out[0, :, 2] += straight
    tangent = np.zeros((len(s), 3))
    tangent[:, 0], tangent[:, 2] = np.sin(angle * share), np.cos(angle * share)
    return out[0], tangent, out[1], out[2]


def peaks(model: StrokeModel, frequency_hz: float, stroke_m: float) -> Peaks:
    """Return the peak loads at the base sensor from water, inertia and weight of the arm."""
    lengths = np.full(PIECES, LENGTH_M / PIECES)
    water = Hydrodynamics(model.water, lengths, DIAMETER_M)
    mass = MASS_KG * lengths[:, None] / LENGTH_M
    down = np.array([0.0, 0.0, GRAVITY_M_S2 if model.weight else 0.0])
    force, torque = 0.0, 0.0
    for motion in motion_of(model, frequency_hz, stroke_m):
        wrench = water.loads(motion, gravity_m_s2=down).total
        if model.own_mass:
            wrench[:, :3] -= mass * motion.acceleration
        wrench[:, :3] += mass * down
        total = base_wrench(motion.position, wrench, (0.0, 0.0, model.about_m))
        total[:3] -= (MASS_KG - water.displaced_kg.sum()) * down  # sensor zeroed at rest
        force = max(force, float(np.linalg.norm(total[:3])))
        torque = max(torque, float(np.linalg.norm(total[3:])))
    return Peaks(force, torque)


def misfit(model: StrokeModel) -> tuple[float, float, float]:
    """Return geometric mean ratios to measured forces and torques, and rms of all log ratios."""
    forces, torques = [], []
    for (frequency, stroke), (force, torque) in MEASURED.items():
        found = peaks(model, frequency, stroke)
        if force is not None:
            forces.append(math.log(found.force / force))
        torques.append(math.log(found.torque / torque))
    rms = math.sqrt(float(np.mean(np.square(forces + torques))))
    return math.exp(float(np.mean(forces))), math.exp(float(np.mean(torques))), rms


def fitted_lag(model: StrokeModel) -> float:
    """Return the lag [s] of switched valves that best fits the measured values."""
    found = minimize_scalar(
        lambda log_lag: misfit(replace(model, signal=switched(math.exp(log_lag))))[2],
        bounds=(math.log(0.03), math.log(0.6)),
        method='bounded',
        options={'xatol': 1e-3},
    )
    return math.exp(float(found.x))


def fitted_coefficients(model: StrokeModel, with_origin: bool) -> StrokeModel:
    """Return the model with best-fit C_d, C_a and, if `with_origin`, torque reference point."""

    def fit(x: Array) -> StrokeModel:
        water = WaterConfig(drag_across=math.exp(x[0]), added_mass_across=math.exp(x[1]))
        return replace(model, water=water, about_m=float(x[2]) if with_origin else 0.0)

    start = np.array([0.2, 0.0, 0.1] if with_origin else [0.2, 0.0])
    options = {'xatol': 2e-3, 'fatol': 1e-4}
    found = minimize(lambda x: misfit(fit(x))[2], start, method='Nelder-Mead', options=options)
    return fit(found.x)


def study_models() -> list[StrokeModel]:
    """Return the models to compare, from the simplest to the most detailed."""
    whole, base_half, tip_half = (0.0, 0.20), (0.0, 0.10), (0.10, 0.20)
    models = [
        StrokeModel('linear profile', sine),
        StrokeModel('linear profile, without own mass', sine, own_mass=False),
        StrokeModel('whole arm bends', sine, whole),
        StrokeModel('whole arm bends, weight', sine, whole, weight=True),
        StrokeModel('base half bends', sine, base_half),
    ]
    for name, bending, half in (
        ('whole arm, switched valves, A half stroke', whole, True),
        ('whole arm, switched valves, A from end to end', whole, False),
        ('tip half, switched valves, A from end to end', tip_half, False),
    ):
        model = StrokeModel(name, sine, bending, half_stroke=half)
        lag = fitted_lag(model)
        models.append(
            replace(model, signal=switched(lag), name=f'{name}, lag {1e3 * lag:.0f} ms (fitted)')
        )
    for name, origin in (('C_d, C_a', False), ('C_d, C_a, torque about', True)):
        model = fitted_coefficients(StrokeModel('linear profile', sine), origin)
        point = f' {1e3 * model.about_m:.0f} mm' if origin else ''
        models.append(replace(model, name=f'linear profile, {name}{point} (fitted)'))
    return models


def main() -> None:
    """Print force, torque and lever of every model and the measured values."""
    console = Console(width=140)
    summary = Table(title='ratio to the measured peaks (geometric mean), rms of their logarithms')
    for heading in ('model', 'C_d', 'C_a', 'force', 'torque', 'rms'):
        summary.add_column(heading, justify='left' if heading == 'model' else 'right')
    for model in study_models():
        water = model.water
        table = Table(
            title=f'{model.name}; C_d {water.drag_across:.2f}, C_a {water.added_mass_across:.2f}: '
            'peak force N / torque N m (lever m), measured in brackets'
        )
        table.add_column('f Hz')
        for stroke in STROKES_M:
            table.add_column(f'{1e3 * stroke:.0f} mm', justify='right')
        for frequency in FREQUENCIES_HZ:
            cells = []
            for stroke in STROKES_M:
                try:
                    found = peaks(model, frequency, stroke)
                except ValueError:
                    cells.append('out of reach')
                    continue
                cell = f'{found.force:.3f} / {found.torque:.3f} ({found.lever:.3f})'
                if (frequency, stroke) in MEASURED:
                    force, torque = MEASURED[frequency, stroke]
                    cell += f'\n[{"-" if force is None else f"{force:.3f}"} / {torque:.3f}]'
                cells.append(cell)
            table.add_row(f'{frequency:g}', *(escape(cell) for cell in cells))
        console.print(table)
        try:
            forces, torques, rms = misfit(model)
        except ValueError:
            continue
        summary.add_row(
            model.name, f'{water.drag_across:.2f}', f'{water.added_mass_across:.2f}',
            f'{forces:.2f}', f'{torques:.2f}', f'{rms:.2f}',
        )  # fmt: skip
    console.print(summary)
    for frequency in (0.3, 0.5):
        small, large = MEASURED[frequency, 0.05], MEASURED[frequency, 0.20]
        if small[0] is None or large[0] is None:
            continue
        left = small[0] - (large[0] - small[0]) / 0.15 * 0.05
        console.print(
            f'{frequency:g} Hz, measured: {large[0] / small[0]:.1f} times the force for 4 times '
            f'the stroke; a line through both leaves {left:.2f} N at stroke 0; levers '
            f'{small[1] / small[0]:.3f} and {large[1] / large[0]:.3f} m'
        )


if __name__ == '__main__':
    main()
