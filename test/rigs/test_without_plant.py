"""A rig file that only drives hardware needs no `plant` block."""

import re
from pathlib import Path

import numpy as np
import pytest

from softarm_ros.cli.check_command import summary, warnings
from softarm_ros.cli.cli_errors import UsageError
from softarm_ros.cli.goto_command import require_arm
from softarm_ros.nodes.arm_drawing import ArmDrawing
from softarm_ros.rigs.errors import RigError
from softarm_ros.rigs.graph import graph_plan
from softarm_ros.rigs.loader import list_rigs, load_rig
from softarm_ros.rigs.urdf import build_urdf, joint_map
from softarm_ros.runtime import path_reach
from softarm_ros.runtime.arm_assembly import build_emulated_arm, build_plant
from softarm_ros.runtime.assembly import (
    build_control_loop,
    build_feedback_watch,
    build_inverse_kinematics,
    build_supervisor,
)
from softarm_ros.runtime.warm_up import warm_up

NAMES = [info.name for info in list_rigs()]
RIGS = Path(__file__).parents[2] / 'config' / 'rigs'


def without_plant(name, folder, change=lambda text: text):
    """Return a shipped rig whose file has no `plant` block."""
    text = (RIGS / f'{name}.yaml').read_text()
    text, count = re.subn(r'^plant:\n(?:[ #].*\n|\n)*', '', text, flags=re.MULTILINE)
    assert count == 1
    path = folder / f'{name}.yaml'
    path.write_text(change(text))
    return path


