"""Hysteresis of the fabric: bending moments that depend on the history of the bend."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.plant.hydraulic.config import FabricConfig, PlantHydraulicSection
from softarm_ros.plant.hydraulic.layout import Stops
from softarm_ros.plant.hysteresis import HysteresisConfig, PrandtlIshlinskii


def fabric_stops(
    config: FabricConfig, sections: Sequence[PlantHydraulicSection], bends: Array
) -> Stops:
    """
    Return stops in parallel with the bending stiffness of every section, one set per direction.

    The section's own stiffness is that of a large slow bend. For small bends the stiffness is
    larger by `stiffness_share`, and a loop of bends loses what the stops dissipate. If that share
    is 0, there are no stops.

    Parameters
    ----------
    config
        Share and yielding bend.
    sections
        Used for their stiffnesses.
    bends : (s, 2)
        Initial bending vectors of the sections, without memory [rad].

    """
    if config.stiffness_share == 0.0:
        return Stops(np.zeros(0), np.zeros((0, 0)), np.zeros((0, 2)), np.zeros((0, 2, 0)))
    # Half of such an element is a spring; here the section itself is that spring.
    elements = [
        PrandtlIshlinskii(
            HysteresisConfig(
                stiffness=2.0
                * config.stiffness_share
                * section.bending_stiffness_N_m2
                / section.length_m,
                lost_share=0.5,
                saturation=math.radians(config.yield_bend_deg),
            )
        )
        for section in sections
    ]
    count = len(elements[0].thresholds)
    return Stops(
        elements[0].thresholds,
        np.array([element.weights for element in elements]),
        np.array(bends, dtype=np.float64),
        np.zeros((len(elements), 2, count)),
    )
