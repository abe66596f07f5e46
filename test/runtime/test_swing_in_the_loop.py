"""An arm whose swing is excited by plain feedback: with and without `controller.swing`."""

import numpy as np

from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.direct import run_direct

CYCLES = 1200


def worst_m(*settings: str) -> float:
    """Return the largest error [m] of pneumatic_arm in water, once its approach is over."""
    enough = iter([False] * CYCLES + [True]).__next__
    rig = load_rig('pneumatic_arm', ('plant.machine=null', 'medium=water', *settings))
    return float(np.max(run_direct(rig, 'circle', should_stop=enough).samples.error[-200:]))


def test_controller_swing_keeps_feedback_from_exciting_pneumatic_arm_in_water():
    """In air the regulators' play damps the swing that plain feedback excites; in water not."""
    assert worst_m() < 3e-3
    assert worst_m('controller.swing=null', 'controller.feedback_gain_1_s=3') > 15e-3
