"""Water-hydraulic axes: motor torque -> piston -> cylinder -> line -> soft chamber."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ModelError
from softarm_ros.models.hydraulics import axes_kernels as kernels
from softarm_ros.models.hydraulics.config import HydraulicAxisConfig

ATMOSPHERE_PA = 101325.0
# Vapour pressure of water at 20 degrees Celsius: below it water cavitates.
VAPOUR_PA = 2339.0
_MAX_STEP_S = 1.0


@dataclass(frozen=True)
class HydraulicStep:
    """
    Outcome of one step of m axes.

    Attributes
    ----------
    state : (m, width)
        New state, or the old state if the step was not solved.
    converged : bool
    message : str
        Reason for a failure, or the axes that cavitate; else empty.
    relieved_m3 : (m,)
        Water released by the relief valves during the step.
    cavitated : (m,)
        Axes with an absolute pressure below the vapour pressure anywhere. The model has no vapour,
        so the results for such an axis are invalid from this step on.

    """

    state: Array
    converged: bool
    message: str
    relieved_m3: Array
    cavitated: np.ndarray


@dataclass(frozen=True)
class SteadyState:
    """
    Rest states of an axis under a constant torque: the stick band.

    The axis rests at any pressure from `lowest_Pa` to `highest_Pa`; without friction they are
    equal. `reason` names the limit if it is not the motor: 'relief' (the valve keeps flowing, and
    the piston creeps to its end stop) or 'end stop'; else it is empty.
    """

    lowest_Pa: float
    highest_Pa: float
    position_low_m: float
    position_high_m: float
    reason: str = ''


class WaterHydraulics:
    """
    Any number of water-hydraulic axes, stepped together.

    Source: Chen et al., Micromachines 2022, 13, 130, eq. (32)-(36) with errors corrected
    (docs/models_hydraulics.md). The state is an array (m, width), see `axes_kernels`.
    The motor torque and the volume rate of the chambers are constant over a step.
    """

    def __init__(self, axes: Sequence[HydraulicAxisConfig]) -> None:
        if not axes:
            raise ModelError('axes: at least one hydraulic axis is needed, got 0')
        names = [axis.name for axis in axes]
        if len(axes) > 1 and len(set(names)) < len(names):
            raise ModelError(f'axes: the names {names} are not unique')
        self.axes = tuple(axes)
        self.parameters = np.stack([parameters_of(axis) for axis in axes])
        cells = np.maximum([axis.line_cells for axis in axes], 1)
        self.last = kernels.P0 + 2 * cells  # column of the chamber pressure
        self.width = int(self.last.max()) + 1
        self.force_per_torque = np.array([axis.force_per_torque for axis in axes])
        self._rows = np.arange(len(axes))
        self._is_pressure = self._capacities() > 0.0

    @property
    def axis_names(self) -> tuple[str, ...]:
        """Names of the axes, in the order of every array."""
        return tuple(axis.name for axis in self.axes)

    def rest_state(self) -> Array:
        """Return the state (m, width) at rest without pressure, pistons at zero."""
        return np.zeros((len(self.axes), self.width))

    def fill(self, state: Array, pressure: Array, chamber_gain_m3: Array) -> None:
        """
        Set a state (m, width) in place to rest under pressures (m,) [Pa].

        `chamber_gain_m3` (m,) is the chamber volume minus the volume with the arm at rest.
        """
        for i, last in enumerate(self.last):
            state[i] = 0.0
            state[i, kernels.P0 : last + 1 : 2] = pressure[i]
            volume = self.capacity(i) * pressure[i] + chamber_gain_m3[i]
            state[i, kernels.X] = volume / self.parameters[i, kernels.AREA]

    def piston_velocity(self, state: Array) -> Array:
        """Return the piston velocities (m,) [m/s]."""
        return state[:, kernels.V]

    def piston_position(self, state: Array) -> Array:
        """Return the piston positions (m,) [m]."""
        return state[:, kernels.X]

    def cylinder_pressure(self, state: Array) -> Array:
        """Return the gauge pressures (m,) [Pa] of the cylinders."""
        return state[:, kernels.P0]

    def chamber_pressure(self, state: Array) -> Array:
        """Return the gauge pressures (m,) [Pa] of the chambers."""
        return state[self._rows, self.last]

    def is_stuck(self, state: Array) -> np.ndarray:
        """Return a mask (m,) of the pistons that stick: their velocity is exactly zero."""
        return np.asarray(state[:, kernels.V] == 0.0)

    def cavitated(self, state: Array) -> np.ndarray:
        """Return a mask (m,) of the axes with an absolute pressure below the vapour pressure."""
        lowest = np.where(self._is_pressure, state, np.inf).min(axis=1)
        return np.asarray(lowest + ATMOSPHERE_PA < VAPOUR_PA)

    def step(
        self, state: Array, torque: Array, dt_s: float, chamber_flow: Array | None = None
    ) -> HydraulicStep:
        """
        Advance a state by dt_s.

        Parameters
        ----------
        state : (m, width)
            Not changed.
        torque : (m,)
            Motor torques [N m], constant over the step.
        dt_s : float
            Any positive step up to one second; the method is stable for all of them.
        chamber_flow : (m,), optional
            Rate [m^3/s] at which the arm's motion enlarges the chambers, A_d dl/dt.

        Raises
        ------
        ModelError
            For arrays of the wrong shape, values that are not finite and steps out of range.

        """
        m = len(self.axes)
        state, torque = np.asarray(state, float), np.asarray(torque, float)
        flow = np.zeros(m) if chamber_flow is None else np.asarray(chamber_flow, float)
        checks = (('state', state, (m, self.width)), ('torque', torque, (m,)))
        for name, value, shape in (*checks, ('chamber_flow', flow, (m,))):
            if value.shape != shape or not np.isfinite(value).all():
                raise ModelError(f'{name} = {value.tolist()}: finite numbers {shape} needed')
        if not 0.0 < dt_s <= _MAX_STEP_S:
            raise ModelError(f'dt_s = {dt_s:g} s: must be above 0 and at most {_MAX_STEP_S:g} s')
        work, chain = self.scratch()
        relieved = np.zeros(m)
        moved = state.copy()
        failed = kernels.axes_step_into(
            moved,
            dt_s,
            self.force_per_torque * torque,
            flow,
            self.parameters,
            work,
            chain,
            relieved,
        )
        if failed < 0:
            state = moved
        cavitated = self.cavitated(state)
        message = ''
        if failed >= 0:
            message = (
                f'axis {self.axes[failed].name}: no solution within {kernels.NEWTON_LIMIT} '
                f'iterations at dt_s = {dt_s:g} s'
            )
        elif cavitated.any():
            names = ', '.join(np.array(self.axis_names)[cavitated])
            message = f'absolute pressure below {VAPOUR_PA:g} Pa: cavitation in {names}'
        return HydraulicStep(state, failed < 0, message, relieved, cavitated)

    def scratch(self) -> tuple[Array, Array]:
        """Return the scratch arrays (work, chain) of the kernels."""
        return np.empty((3, self.width)), np.empty((self.width, 6))

    def steady_state(self, axis: int, torque: float, chamber_gain_m3: float = 0.0) -> SteadyState:
        """
        Return the rest states of an axis under a constant torque [N m], in closed form.

        P_a = P_c = (eta T / s - f) / A_c with f anywhere in the static friction band (eq. 36); the
        position follows from the volume. `chamber_gain_m3` is the chamber volume that the arm's
        motion has added since the rest state.

        Raises
        ------
        ModelError
            If there is no such axis, or a value is not finite.

        """
        if not 0 <= axis < len(self.axes):
            raise ModelError(f'axis = {axis}: expected 0 to {len(self.axes) - 1}')
        for name, value in (('torque', torque), ('chamber_gain_m3', chamber_gain_m3)):
            if not np.isfinite(value):
                raise ModelError(f'{name} = {value:g}: expected a finite number')
        config = self.axes[axis]
        par = self.parameters[axis]
        force, static = config.force_per_torque * torque, par[kernels.STATIC]
        capacity = self.capacity(axis)
        ends = []
        reason = ''
        for load in (force - static, force + static):
            pressure = load / par[kernels.AREA]
            position = (capacity * pressure + chamber_gain_m3) / par[kernels.AREA]
            if pressure > par[kernels.RELIEF]:
                reason = 'relief'
                pressure, position = float(par[kernels.RELIEF]), float(par[kernels.X_MAX])
            elif not par[kernels.X_MIN] <= position <= par[kernels.X_MAX]:
                reason = 'end stop'
                position = min(max(position, config.stroke_min_m), config.stroke_max_m)
                pressure = (par[kernels.AREA] * position - chamber_gain_m3) / capacity
            ends.append((float(pressure), float(position)))
        (low, x_low), (high, x_high) = ends
        return SteadyState(low, high, x_low, x_high, reason)

    def capacity(self, axis: int) -> float:
        """Return the volume per pressure of cylinder, line and chamber of an axis [m^3/Pa]."""
        par = self.parameters[axis]
        inner = (int(par[kernels.CELLS]) - 1) * par[kernels.C_CELL]
        return float(par[kernels.C_CYLINDER] + inner + par[kernels.C_CHAMBER])

    def stored_water(self, state: Array) -> Array:
        """Return the water volume (m,) [m^3] that the pressure of each axis stores."""
        return np.array([c @ row for c, row in zip(self._capacities(), state)])

    def stored_energy(self, state: Array) -> Array:
        """Return the kinetic plus elastic energy (m,) [J] of piston, water and chamber walls."""
        return 0.5 * np.array([s @ row**2 for s, row in zip(self._inertias(), state)])

    def _capacities(self) -> Array:
        """Return the capacity of each state column (m, width); zero if it is not a pressure."""
        out = np.zeros((len(self.axes), self.width))
        for row, par, last in zip(out, self.parameters, self.last):
            row[kernels.P0 : last + 1 : 2] = par[kernels.C_CELL]
            row[kernels.P0], row[last] = par[kernels.C_CYLINDER], par[kernels.C_CHAMBER]
        return out

    def _inertias(self) -> Array:
        """Return twice the energy per squared state column (m, width)."""
        out = self._capacities()
        for row, par, last in zip(out, self.parameters, self.last):
            row[kernels.V] = par[kernels.MASS]
            row[kernels.P0 + 1 : last : 2] = par[kernels.INERTANCE]
        return out


def parameters_of(axis: HydraulicAxisConfig) -> Array:
    """Return the row of one axis in the kernels' parameter array."""
    row = np.zeros(kernels.PARAMETERS)
    cells = max(axis.line_cells, 1)
    elastic = axis.line_cells > 0
    line_capacity = axis.line_area_m2 * axis.line_length_m / axis.bulk_modulus_Pa
    cell = line_capacity / cells if elastic else 0.0
    static = axis.static_friction_N
    row[kernels.MASS] = axis.piston_mass_kg
    row[kernels.DAMPING] = axis.piston_damping_N_s_m
    row[kernels.AREA] = axis.piston_area_m2
    row[kernels.COULOMB] = axis.coulomb_friction_N
    row[kernels.STATIC] = axis.coulomb_friction_N if static is None else static
    row[kernels.X_MIN], row[kernels.X_MAX] = axis.stroke_min_m, axis.stroke_max_m
    row[kernels.C_CYLINDER] = axis.cylinder_capacity_m3_Pa + 0.5 * cell
    row[kernels.C_CELL] = cell
    row[kernels.C_CHAMBER] = axis.chamber_capacity_m3_Pa + 0.5 * cell
    row[kernels.INERTANCE] = axis.line_inertance_Pa_s2_m3 / cells if elastic else 0.0
    row[kernels.RESISTANCE] = axis.line_resistance_Pa_s_m3 / cells
    if axis.turbulent_line:
        row[kernels.REYNOLDS] = (
            axis.density_kg_m3 * axis.line_bore_m / (axis.viscosity_Pa_s * axis.line_area_m2)
        )
    row[kernels.ROUGHNESS] = axis.line_roughness_m / axis.line_bore_m
    relief = axis.relief_pressure_Pa
    row[kernels.RELIEF] = np.inf if relief is None else relief
    row[kernels.CONDUCTANCE] = axis.relief_conductance_m3_s_Pa
    row[kernels.CELLS] = cells
    row[kernels.FORCE] = axis.force_per_torque
    return row


def linear_system(axis: HydraulicAxisConfig) -> tuple[Array, Array]:
    """
    Return (A, B) of eq. (36), corrected: d/dt [v, P_a, P_c] = A [v, P_a, P_c] + B [T, f, Q].

    T is the motor torque [N m], f the friction force [N], Q the chamber's volume rate [m^3/s]. It
    holds for the paper's line only: laminar and without inertia.
    """
    gp, ca = 1.0 / axis.line_resistance_Pa_s_m3, axis.chamber_capacity_m3_Pa
    c2, mass, area = axis.cylinder_capacity_m3_Pa, axis.piston_mass_kg, axis.piston_area_m2
    a = np.array(
        [
            [-axis.piston_damping_N_s_m / mass, 0.0, -area / mass],
            [0.0, -gp / ca, gp / ca],
            [area / c2, gp / c2, -gp / c2],
        ]
    )
    b = np.array([[axis.force_per_torque / mass, -1.0 / mass, 0.0], [0, 0, -1.0 / ca], [0, 0, 0]])
    return a, b
