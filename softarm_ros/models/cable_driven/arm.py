"""Cable-driven arms in which each cable acts only on the section it belongs to."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.models.cable_driven.bending_arm import BendingArm


class CableDrivenArm(BendingArm):
    """
    Arm whose cables pass proximal sections along their centreline, without acting on them.

    A subclass supplies four functions that relate the cable contractions and the bending vector
    of one section.
    """

    @abstractmethod
    def _section_contraction(self, k: int, bend: Array) -> Array:
        """Return the cable contractions (m,) [m] that hold section k at `bend` (2,) [rad]."""

    @abstractmethod
    def _section_contraction_jacobian(self, k: int, bend: Array) -> Array:
        """Return d contraction / d bend (m, 2) [m/rad] of section k."""

    @abstractmethod
    def _section_bend(self, k: int, contraction: Array) -> Array:
        """Return the bending vector (2,) [rad] of section k under `contraction` (m,) [m]."""

    @abstractmethod
    def _section_bend_jacobian(self, k: int, contraction: Array, bend: Array) -> Array:
        """Return d bend / d contraction (2, m) [rad/m] of section k at an equilibrium."""

    def actuation_of(self, configuration: Array) -> Array:
        """Return the contractions (m,) [m] that hold a configuration (dof,) [rad]."""
        bend = self._checked_configuration(configuration)
        actuation = np.empty(len(self.cables))
        for k, columns in enumerate(self._columns):
            actuation[columns] = self._section_contraction(k, bend[2 * k : 2 * k + 2])
        return actuation

    def actuation_jacobian(self, configuration: Array) -> Array:
        """
        Return d actuation / d configuration (m, dof) [m/rad].

        The derivative is one-sided where a cable changes between slack and taut.
        """
        bend = self._checked_configuration(configuration)
        jacobian = np.zeros((len(self.cables), bend.size))
        for k, columns in enumerate(self._columns):
            jacobian[columns, 2 * k : 2 * k + 2] = self._section_contraction_jacobian(
                k, bend[2 * k : 2 * k + 2]
            )
        return jacobian

    def configuration_of(self, actuation: Array) -> Array:
        """
        Return the configuration (dof,) [rad] under contractions (m,) [m]; cables may be slack.

        Raises
        ------
        ModelError
            If the cables are pulled in against each other further than the model admits, or
            bend a section beyond the range of the model.

        """
        contraction = self._checked_actuation(actuation)
        bend = np.empty(2 * len(self.sections))
        for k, columns in enumerate(self._columns):
            bend[2 * k : 2 * k + 2] = self._section_bend(k, contraction[columns])
        return bend

    def jacobian(self, actuation: Array) -> Array:
        """
        Return the tip twist per contraction (6, m), base frame, linear first [m/m, rad/m].

        A cable that is just taut counts as taut: at the switch to slack, its column is the
        derivative for pulling it in, or for moving it consistently with the other cables. Slack
        cables have zero columns.
        """
        contraction = self._commanded(actuation)
        bend = self.configuration_of(contraction)
        twists = self.twist_jacobian(bend)
        jacobian = np.empty((6, contraction.size))
        for k, columns in enumerate(self._columns):
            pair = slice(2 * k, 2 * k + 2)
            jacobian[:, columns] = twists[:, pair] @ self._section_bend_jacobian(
                k, contraction[columns], bend[pair]
            )
        return jacobian
