"""Hysteresis of the fabric: moments against bending that depend on where the bend came from."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from softarm_ros.plant.hydraulic.config import FabricConfig, PlantHydraulicSection
from softarm_ros.plant.hysteresis import HysteresisConfig, PrandtlIshlinskii

Array = NDArray[np.float64]


class Fabric:
    """
    Stops in parallel with the bending stiffness of every section, one set for each direction.

    The stiffness of the section itself is that of a large slow bend; small bends meet
    `stiffness_share` more, and a loop of bends loses what the stops dissipate.

    Parameters
    ----------
    config
        Share and yielding bend.
    sections
        For their stiffnesses.
    bends : (s, 2)
        Bending vectors of the sections to start from, without memory [rad].

    """

    def __init__(
        self, config: FabricConfig, sections: Sequence[PlantHydraulicSection], bends: Array
    ) -> None:
        self._elements = []
        for section, bend in zip(sections, bends):
            extra = config.stiffness_share * section.bending_stiffness_N_m2 / section.length_m
            for value in bend:
                # The elastic half of the element is taken off again in `moments`.
                element = PrandtlIshlinskii(
                    HysteresisConfig(
                        stiffness=2.0 * extra,
                        lost_share=0.5,
                        saturation=math.radians(config.yield_bend_deg),
                    )
                )
                element.reset(float(value))
                self._elements.append((element, float(value)))

    def moments(self, bends: Array) -> Array:
        """Return the moments (s, 2) [N m] against bends (s, 2), each reached monotonically."""
        out = [
            element.step(float(value)).output - element.elastic * (float(value) - start)
            for (element, start), value in zip(self._elements, bends.ravel())
        ]
        return np.array(out).reshape(-1, 2)
