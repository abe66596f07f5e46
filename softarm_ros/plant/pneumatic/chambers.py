"""Response of the chambers of all sections to pressure: free extension, hysteresis, creep."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.plant.hysteresis import HysteresisConfig, PrandtlIshlinskii
from softarm_ros.plant.pneumatic.chamber_kernels import (
    advance_chambers,
    follow_pressures,
    free_extension,
    free_strain_into,
)
from softarm_ros.plant.pneumatic.config import (
    ChamberHysteresisConfig,
    PneumaticPlantSectionConfig,
)
from softarm_ros.plant.pneumatic.layout import Chambers

ANGLES_RAD = np.radians([90.0, 210.0, 330.0])


class PlantChambers:
    """
    The chambers of s sections, three in each.

    The pressure passes hysteresis and creep, then the chamber's curve, which gives the extension
    without resistance. Hysteresis and creep are scaled so that the first filling to full pressure,
    held until creep has ended, lies on the curve: they add memory but no error of scale.

    Attributes
    ----------
    arrays
        Arrays of the kernels.

    """

    def __init__(
        self,
        sections: Sequence[PneumaticPlantSectionConfig],
        hysteresis: ChamberHysteresisConfig,
    ) -> None:
        self.arrays: Chambers = _arrays(sections, hysteresis)

    def advance(self, pressures: Array, duration_s: float) -> Array:
        """Advance under pressures (s, 3) [Pa]; return the free extensions (s, 3) [m]."""
        for k, shares in enumerate(pressures / self.arrays.full[:, None]):
            advance_chambers(self.arrays, k, shares, duration_s)
        return self.extensions()

    def settle(self, pressures: Array) -> Array:
        """Return the extensions (s, 3) [m] long after a first filling to pressures (s, 3) [Pa]."""
        a = self.arrays
        a.share[:] = a.stops[:] = 0.0
        _fill(a, pressures / a.full[:, None])
        a.crept[:] = a.share[:, :, None]
        a.output[:] = a.scale[:, None] * a.share * (1.0 + a.creep_share.sum(axis=1))[:, None]
        return self.extensions()

    def extensions(self) -> Array:
        """Return the present free extensions (s, 3) [m]."""
        a = self.arrays
        return np.array(
            [
                [free_extension(a, k, j, a.output[k, j]) for j in range(3)]
                for k in range(len(a.full))
            ]
        )

    def free_strains(self) -> Array:
        """Return the present free strains (s, 4): curvatures about x, y, z [1/m], stretch."""
        free = np.empty((len(self.arrays.full), 4))
        for k, row in enumerate(free):
            free_strain_into(self.arrays, k, self.arrays.output[k], row)
        return free


def _arrays(
    sections: Sequence[PneumaticPlantSectionConfig], hysteresis: ChamberHysteresisConfig
) -> Chambers:
    """Return the arrays of chambers that were never filled."""
    laws = [
        PrandtlIshlinskii(
            HysteresisConfig(
                stiffness=1.0,
                lost_share=hysteresis.lost_share,
                saturation=hysteresis.saturation_Pa / section.full_pressure_Pa,
                stops=hysteresis.stops,
            )
        )
        for section in sections
    ]
    angles = [ANGLES_RAD + math.radians(section.turn_deg) for section in sections]
    length = np.array([section.bending_length_m for section in sections])
    lever = np.array([2.0 / (3.0 * section.chamber_radius_m) for section in sections])
    bending = np.stack([np.sin(angles), -np.cos(angles)], axis=2) * (lever / length)[:, None, None]
    s, creep = len(sections), hysteresis.creep
    arrays = Chambers(
        full=np.array([section.full_pressure_Pa for section in sections]),
        elastic=np.array([law.elastic for law in laws]),
        thresholds=np.array([law.thresholds for law in laws]),
        weights=np.array([law.weights for law in laws]),
        scale=np.ones(s),
        linear=np.array([section.linear_share for section in sections]),
        extension=np.array([section.extension_m for section in sections]),
        bending=np.ascontiguousarray(bending),
        stretching=1.0 / (3.0 * length),
        creep_share=np.tile(np.array(creep.shares, dtype=np.float64), (s, 1)),
        creep_lag=np.tile(np.array(creep.lags_s, dtype=np.float64), (s, 1)),
        share=np.zeros((s, 3)),
        stops=np.zeros((s, 3, hysteresis.stops)),
        crept=np.zeros((s, 3, len(creep.lags_s))),
        output=np.zeros((s, 3)),
    )
    full = arrays._replace(share=arrays.share.copy(), stops=arrays.stops.copy())
    _fill(full, np.ones((s, 3)))
    arrays.scale[:] = 1.0 / (full.share[:, 0] * (1.0 + math.fsum(creep.shares)))
    return arrays


def _fill(chambers: Chambers, shares: Array) -> None:
    """Fill the chambers at once to shares (s, 3) of the full pressure, without creep."""
    for k in range(len(chambers.full)):
        follow_pressures(
            shares[k], chambers.elastic[k], chambers.thresholds[k], chambers.weights[k],
            chambers.share[k], chambers.stops[k],
        )  # fmt: skip
