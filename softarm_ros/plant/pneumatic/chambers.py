"""What pressure makes of the chambers of a section: free extension with hysteresis and creep."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from softarm_ros.models.hysteresis import HysteresisConfig, KelvinVoigtCreep, PrandtlIshlinskii
from softarm_ros.plant.pneumatic.config import (
    ChamberHysteresisConfig,
    PneumaticPlantSectionConfig,
)

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
        law = HysteresisConfig(
            stiffness=1.0,
            lost_share=hysteresis.lost_share,
            saturation=hysteresis.saturation_Pa,
            stops=hysteresis.stops,
        )
        self._stops = [PrandtlIshlinskii(law) for _ in range(3)]
        self._creep = [KelvinVoigtCreep(hysteresis.creep) for _ in range(3)]
        full = self._stops[0].virgin(section.full_pressure_Pa)
        self._scale = 1.0 / (full * (1.0 + math.fsum(hysteresis.creep.shares)))
        self._extension = np.array(section.extension_m)
        angles = ANGLES_RAD + math.radians(section.turn_deg)
        self._directions = np.stack([np.cos(angles), np.sin(angles)], axis=1)

    def advance(self, pressures: Array, duration_s: float) -> Array:
        """Let pressures (3,) [Pa] act for a time; return the free extensions (3,) [m]."""
        drive = [
            creep.step(stops.step(float(p)).output, duration_s)
            for stops, creep, p in zip(self._stops, self._creep, pressures)
        ]
        return self.extensions_of(self._scale * np.array(drive))

    def settle(self, pressures: Array) -> Array:
        """Return the free extensions (3,) [m] a long time after a first filling to (3,) [Pa]."""
        drive = []
        for stops, creep, p in zip(self._stops, self._creep, pressures):
            stops.reset()
            output = stops.step(float(p)).output
            creep.reset(output)
            drive.append(creep.output)
        return self.extensions_of(self._scale * np.array(drive))

    def extensions_of(self, share: Array) -> Array:
        """Return the curve's extensions (3,) [m] for shares (3,) of the full pressure."""
        linear = self.section.linear_share
        return np.asarray(self._extension * share * (linear + (1.0 - linear) * np.abs(share)))

    def free_strain(self, extensions: Array) -> Array:
        """Return stretch and curvatures (4,) [-, 1/m] of a section with extensions (3,) [m]."""
        s = self.section
        bend = -2.0 / (3.0 * s.chamber_radius_m) * (extensions @ self._directions)
        return np.array([extensions.mean(), -bend[1], bend[0], 0.0]) / s.bending_length_m
