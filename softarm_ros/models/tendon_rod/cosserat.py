"""The Cosserat rod as the controller's model of a tendon-driven arm."""

from __future__ import annotations

import numpy as np

from softarm_ros.models.arm_model import ZERO3, Array, Shape, Vector3
from softarm_ros.models.cosserat.arm import CosseratArm
from softarm_ros.models.cosserat.config import CosseratConfig
from softarm_ros.models.tendon_rod.arm import TendonRodModel

_TOLERANCE_RAD = 1e-10  # times the arm's length: the error of a tip


class CosseratTendonRod(TendonRodModel):
    """
    Statics with weight, tip load and the cables' exact wrenches (docs/models_cosserat.md).

    Solutions are started from the last one, for speed alone: they are converged to 1e-10 rad,
    whatever came before, and where that fails or ends at an instability the arm is solved from
    rest.

    Parameters
    ----------
    config, pretension_N
        As `TendonRodModel`.
    tip_load_kg : float
        Mass that hangs at the tip.

    """

    name = 'cosserat'

    def __init__(
        self, config: CosseratConfig, pretension_N: float, tip_load_kg: float = 0.0
    ) -> None:
        self._weight = tip_load_kg * np.array(config.gravity_m_s2)
        self._arm = CosseratArm(config)
        self._last: tuple[Array, Array, Array, Array] | None = None
        super().__init__(config, pretension_N)

    def forward(
        self, actuation: Array, tip_force: Vector3 = ZERO3, tip_moment: Vector3 = ZERO3
    ) -> Shape:
        """
        Return the stable shape under tensions (cables,) [N] and a load beside the tip's own.

        Raises
        ------
        ModelError
            Tension out of range, no equilibrium, or an unstable one.

        """
        tensions = self._within_range(actuation)
        self._last = None
        shape = self._arm.forward(tensions, self._force(tip_force), tip_moment)
        return Shape(shape.tip, shape.section_tips, tensions, shape.sample_centerline)

    def pose_and_jacobian(self, tensions: Array, tip_force: Vector3) -> tuple[Array, Array]:
        """Return the tip (4, 4) and its twist by tension (6, cables), linear rows first."""
        force = self._force(tip_force)
        last = self._last
        if (
            last is not None
            and np.array_equal(last[0], tensions)
            and np.array_equal(last[1], force)
        ):
            return last[2], last[3]
        rod = self._arm.rod
        rod.load(tensions, force)
        status, _, regular, _, _ = rod.equilibrate(True, _TOLERANCE_RAD)
        if status or not regular:
            self._last = None
            self._arm.forward(tensions, force)
        tip, jacobian = rod.tip_pose(), rod.derivatives().tip_by_tension
        self._last = (tensions.copy(), force, tip, jacobian)
        return tip, jacobian

    def _force(self, tip_force: Vector3) -> Array:
        return np.asarray(tip_force, dtype=float) + self._weight
