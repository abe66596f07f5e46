"""Common base of models with water chambers, which hold bends and elongations of sections."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar, Generic, TypeVar

import numpy as np

from softarm_ros.geometry.arrays import Array, real_array, real_rows
from softarm_ros.geometry.rotations import rotation_x, rotation_y
from softarm_ros.models.arm_model import (
    ZERO3,
    InverseSolution,
    ModelError,
    Posture,
    Shape,
    Vector3,
)
from softarm_ros.models.hydraulics.held_posture import HeldPosture
from softarm_ros.models.hydraulics.inverse import HeldShapeProblem
from softarm_ros.models.hydraulics.section_config import (
    ChamberConfig,
    HydraulicSectionConfig,
    Surroundings,
)
from softarm_ros.models.hydraulics.sections import chamber_places
from softarm_ros.models.hydraulics.seen_kernels import seen_configuration
from softarm_ros.models.inverse import find_pose, pose_target

_RANGE_TOLERANCE = 0.01  # of the pressure range: margin for an actuation outside it
_LARGEST_CONDITION = 1e3  # of the map from pressures to resultants, in units of lever and area
Held = TypeVar('Held')


class HeldSections(ABC, Generic[Held]):
    """
    `ArmModel` of sections with three water chambers each, in bends and elongations.

    The configuration of a section is (b_x, b_y, elongation), the integrals of curvature in the
    material's axes and of stretch. The lengths of the three chambers are linear in these three
    numbers and prescribe them. A subclass solves for the balance that holds a configuration
    (`Held` is its class of balance) and for the shape under given pressures.

    Parameters
    ----------
    sections, chambers
        From base to tip; the chambers in the order of every actuation.
    surroundings : Surroundings
        Gravity, fluid, tip load.
    pressure_min_Pa, pressure_max_Pa : (m,)
        Pressure range of each chamber, gauge.
    preload_Pa : float
        Pressure of every chamber when the arm is switched on; also the pressure of the least
        filled chamber of a section in the preferred configuration.
    name : str
        Name of the model.

    Raises
    ------
    ModelError
        If a section does not have three chambers, or they cannot bend it both ways.

    """

    NEAR: ClassVar[float] = 0.15  # rad and m: a nearer balance is used as the start of a search

    def __init__(
        self,
        sections: Sequence[HydraulicSectionConfig],
        chambers: Sequence[ChamberConfig],
        surroundings: Surroundings,
        pressure_min_Pa: Array,
        pressure_max_Pa: Array,
        preload_Pa: float,
        name: str,
    ) -> None:
        self.name = name
        self.sections, self.chambers = tuple(sections), tuple(chambers)
        self._configuration_names = tuple(
            f'{section.name}_{part}'
            for section in self.sections
            for part in ('bend_x', 'bend_y', 'elongation')
        )
        self._own = [
            [i for i, chamber in enumerate(self.chambers) if chamber.section == k]
            for k in range(len(self.sections))
        ]
        self._section_lengths = np.array([section.length_m for section in sections])
        tilt_x, tilt_y = np.radians(surroundings.base_tilt_deg)
        self._mount = np.eye(4)
        self._mount[:3, :3] = rotation_x(tilt_x) @ rotation_y(tilt_y)
        self.pressure_min = np.asarray(pressure_min_Pa, dtype=float)
        self.pressure_max = np.asarray(pressure_max_Pa, dtype=float)
        self.preload_Pa = preload_Pa
        # Resultants per pressure (3 s, m) [m^3, m^2], conjugate to the configuration.
        self.pressure_map = resultants_of_pressures(self.sections, self.chambers)
        levers = [s.chamber_area_m2 * s.chamber_pitch_radius_m for s in self.sections]
        areas = [s.chamber_area_m2 for s in self.sections]
        unit = np.stack([levers, levers, areas], axis=1).reshape(-1, 1)
        if np.linalg.cond(self.pressure_map / unit) > _LARGEST_CONDITION:
            raise ModelError('the chambers of a section lie on one side: they cannot bend it')
        self._to_pressure = np.linalg.inv(self.pressure_map)
        self._rest = np.zeros(3 * len(self.sections))  # the subclass replaces it

    # -- methods of the subclasses ----------------------------------------------------------

    @abstractmethod
    def balance(self, configuration: Array, tip_force: Vector3, near: Held | None) -> Held:
        """
        Return the balance that holds a configuration (3 s,) under a load at the tip [N].

        `near` is the balance of a similar configuration, from which the search starts.

        Raises
        ------
        ModelError
            If there is no balance.

        """

    @abstractmethod
    def configuration_of_held(self, held: Held) -> Array:
        """Return the configuration (3 s,) of a balance."""

    @abstractmethod
    def is_stable(self, held: Held) -> bool:
        """Return whether the shape of a balance is stable at constant pressures."""

    @abstractmethod
    def tip_of(self, held: Held) -> Array:
        """Return the pose (4, 4) of the tip in the base frame."""

    @abstractmethod
    def twists_of(self, held: Held) -> Array:
        """Return the twist of the tip (6, 3 s) by configuration, linear rows first."""

    @abstractmethod
    def pressures_of(self, held: Held) -> Array:
        """Return the pressures (m,) [Pa] of a balance; they may lie out of range."""

    @abstractmethod
    def pressure_rates_of(self, held: Held) -> Array:
        """Return d pressures / d configuration (m, 3 s) at a balance."""

    @abstractmethod
    def shape_of_held(self, held: Held) -> Shape:
        """Return the shape of a balance."""

    @abstractmethod
    def forward(
        self, actuation: Array, tip_force: Vector3 = ZERO3, tip_moment: Vector3 = ZERO3
    ) -> Shape:
        """
        Return the shape under pressures (m,) [Pa] and a load at the tip [N, N m].

        Raises
        ------
        ModelError
            For pressures out of range, or if there is no stable equilibrium.

        """

    @abstractmethod
    def configuration_of(self, actuation: Array) -> Array:
        """Return the configuration (3 s,) under pressures (m,); errors as `forward`."""

    @abstractmethod
    def jacobian(self, actuation: Array) -> Array:
        """Return the tip twist per pressure (6, m), base frame, linear rows first."""

    # -- names and sizes --------------------------------------------------------------------

    @property
    def actuator_names(self) -> tuple[str, ...]:
        """Names of the chambers."""
        return tuple(chamber.name for chamber in self.chambers)

    @property
    def configuration_names(self) -> tuple[str, ...]:
        """Bending-vector components [rad] and elongation [m] of every section."""
        return self._configuration_names

    @property
    def rest_length_m(self) -> float:
        """Length of the arm without load [m]."""
        return float(self._section_lengths.sum())

    @property
    def rest_configuration(self) -> Array:
        """Configuration (3 s,) under the preload."""
        return self._rest.copy()

    @property
    def configuration_scale(self) -> Array:
        """
        Scale (3 s,): one radian, and a tenth of the elongation that needs the same pressure.

        Elongation moves the tip by millimetres only. It serves to keep the chambers filled, not to
        track a target.
        """
        scale = []
        for section in self.sections:
            lever = section.axial_stiffness_N * section.chamber_pitch_radius_m
            scale += [1.0, 1.0, 0.2 * section.bending_stiffness_N_m2 / lever]
        return np.array(scale)

    # -- configuration -> shape, pressures --------------------------------------------------

    def held(self, configuration: Array, near: Held | None = None) -> Held:
        """
        Return the balance that holds a configuration (3 s,) without load at the tip.

        `near` is the balance of a similar configuration, which shortens the search.

        Raises
        ------
        ModelError
            For a wrong shape, a number that is not finite, or if there is no balance.

        """
        return self._near_balance(self._checked_configuration(configuration), near)

    def _near_balance(self, wanted: Array, near: Held | None) -> Held:
        """Return `held` for a checked configuration (3 s,)."""
        if near is not None:
            away = np.abs(self.configuration_of_held(near) - wanted)
            if float(away.max()) >= self.NEAR:
                near = None
        return self.balance(wanted, ZERO3, near)

    def posture_of(self, configuration: Array, near: Posture | None = None) -> Posture:
        """Return the posture at a configuration (3 s,); `near` is one at a similar one."""
        values = self._checked_configuration(configuration)
        start = near.held if isinstance(near, HeldPosture) else None
        return HeldPosture(self, values, self._near_balance(values.copy(), start))

    def shape_of(self, configuration: Array) -> Shape:
        """Return the shape of a configuration (3 s,), including the twist due to weight."""
        return self.shape_of_held(self.held(configuration))

    def tips_of(self, configurations: Array) -> Array:
        """Return the tip positions (n, 3) [m] of configurations (n, 3 s)."""
        rows = real_rows(configurations, 'configurations', len(self.configuration_names))
        tips = [self.tip_of(self.held(row))[:3, 3] for row in rows]
        return np.array(tips).reshape(-1, 3)

    def tip_and_jacobian(self, configuration: Array) -> tuple[Array, Array]:
        """Return tip position (3,) [m] and its derivative (3, 3 s) by configuration."""
        held = self.held(configuration)
        return self.tip_of(held)[:3, 3], self.twists_of(held)[:3]

    def actuation_of(self, configuration: Array) -> Array:
        """Return the pressures (m,) [Pa] that hold a configuration; they may lie out of range."""
        return self.pressures_of(self.held(configuration))

    def actuation_jacobian(self, configuration: Array) -> Array:
        """Return d pressures / d configuration (m, 3 s)."""
        return self.pressure_rates_of(self.held(configuration))

    def preferred_configuration(self, configuration: Array) -> Array:
        """
        Return the configuration of equal bends with the least pressures that fill every chamber.

        The least filled chamber of a section gets the preload. With less pressure it would draw
        air or vapour when the arm's motion stretches it.
        """
        values = self._checked_configuration(configuration)
        return self.preferred_from(values, self.held(values))

    def preferred_from(self, configuration: Array, held: Held) -> Array:
        """Return `preferred_configuration` from a known balance."""
        values, pressures = configuration.reshape(-1, 3), self.pressures_of(held)
        wanted = values.copy()
        wanted[:, :2] = values[:, :2].mean(axis=0)
        for k, section in enumerate(self.sections):
            own = self._own[k]
            missing = self.preload_Pa - float(pressures[own].min())
            stretch = len(own) * section.chamber_area_m2 / section.axial_stiffness_N
            wanted[k, 2] += missing * stretch * section.length_m
        return wanted.ravel()

    def observed_configuration(self, section_tips: Array) -> Array | None:
        """
        Return the configuration (3 s,) of measured tips (s, 4, 4); None if some are missing.

        Each section is treated as a helix: the rotation between its ends gives the bend, and their
        distance gives the elongation.
        """
        tips = np.asarray(section_tips, dtype=float)
        if tips.shape != (len(self.sections), 4, 4):
            return None
        if not np.isfinite(tips).all():
            return np.full(3 * len(self.sections), np.nan)
        seen = np.ascontiguousarray(self._mount.T @ tips)  # in the frame of the mount
        return seen_configuration(seen, self._section_lengths)

    def inverse(
        self,
        position: Vector3,
        orientation: Array | None = None,
        guess: Array | None = None,
        tip_force: Vector3 = ZERO3,
    ) -> InverseSolution:
        """
        Return pressures (m,) within their range that put the tip at a position (3,) [m].

        If the search does not converge, pressures may be beyond their range; the message says so.
        `orientation` (3, 3) is optional; `guess` (m,) are pressures to start from. The search
        prefers equal bends of the sections (see `preferred_configuration`).
        """
        target = pose_target(position, orientation, self.rest_length_m)
        start = None if guess is None else self.configuration_of(guess)
        problem = HeldShapeProblem(self, tip_force, target.with_orientation)
        return find_pose(problem, target, start)

    def _checked_actuation(self, actuation: Array) -> Array:
        pressures = real_array(actuation, 'actuation')
        if pressures.shape != (len(self.chambers),):
            raise ModelError(
                f'actuation has shape {pressures.shape}; expected ({len(self.chambers)},)'
            )
        slack = _RANGE_TOLERANCE * (self.pressure_max - self.pressure_min)
        for chamber, value, low, high, more in zip(
            self.chambers, pressures, self.pressure_min, self.pressure_max, slack
        ):
            if not math.isfinite(value):
                raise ModelError(f'{chamber.name} = {value}: expected a finite pressure in Pa')
            if not low - more <= value <= high + more:
                raise ModelError(
                    f'{chamber.name} = {value:.6g} Pa outside [{low:.6g}, {high:.6g}] Pa'
                )
        return pressures

    def _checked_configuration(self, configuration: Array) -> Array:
        values = real_array(configuration, 'configuration')
        names = self.configuration_names
        if values.shape != (len(names),):
            raise ModelError(
                f'configuration has shape {values.shape}; expected ({len(names)},) '
                f'for {", ".join(names)}'
            )
        for name, value in zip(names, values.tolist()):
            if not math.isfinite(value):
                raise ModelError(f'{name} = {value}: expected a finite number')
        return values


def resultants_of_pressures(
    sections: Sequence[HydraulicSectionConfig], chambers: Sequence[ChamberConfig]
) -> Array:
    """
    Return the moments towards x and y and the force of each section per pressure (3 s, m).

    Units are m^3 and m^2. By virtual work the transpose is the chamber volume per configuration.

    Raises
    ------
    ModelError
        If a chamber names an unknown section, or a section does not have three chambers.

    """
    places = chamber_places(sections, chambers)
    found = np.zeros((3 * len(sections), len(chambers)))
    for i, (chamber, (x, y)) in enumerate(zip(chambers, places)):
        area = sections[chamber.section].chamber_area_m2
        found[3 * chamber.section : 3 * chamber.section + 3, i] = -area * x, -area * y, area
    return found


def turned_centerline(turn: Array, sample: Callable[[int], Array], n: int) -> Array:
    """Return n points of a centreline in the frame of the mount, turned into the base frame."""
    return sample(n) @ turn.T
