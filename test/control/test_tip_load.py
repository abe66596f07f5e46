"""The load at the tip, on an arm that is its own model."""

import numpy as np
import pytest

from softarm_ros.control.estimation.tip_load import tip_compliance, tip_load
from softarm_ros.control.estimator import Estimate
from softarm_ros.models.arm_model import ModelError
from softarm_ros.rigs.loader import load_rig


def estimate_of(tip):
    return Estimate(0.0, 0.0, tip, np.diag([1e-14] * 3 + [1e-12] * 3))


def test_a_load_on_the_model_itself_is_found():
    rig = load_rig('pneumatic_arm')
    arm = rig.model()
    somewhere = rig.sample_configurations(np.random.default_rng(2), 1)[0]
    actuation = arm.actuation_of(0.5 * (somewhere + arm.rest_configuration))
    force = np.array([5e-3, -2e-3, 1e-2])  # small: the compliance is that of no load
    before, now = (
        estimate_of(arm.forward(actuation, tuple(share * force)).tip) for share in (0.0, 1.0)
    )
    compliance = tip_compliance(arm, actuation, 0.01)
    found = tip_load(before, now, compliance, 1.0, np.full(6, 1e-7))
    assert np.linalg.norm(found.force - force) < 0.05 * np.linalg.norm(force)
    far = found.force - force
    assert far @ np.linalg.solve(found.covariance + 1e-8 * np.eye(3), far) < 16.0
    nothing = tip_load(before, before, compliance, 1.0, np.full(6, 1e-6))
    np.testing.assert_allclose(nothing.force, np.zeros(3), atol=1e-12)


def test_what_cannot_be_is_refused():
    arm = load_rig('trunk').model()
    with pytest.raises(ModelError, match='does not account for tip loads'):
        tip_compliance(arm, arm.actuation_of(arm.rest_configuration), 0.01)
    bare = Estimate(0.0, 0.0, np.eye(4))
    with pytest.raises(ValueError, match='no covariance'):
        tip_load(bare, bare, np.zeros((6, 3)), 1.0, np.zeros(6))
