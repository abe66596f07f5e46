"""What the muscles of one simulated arm are like: drawn when it is built."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.plant.pam_arm.config import PamPlantConfig

# What a build of the arm draws is a stream apart from that of its operation, and the sensor's.
_BUILD_STREAM = 101


@dataclass(frozen=True)
class MuscleBuild:
    """
    Muscles as they were made, as the kernels take them.

    Attributes
    ----------
    filling_times : (m, 2)
        Emptying, filling [s].
    full_stiffness : (m,)
        Of full muscles [N/m]; `softening` is the share of it that an empty one has lost.
    offset : (m,)
        Longer than homing takes them for [m].
    limits : (6,)
        Least length, full length [m], largest pull, supply's push [N], leak time [s], play [m].

    """

    filling_times: Array
    full_stiffness: Array
    softening: float
    offset: Array
    limits: Array


def build_muscles(config: PamPlantConfig, count: int, seed: int) -> MuscleBuild:
    """Return the muscles of the arm of a seed."""
    build, gas = np.random.default_rng([seed, _BUILD_STREAM]), config.pneumatics
    filling_times = gas.filling_time_s * _spread(build, gas.filling_spread, (count, 2))
    stiffness, softening = config.full_stiffness_and_softening()
    full_stiffness = stiffness * _spread(build, config.stiffness_spread, (count,))
    return MuscleBuild(
        filling_times,
        full_stiffness,
        softening,
        gas.offset_m * build.standard_normal(count),
        np.array(
            [
                config.min_length_m,
                config.full_length_m,
                gas.max_pull_N,
                gas.supply_push_N,
                gas.leak_time_s,
                gas.play_m,
            ]
        ),
    )


def _spread(rng: np.random.Generator, spread: float, shape: tuple[int, ...]) -> Array:
    """Return factors in 1 - spread to 1 + spread, two standard deviations: parts are sorted."""
    return 1.0 + 0.5 * spread * np.clip(rng.standard_normal(shape), -2.0, 2.0)
