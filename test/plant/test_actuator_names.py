"""Commands that a simulated arm refuses, for all rigs: the message names the actuator."""

import numpy as np
import pytest

from softarm_ros.rigs.loader import load_rig
from softarm_ros.rigs.rig_files import list_rigs
from softarm_ros.runtime.arm_assembly import build_plant


@pytest.mark.parametrize('name', [rig.name for rig in list_rigs()])
def test_command_that_is_not_finite_is_refused_by_the_name_of_its_actuator(name):
    rig = load_rig(name)
    plant = build_plant(rig, 0)
    command = plant.actuator_state().position.copy()
    command[1] = np.nan
    with pytest.raises(ValueError, match=rf'\b{rig.actuator_names[1]} = nan\b'):
        plant.step(command, 0.01)
