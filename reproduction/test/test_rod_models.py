"""The rod model of arms with chambers and their other models, against the simulated arm."""

import numpy as np
import pytest

from softarm_reproduction import rod_models
from softarm_ros.rigs.loader import load_rig


@pytest.fixture(scope='module', params=['hydraulic_arm', 'pneumatic_arm'])
def case(request):
    rig = load_rig(request.param)
    return rig, rod_models.poses_at_rest(rig, 3, 2)


def test_rod_is_about_as_accurate_as_the_model_of_the_rig(case):
    rig, rest = case
    ours, usual = rest.misses_of(rig.model('cosserat')), rest.misses_of(rig.model())
    weightless = rest.misses_of(rig.model('constant_curvature'))
    assert 1e-4 < np.mean(ours) < 1.6 * np.mean(usual) < 0.3 * np.mean(weightless)


def test_error_of_a_refused_command_is_nan(case):
    rig, rest = case
    beyond = rod_models.AtRest(10.0 * rest.commands + 2e6, rest.tips)
    assert np.isnan(beyond.misses_of(rig.model('cosserat'))).all()


def test_rod_steps_converge_and_three_steps_are_exact_to_3_micrometres(case):
    found = [row for row in rod_models.resolution(case[0]) if row[0] == 'cosserat']
    misses = {steps: miss for _, steps, miss in found}
    assert misses[1] > 5.0 * misses[2] > 5.0 * misses[3]
    assert misses[3] < 3e-6