@pytest.fixture(scope='module', autouse=True)
def few_points():
    """Check the reach of paths at a quarter of the points: tests only compare two rigs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(path_reach, 'POINTS', path_reach.POINTS // 4)
        yield


@pytest.fixture(scope='module', params=NAMES)
def pair(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp('bare')
    return load_rig(request.param), load_rig(without_plant(request.param, folder))


def test_loop_and_supervisor_are_the_same_without_a_plant(pair):
    whole, bare = pair
    assert bare.plant is None and whole.plant is not None
    rest = whole.model().rest_configuration
    np.testing.assert_array_equal(
        bare.model().shape_of(rest).tip, whole.model().shape_of(rest).tip
    )
    loops = [build_control_loop(rig, None) for rig in pair]
    assert loops[0].trajectory.duration_s == loops[1].trajectory.duration_s
    np.testing.assert_array_equal(loops[0].reach.reachable, True)
    np.testing.assert_array_equal(loops[0].reach.miss_m, loops[1].reach.miss_m)
    stages = [build_inverse_kinematics(rig) for rig in pair]
    np.testing.assert_array_equal(*(stage.actuation_of(rest) for stage in stages))
    watches = [build_feedback_watch(rig) for rig in pair]
    assert vars(watches[0].config) == vars(watches[1].config)
    supervisors = [build_supervisor(rig, ['tracker']) for rig in pair]
    assert supervisors[0]._timeouts == supervisors[1]._timeouts
    assert supervisors[0].max_pose_jump_m == supervisors[1].max_pose_jump_m


def test_rig_without_a_plant_can_be_checked_and_drawn(pair):
    whole, bare = pair
    # The other trajectories have the same model as in the whole rig, where they are checked once.
    default = bare.default_trajectory
    bare = bare.model_copy(update={'trajectories': {default: bare.trajectories[default]}})
    text = '\n'.join([*summary(bare), *warnings(bare)])
    known = 'hardware' if bare.devices else 'none'
    assert f'backends      {known}; without a plant nothing is simulated' in text
    assert len(bare.body_radii_m()) == len(bare.section_names) and min(bare.body_radii_m()) > 0.0
    rest = bare.model().rest_configuration
    assert '<robot' in build_urdf(bare)
    names, positions = joint_map(bare)(rest)
    assert len(names) == len(positions) and np.all(np.isfinite(positions))
    drawn = [ArmDrawing(rig).at(rest, None).body for rig in (whole, bare)]
    assert len(drawn[0]) == len(drawn[1]) > 0


def test_only_backends_that_simulate_are_refused_without_a_plant(pair):
    whole, bare = pair
    told = rf"rig '{bare.name}' has no plant, and backend 'sim' simulates the arm: add `plant:`"
    with pytest.raises(RigError, match=told):
        graph_plan(bare)
    with pytest.raises(RigError, match=told):
        build_plant(bare, seed=0)
    if bare.devices is None:
        return
    with pytest.raises(RigError, match="no plant, and backend 'emulated'"):
        graph_plan(bare, 'emulated')
    with pytest.raises(RigError, match='no plant'):
        build_emulated_arm(bare, seed=0)
    nodes = [spec.name for spec in graph_plan(bare, 'hardware')]
    assert nodes == [spec.name for spec in graph_plan(whole, 'hardware')]
    assert {'tracker', 'supervisor', *bare.devices.names} <= set(nodes)


def test_kernels_are_prepared_without_a_plant(tmp_path):
    warm_up(load_rig(without_plant('cable_arm_single', tmp_path)), 'hardware')


LIMITS = [
    (
        'feedback_gain_1_s: 2.0',
        'feedback_gain_1_s: 60.0',
        r'expected less than 52.4: with 30 ms .*both periods and sensors.pose_topic.delay_s',
    ),
    (
        'feedback_timeout_s: 0.12',
        'feedback_timeout_s: 0.025',
        'sensors.pose_topic.delay_s and two periods of sensors.pose_topic.rate_hz',
    ),
    (
        'feedback_timeout_s: 0.12',
        'max_pose_jump_m: 0.001\n  feedback_timeout_s: 0.12',
        'ten times sensors.pose_topic.position_noise_m',
    ),
    (
        '  feedback_watch: ',
        '  feedback_watch:\n    max_age_s: 0.02 #',
        'sensors.pose_topic.delay_s = 0.01 and two periods',
    ),
    (
        '  feedback_watch: ',
        '  feedback_watch:\n    frozen_resolution_m: 0.001 #',
        'a tenth of sensors.pose_topic.position_noise_m',
    ),
]


@pytest.mark.parametrize(('old', 'new', 'message'), LIMITS, ids=[new for _, new, _ in LIMITS])
def test_limits_follow_from_the_stated_sensor_without_a_plant(tmp_path, old, new, message):
    def change(text):
        assert text.count(old) == 1
        return text.replace(old, new)

    with pytest.raises(RigError, match=message):
        load_rig(without_plant('cable_arm', tmp_path, change))


def test_larger_delay_of_the_simulated_sensor_lowers_the_gain_limit():
    settings = ['controller.feedback_gain_1_s=30', 'plant.pose_sensor.delay_s=0.05']
    load_rig('cable_arm', settings[:1])
    with pytest.raises(RigError, match=r'both periods and plant\.pose_sensor\.delay_s'):
        load_rig('cable_arm', settings)


def test_rig_without_plant_and_drives_has_no_backend(tmp_path):
    def no_drives(text):
        return re.sub(r'^drives:\n(?:[ #].*\n|\n)*', '', text, flags=re.MULTILINE)

    rig = load_rig(without_plant('cable_arm_single', tmp_path, no_drives))
    with pytest.raises(RigError, match=r"backend 'hardware'; it has: none"):
        rig.required_devices('hardware')


class NobodyHeard:
    def wait_until_heard(self):
        return 'no graph is running'


def test_advice_to_start_an_arm_names_its_rig_or_file(tmp_path):
    path = without_plant('cable_arm_single', tmp_path)
    for name, argument in ((str(path), str(path)), ('cable_arm_single', 'cable_arm_single')):
        with pytest.raises(UsageError, match=rf'softarm run {re.escape(argument)} --goals'):
            require_arm(NobodyHeard(), load_rig(name))
