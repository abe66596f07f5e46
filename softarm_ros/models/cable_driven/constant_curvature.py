"""The baseline model: circular arcs, with cables at a constant distance (eq. 31-40)."""

from __future__ import annotations

import math

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ModelError
from softarm_ros.models.cable_driven.arm import CableDrivenArm
from softarm_ros.models.cable_driven.slack_kernels import (
    holding_shares,
    least_bend,
    taut_bend_jacobian_into,
)

# Cables pulled in against each other by less than this count as just taut [m].
OVERPULL_TOLERANCE_M = 1e-6
# A section bent further would run into its own endcap.
MAX_BENDING_RAD = 2.0 * math.pi


class ConstantCurvatureArm(CableDrivenArm):
    """
    Constant curvature without cutting in: contraction d_i theta = a_i . b, whatever the tension.

    In forward statics, slack cables do not act: the section takes the least bend that its cables
    admit.
    """

    name: str = 'constant_curvature'

    def _section_contraction(self, k: int, bend: Array) -> Array:
        bx, by = float(bend[0]), float(bend[1])
        self._require_possible(k, math.hypot(bx, by))
        if bx != 0.0 or by != 0.0:
            *_, holdable = holding_shares(bx, by, self._paths[k])
            if not holdable:
                raise not_holdable(self.sections[k].name, bx, by)
        return self._paths[k][:, :2] @ bend

    def _section_contraction_jacobian(self, k: int, bend: Array) -> Array:
        return self._paths[k][:, :2].copy()

    def _section_bend(self, k: int, contraction: Array) -> Array:
        bx, by, overpull = least_bend(contraction, self._paths[k])
        if overpull > OVERPULL_TOLERANCE_M:
            raise ModelError(
                f'section {self.sections[k].name}: cables are pulled in against each other by '
                f'{1e3 * overpull:.3f} mm each, which a section of constant length cannot follow: '
                f'{self._contractions_text(k, contraction)}'
            )
        self._require_possible(k, math.hypot(bx, by))
        return np.array([bx, by])

    def _section_bend_jacobian(self, k: int, contraction: Array, bend: Array) -> Array:
        jacobian = np.empty((2, contraction.size))
        taut_bend_jacobian_into(bend[0], bend[1], contraction, self._paths[k], jacobian)
        return jacobian

    def _require_possible(self, k: int, theta: float) -> None:
        section = self.sections[k]
        limit = min(MAX_BENDING_RAD, section.length_m / section.cable_radius_m)
        if theta >= limit:
            raise ModelError(
                f'section {section.name}: bending by {math.degrees(theta):.1f} deg is beyond '
                f'{math.degrees(limit):.1f} deg, where its arc closes or its inner cable vanishes'
            )

    def _contractions_text(self, k: int, contraction: Array) -> str:
        return ', '.join(
            f'{self.cables[i].name} {1e3 * value:.3f} mm'
            for i, value in zip(self._columns[k], contraction)
        )


def not_holdable(section: str, bx: float, by: float) -> ModelError:
    """Return the error for a bending direction between cables more than 180 degrees apart."""
    return ModelError(
        f'section {section}: no cables can hold a bend towards '
        f'{math.degrees(math.atan2(by, bx)):.1f} deg; they all pull away from it'
    )
