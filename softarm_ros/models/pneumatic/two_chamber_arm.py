"""The pneumatic arm as its paper drives it: two bends a section, the third chamber at rest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from softarm_ros.models.arm_model import (
    ZERO3,
    Array,
    InverseSolution,
    Shape,
    Vector3,
)
from softarm_ros.models.pneumatic.angle_correction import PneumaticArm
from softarm_ros.models.pneumatic.chambers import CHAMBER_DIRECTIONS


class TwoChamberArm:
    """
    A `PneumaticArm` with at most two chambers of a section under pressure (Gong et al., eq. 10-13).

    Implements `ArmModel`. Actuation: gauge pressure of each chamber [Pa], three a section.
    Configuration: the bending vector (b_x, b_y) [rad] of every section; its length follows from
    the chamber that stays at rest. Where that role passes from one chamber to the next, the
    pressures are continuous and their derivative is that of one side.

    Parameters
    ----------
    arm
        The mechanics: curves, mounts, weights.
    name
        Of the model.

    """

    def __init__(self, arm: PneumaticArm, name: str | None = None) -> None:
        self.arm = arm
        self.name = name or arm.name
        self._sections = len(arm.sections)

    # Names and sizes.

    @property
    def actuator_names(self) -> tuple[str, ...]:
        """Names of the chambers, in the order of every actuation."""
        return self.arm.actuator_names

    @property
    def configuration_names(self) -> tuple[str, ...]:
        """Names of the bending components, in the order of every configuration."""
        return tuple(f'{s.name}_{b}' for s in self.arm.sections for b in ('bend_x', 'bend_y'))

    @property
    def rest_length_m(self) -> float:
        """Length of the straight arm without pressure [m]."""
        return self.arm.rest_length_m

    @property
    def rest_configuration(self) -> Array:
        """Straight, without pressure (dof,)."""
        return np.zeros(2 * self._sections)

    @property
    def configuration_scale(self) -> Array:
        """One radian a bend (dof,)."""
        return np.ones(2 * self._sections)

    def preferred_configuration(self, configuration: Array) -> Array:
        """Return all sections bent alike (dof,) [rad]: that needs the least pressure."""
        bends = np.asarray(configuration, dtype=float).reshape(-1, 2)
        return np.tile(bends.mean(axis=0), len(bends))

    def observed_configuration(self, section_tips: Array) -> Array | None:
        """
        Return None: measured points do not tell the bends.

        Cameras give positions; how much of a section's direction is bend and how much sag of its
        mount cannot be told from them.
        """
        return None

    # Pressure <-> configuration.

    def configuration_of(self, actuation: Array) -> Array:
        """
        Return the bends (dof,) under pressures (m,) [Pa].

        Raises
        ------
        ModelError
            For a pressure beyond the identified curve; names the chamber.

        """
        return _bends(self.arm.configuration_of(actuation))

    def actuation_of(self, configuration: Array) -> Array:
        """
        Return the pressures (m,) [Pa] of bends (dof,), one chamber of each section at rest.

        Raises
        ------
        ModelError
            For a chamber longer than identified; names it.

        """
        return self.arm.actuation_of(self._full(configuration))

    def actuation_jacobian(self, configuration: Array) -> Array:
        """Return d pressure / d bend (m, dof) [Pa/rad]."""
        values = self._checked(configuration)
        return self.arm.actuation_jacobian(self._full(values)) @ self._lengthening(values)

    # Configuration <-> shape.

    def shape_of(self, configuration: Array) -> Shape:
        """Return the shape of bends (dof,) under the arm's own weight."""
        shape = self.arm.shape_of(self._full(configuration))
        return replace(shape, configuration=np.array(configuration, dtype=float))

    def tips_of(self, configurations: Array) -> Array:
        """Return the tip positions (n, 3) [m] of many configurations (n, dof)."""
        rows = np.asarray(configurations, dtype=float)
        return np.array([self._tip(row) for row in rows]).reshape(-1, 3)

    def tip_and_jacobian(self, configuration: Array) -> tuple[Array, Array]:
        """Return tip position (3,) [m] and its derivative (3, dof) by the bends."""
        values = self._checked(configuration)
        tip, jacobian = self.arm.tip_and_jacobian(self._full(values))
        return tip, jacobian @ self._lengthening(values)

    def forward(
        self, actuation: Array, tip_force: Vector3 = ZERO3, tip_moment: Vector3 = ZERO3
    ) -> Shape:
        """
        Return the shape under pressures (m,) [Pa] and a load at the tip [N, N m].

        Any three pressures of a section have a shape; its `configuration` holds the bends.
        """
        shape = self.arm.forward(actuation, tip_force, tip_moment)
        return replace(shape, configuration=_bends(shape.configuration))

    def jacobian(self, actuation: Array) -> Array:
        """Return the tip twist per pressure (6, m), base frame, linear rows first."""
        return self.arm.jacobian(actuation)

    def inverse(
        self,
        position: Vector3,
        orientation: Array | None = None,
        guess: Array | None = None,
        tip_force: Vector3 = ZERO3,
    ) -> InverseSolution:
        """Return the pressures for a tip position [m] and, if given, attitude (3, 3)."""
        found = self.arm.inverse(position, orientation, guess, tip_force)
        bends = _bends(found.shape.configuration)
        return replace(found, shape=replace(found.shape, configuration=bends))

    # Parts.

    def _checked(self, configuration: Array) -> Array:
        values = np.array(configuration, dtype=np.float64)
        if values.shape != (2 * self._sections,):
            raise ValueError(
                f'configuration has shape {values.shape}, expected ({2 * self._sections},)'
            )
        if not np.isfinite(values).all():
            raise ValueError(f'configuration {values.tolist()} is not finite')
        return values

    def _full(self, configuration: Array) -> Array:
        """Return bends and lengths (3 sections,)."""
        return self.arm.two_chamber_configuration(self._checked(configuration))

    def _tip(self, bends: Array) -> Array:
        return self.arm.sagged_pose(self._full(bends)).section_tips[-1, :3, 3].copy()

    def _lengthening(self, bends: Array) -> Array:
        """Return d (bends and lengths) / d bends (3 sections, 2 sections)."""
        out = np.zeros((3 * self._sections, 2 * self._sections))
        for k, section in enumerate(self.arm.sections):
            two = slice(2 * k, 2 * k + 2)
            out[3 * k : 3 * k + 2, two] = np.eye(2)
            passive = int(np.argmax(CHAMBER_DIRECTIONS @ bends[two]))
            out[3 * k + 2, two] = section.chamber_radius_m * CHAMBER_DIRECTIONS[passive]
        return out


def _bends(configuration: Array) -> Array:
    """Return the bends (2 sections,) of bends and lengths (3 sections,)."""
    return configuration.reshape(-1, 3)[:, :2].ravel()


