"""Arguments of a wrong size to `sample_configurations` and `tips_of`, for all rigs and models."""

import numpy as np
import pytest

from softarm_ros import load_rig
from softarm_ros.rigs.rig_files import list_rigs

RIGS = [rig.name for rig in list_rigs()]


@pytest.mark.parametrize('name', RIGS)
def test_configurations_of_a_wrong_shape_are_refused(name):
    """For example (3, 2) is not one row of six."""
    rig = load_rig(name)
    for model in map(rig.model, rig.model_names):
        dof = len(model.configuration_names)
        assert model.tips_of(np.empty((0, dof))).shape == (0, 3)
        for shape in ((dof,), (2 * dof, 1), (dof, 3 * dof), (2, dof, 1)):
            with pytest.raises(ValueError, match=rf'have shape \({shape[0]},.*\(n, {dof}\)$'):
                model.tips_of(np.zeros(shape))


@pytest.mark.parametrize('name', RIGS)
def test_negative_number_of_configurations_is_refused(name):
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=r'^n = -1: expected 0 or more configurations$'):
        load_rig(name).sample_configurations(rng, -1)


@pytest.mark.parametrize('n', [3.0, '3', None])
def test_number_that_is_not_whole_is_refused_by_name(n):
    rig, rng = load_rig('cable_arm'), np.random.default_rng(0)
    with pytest.raises(ValueError, match=rf'^n = {n!r}: expected a whole number of configurat'):
        rig.sample_configurations(rng, n)
    model = rig.model()
    with pytest.raises(ValueError, match=rf'^n = {n!r}: expected a whole number >= 2$'):
        model.shape_of(model.rest_configuration).centerline(n)
