"""The Cosserat rod as an `ArmModel` of a tendon-driven arm."""

from __future__ import annotations

import numpy as np

from softarm_ros.geometry.arrays import Array, finite_array
from softarm_ros.models.arm_model import ZERO3, Shape, Vector3
from softarm_ros.models.cosserat.arm import CosseratArm
from softarm_ros.models.cosserat.config import CosseratConfig
from softarm_ros.models.tendon_rod.arm import TendonRodModel
from softarm_ros.models.tendon_rod.solved_tip import SolvedTip

_TOLERANCE_RAD = 1e-10  # times the arm's length: error of a tip


class CosseratTendonRod(TendonRodModel):
    """
    Statics with weight, tip load and the cables' exact wrenches (docs/models_cosserat.md).

    A search may start from the solution under similar tensions, which only saves time: every
    solution converges to 1e-10 rad. If that search fails or ends at an instability, the arm is
    solved from rest.

    Parameters
    ----------
    config, pretension_N
        As in `TendonRodModel`.
    tip_load_kg : float
        Mass of a payload at the tip.

    """

    name = 'cosserat'

    def __init__(
        self, config: CosseratConfig, pretension_N: float, tip_load_kg: float = 0.0
    ) -> None:
        self._weight = tip_load_kg * np.array(config.gravity_m_s2)
        self._arm = CosseratArm(config)
        super().__init__(config, pretension_N)

    def forward(
        self, actuation: Array, tip_force: Vector3 = ZERO3, tip_moment: Vector3 = ZERO3
    ) -> Shape:
        """
        Return the stable shape under tensions (cables,) [N], payload and a further tip load.

        Raises
        ------
        ModelError
            For a tension out of range, no equilibrium, or an unstable one.

        """
        tensions = self._within_range(actuation)
        moment = finite_array(tip_moment, (3,), 'tip_moment')
        state = self._arm.equilibrium(tensions, self._force(tip_force), moment)
        return Shape(state.tip, state.segment_tips, tensions, state.centerline)

    def solve_tip(
        self, tensions: Array, tip_force: Vector3, near: SolvedTip | None = None
    ) -> SolvedTip:
        """Return the tip under tensions (cables,) [N]; `near` is a tip under similar tensions."""
        force = self._force(tip_force)
        rod = self._arm.rod
        rod.load(tensions, force)
        start = None if near is None else near.start
        status, _, regular, _, _ = rod.equilibrate(start, _TOLERANCE_RAD)
        if status or not regular:
            self._arm.equilibrium(tensions, force)  # leaves a stable solution in `rod`, or raises
        return SolvedTip(rod.tip_pose(), rod.derivatives().tip_by_tension, rod.start)

    def section_tips_near(self, tensions: Array, solved: SolvedTip) -> Array:
        """Return the section tips (sections, 4, 4) under tensions with a solved tip."""
        if solved.start is None:
            return self.shape_of(tensions).section_tips
        rod = self._arm.rod
        rod.load(tensions, self._weight)
        return rod.resumed(solved.start).segment_tips

    def _force(self, tip_force: Vector3) -> Array:
        return finite_array(tip_force, (3,), 'tip_force') + self._weight
