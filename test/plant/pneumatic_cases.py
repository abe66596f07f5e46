"""The simulated pneumatic arm of the package's own rig, and its pressure regulators."""

import numpy as np

from softarm_ros.plant.mocap import Mocap
from softarm_ros.plant.pneumatic.pneumatic_plant import PneumaticPlant
from softarm_ros.plant.pneumatic.regulators import Regulators
from softarm_ros.rigs.loader import load_rig

RIG = load_rig('pneumatic_arm')
CONFIG = RIG.plant
DOWN = (0.0, 0.0, 9.81)
TARGET = np.array([5e4, 0.0, 2e4, 0.0, 4e4, 3e4])


def plant(seed=0, gravity=DOWN, config=CONFIG, **changes):
    arm = PneumaticPlant(config, gravity, seed, **changes)
    arm.look_with(Mocap(config.mocap, seed))
    return arm


def regulators(**changes):
    perfect = {
        'dac_bits': 24,
        'dead_zone_Pa': 0.0,
        'sensor_noise_Pa': 0.0,
        'max_rate_Pa_s': 1e9,
        'gain': (1.0,),
        'offset_Pa': (0.0,),
    }
    return Regulators(CONFIG.regulators.model_copy(update=perfect | changes), 0)
