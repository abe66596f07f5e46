"""Model of the arm's deviations from its model: groups of sections, their spread and speed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softarm_ros.control.estimation.config import PredictingConfig
from softarm_ros.geometry.arrays import Array, IntArray

_SIX = 6
_TWIST_SHARE = 0.3  # speed of torsion as a share of that of bending: torsion moves little
_LINEAR_SHARE = 0.05  # likewise, speed of stretch and shear


@dataclass(frozen=True)
class DeviationModel:
    """
    Strains of sections = commanded + `shares` c[`modes`], with c (n,) as in `kalman_kernels`.

    Attributes
    ----------
    modes, shares : (6 sections,)
        For each strain, the index of the deviation it takes part in and its share. The sections of
        a group share the group's deviation evenly.
    group_ends : (groups,)
        Index of the last section of each group.
    sd : (n,)
        Standard deviation of c before any measurement.
    rates : (n, n)
        Covariance of the velocities of c before any measurement.
    least_rates : (n,)
        Lower bound of the variances of the velocities, whatever is learnt.
    scales : (filters,)
        Factor of each filter on the covariance of the velocities.
    memory_s : float

    """

    modes: IntArray
    shares: Array
    group_ends: tuple[int, ...]
    sd: Array
    rates: Array
    least_rates: Array
    scales: Array
    memory_s: float

    @property
    def size(self) -> int:
        """Length n of c."""
        return len(self.sd)

    def first(self) -> tuple[Array, Array]:
        """Return x (filters, 2 n) and P (filters, 2 n, 2 n) before any measurement."""
        bank, n = len(self.scales), self.size
        covariance = np.zeros((bank, 2 * n, 2 * n))
        covariance[:, :n, :n] = np.diag(self.sd**2)
        covariance[:, n:, n:] = self.scales[:, None, None] * self.rates
        return np.zeros((bank, 2 * n)), covariance

    @staticmethod
    def of(config: PredictingConfig, sections: int, length_m: float) -> DeviationModel:
        """Return the deviations of an arm with a number of sections and a length [m]."""
        groups = min(config.groups, sections)
        of_section = [k * groups // sections for k in range(sections)]
        modes = np.array([_SIX * group + i for group in of_section for i in range(_SIX)])
        ends = tuple(k for k in range(sections) if of_section[k + 1 : k + 2] != [of_section[k]])
        part = length_m / groups
        counts = np.array([of_section.count(g) for g in range(groups)], dtype=float)
        shares = np.repeat(1.0 / counts[of_section], _SIX)
        linear = part * np.array([config.shear_sd, config.shear_sd, config.stretch_sd])
        bend, twist = config.bend_sd_rad, config.twist_sd_rad
        sd = np.concatenate(
            [np.concatenate([linear, [bend * n**0.5, bend * n**0.5, twist]]) for n in counts]
        )
        # Independent bends of all groups at this rate move the tip at one metre per second.
        turn = (3.0 / groups) ** 0.5 / length_m
        shift = _LINEAR_SHARE / groups**0.5
        unit = np.tile([shift, shift, shift, turn, turn, _TWIST_SHARE * turn], groups)
        return DeviationModel(
            modes,
            shares,
            ends,
            sd,
            np.diag((config.deviation_speed_m_s * unit) ** 2),
            (config.least_speed_m_s * unit) ** 2,
            np.square(config.deviation_speeds),
            config.memory_s,
        )
