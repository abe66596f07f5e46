"""Transforms of the links, composed from the base, give the frames of the model."""

import numpy as np
import pytest

from softarm_ros.rigs.loader import list_rigs, load_rig
from softarm_ros.rigs.urdf import build_urdf, joint_map
from softarm_ros.rigs.urdf_transforms import LinkTransforms


@pytest.mark.parametrize('name', [rig.name for rig in list_rigs()])
def test_composed_transforms_place_the_tip_as_the_model_does(name):
    rig = load_rig(name)
    model = rig.model()
    links = 8
    transforms = LinkTransforms(build_urdf(rig, links))
    positions_of = joint_map(rig, links)
    rest = model.rest_configuration
    somewhere = rig.sample_configurations(np.random.default_rng(1), 1)[0]
    configuration = rest + 0.5 * (somewhere - rest)
    names, values = positions_of(configuration)
    frames = {'base': np.eye(4)}
    waiting = [*transforms.fixed(), *transforms.moving(dict(zip(names, values)))]
    while waiting:
        linked = [item for item in waiting if item[0] in frames]
        assert linked, f'links that hang on nothing: {waiting}'
        for parent, child, transform in linked:
            frames[child] = frames[parent] @ transform
        waiting = [item for item in waiting if item[1] not in frames]
    tip = model.shape_of(configuration).tip[:3, 3]
    assert np.linalg.norm(frames['tip'][:3, 3] - tip) < 1e-4
    assert np.linalg.norm(tip - model.shape_of(rest).tip[:3, 3]) > 0.02 * model.rest_length_m


def test_missing_joint_position_raises_a_key_error():
    transforms = LinkTransforms(build_urdf(load_rig('cable_arm'), 2))
    with pytest.raises(KeyError):
        transforms.moving({})


def test_base_frames_of_two_arms_differ():
    frames = {load_rig(name).base_frame for name in ('cable_arm', 'trunk')}
    assert frames == {'cable_arm/base', 'trunk/base'}
