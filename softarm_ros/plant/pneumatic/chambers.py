"""What pressure makes of the chambers of a section: free extension with hysteresis and creep."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from softarm_ros.plant.hysteresis import HysteresisConfig, KelvinVoigtCreep, PrandtlIshlinskii
from softarm_ros.plant.pneumatic.config import (
    ChamberHysteresisConfig,
    PneumaticPlantSectionConfig,
)
from softarm_ros.plant.pneumatic.hysteresis_kernels import follow_pressures

Array = NDArray[np.float64]

ANGLES_RAD = np.radians([90.0, 210.0, 330.0])


class PlantChambers:
    """
    The three chambers of one section.

    The pressure passes hysteresis and creep, then the chamber's curve: its extension if nothing
    resisted. Hysteresis and creep are scaled so that the first filling to full pressure, held
    until it has crept, meets the curve: they bring memory, no error of scale.
    """

    def __init__(
        self, section: PneumaticPlantSectionConfig, hysteresis: ChamberHysteresisConfig
    ) -> None:
        self.section = section
        self._full_Pa = section.full_pressure_Pa
        law = PrandtlIshlinskii(
            HysteresisConfig(
                stiffness=1.0,
                lost_share=hysteresis.lost_share,
                saturation=hysteresis.saturation_Pa / section.full_pressure_Pa,
                stops=hysteresis.stops,
            )
        )
        self._law = (law.elastic, law.thresholds, law.weights)
        self._creep = [KelvinVoigtCreep(hysteresis.creep) for _ in range(3)]
        self._share, self._stops = np.zeros(3), np.zeros((3, hysteresis.stops))
        full = self._first_filling(np.full(3, section.full_pressure_Pa))[0][0]
        self._scale = 1.0 / (float(full) * (1.0 + math.fsum(hysteresis.creep.shares)))
        self._extension = np.array(section.extension_m)
        angles = ANGLES_RAD + math.radians(section.turn_deg)
        self._directions = np.stack([np.cos(angles), np.sin(angles)], axis=1)

    def advance(self, pressures: Array, duration_s: float) -> Array:
        """Let pressures (3,) [Pa] act for a time; return the free extensions (3,) [m]."""
        follow_pressures(pressures / self._full_Pa, *self._law, self._share, self._stops)
        drive = [c.step(float(x), duration_s) for c, x in zip(self._creep, self._share)]
        return self.extensions_of(self._scale * np.array(drive))

    def settle(self, pressures: Array) -> Array:
        """Return the free extensions (3,) [m] a long time after a first filling to (3,) [Pa]."""
        self._share, self._stops = self._first_filling(pressures)
        for creep, x in zip(self._creep, self._share):
            creep.reset(float(x))
        return self.extensions_of(self._scale * np.array([c.output for c in self._creep]))

    def _first_filling(self, pressures: Array) -> tuple[Array, Array]:
        share, stops = np.zeros(3), np.zeros_like(self._stops)
        follow_pressures(pressures / self._full_Pa, *self._law, share, stops)
        return share, stops

    def extensions_of(self, share: Array) -> Array:
        """Return the curve's extensions (3,) [m] for shares (3,) of the full pressure."""
        linear = self.section.linear_share
        return np.asarray(self._extension * share * (linear + (1.0 - linear) * np.abs(share)))

    def free_strain(self, extensions: Array) -> Array:
        """Return stretch and curvatures (4,) [-, 1/m] of a section with extensions (3,) [m]."""
        s = self.section
        bend = -2.0 / (3.0 * s.chamber_radius_m) * (extensions @ self._directions)
        return np.array([extensions.mean(), -bend[1], bend[0], 0.0]) / s.bending_length_m
