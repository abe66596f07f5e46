"""Properties of the muscles of one simulated arm, drawn when it is built."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.plant.pam_arm.config import PamPlantConfig

# Random stream of the build, separate from those of the operation and of the sensor.
_BUILD_STREAM = 101


@dataclass(frozen=True)
class MuscleBuild:
    """
    Properties of the muscles as built, as arrays for the kernels.

    Attributes
    ----------
    throttles : (m, 2)
        Emptying, filling [m/s].
    skeleton : (m,)
        Stiffness of the folds [N/m].
    offset : (m,)
        Difference between the length of a muscle and that of its bag, due to connectors [m].
    limits : (6,)
        As in `muscle_kernels.fill_muscles`.

    """

    throttles: Array
    skeleton: Array
    offset: Array
    limits: Array

    @property
    def vented_N(self) -> float:
        """Force of gas at atmospheric pressure, and of the atmosphere on the bag."""
        return float(self.limits[1])


def build_muscles(config: PamPlantConfig, count: int, seed: int) -> MuscleBuild:
    """Return the muscles of the arm with this seed."""
    build, gas = np.random.default_rng([seed, _BUILD_STREAM]), config.pneumatics
    full, span = config.full_length_m, gas.max_pull_N / config.skeleton_stiffness_N_m
    # A full muscle without load would shorten by its span in a filling time at its first rate.
    way = full + span
    filling_times = gas.filling_time_s * _spread(build, gas.filling_spread, (count, 2))
    skeleton = config.skeleton_stiffness_N_m * _spread(build, config.stiffness_spread, (count,))
    return MuscleBuild(
        way / filling_times,
        skeleton,
        gas.offset_m * build.standard_normal(count),
        np.array(
            [
                full,
                gas.max_pull_N,
                gas.supply_push_N,
                way / gas.leak_time_s,
                gas.play_m,
                config.film_stiffness_N_m,
            ]
        ),
    )


def _spread(rng: np.random.Generator, spread: float, shape: tuple[int, ...]) -> Array:
    """Return factors from 1 - spread to 1 + spread, two standard deviations: parts are sorted."""
    return 1.0 + 0.5 * spread * np.clip(rng.standard_normal(shape), -2.0, 2.0)
