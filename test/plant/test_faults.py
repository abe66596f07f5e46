"""Faults of every simulated arm during a run, and of its cameras."""

import numpy as np
import pytest

from softarm_ros.plant.mocap import FUTURE_S, OLD_S, ROOM_FRAME, X_RB
from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.arm_assembly import build_plant

# Fault of each arm, and the least motion of its tip [m] that it must cause within 1 s.
BREAKS = {
    'cable_arm': ('cable snap', 0.005),
    'cable_arm_single': ('cable snap', 0.005),
    'trunk': ('cable snap', 0.001),
    'fishbone_arm': ('cable snap', 0.001),
    'pneumatic_arm': ('chamber burst', 0.02),
    'hydraulic_arm': ('chamber burst', 0.02),
    'pam_arm': ('muscle burst', 0.01),
}


def bent(rig, seconds=1.0):
    """Return the arm after one actuator has pulled for some time, and that command."""
    plant, limits = build_plant(rig, 3), rig.actuator_limits()
    command = np.array(plant.actuator_state().position, dtype=float)
    # Muscles shorten, all other actuators increase.
    most = limits.position_min if rig.kind == 'muscle' else limits.position_max
    command[0] += 0.4 * (most[0] - command[0])
    command = np.clip(command, limits.position_min, limits.position_max)
    for _ in range(round(seconds / 0.02)):
        plant.step(command, 0.02)
    return plant, command


def tip(plant):
    return plant.true_section_tips()[-1, :3, 3].copy()


@pytest.mark.parametrize('name', BREAKS)
def test_broken_actuator_moves_the_tip(name):
    rig = load_rig(name)
    what, least = BREAKS[name]
    ends = []
    for fault in (None, f'{what} {rig.actuator_names[0]}'):
        plant, command = bent(rig)
        if fault is not None:
            assert plant.inject(fault) == fault
        for _ in range(50):
            plant.step(command, 0.02)
        ends.append(tip(plant))
    assert np.linalg.norm(ends[1] - ends[0]) > least


@pytest.mark.parametrize('name', BREAKS)
def test_unknown_faults_and_actuators_are_refused_with_the_known_ones(name):
    plant = build_plant(load_rig(name), 0)
    with pytest.raises(ValueError, match=rf'known: cameras freeze; .*{BREAKS[name][0]} ACTUATOR'):
        plant.inject('cable gnaw')
    with pytest.raises(ValueError, match="no actuator 'nobody'; there are "):
        plant.inject(f'{BREAKS[name][0]} nobody')


def frames(fault, before=0.1, after=0.1):
    """Return frames without and with a camera fault, and the last frame before the fault."""
    arms = [build_plant(load_rig('cable_arm_single'), 5) for _ in range(2)]
    command = np.zeros(3)
    measured = ([], [])
    for arm, seen in zip(arms, measured):
        for k in range(round((before + after) / 0.01)):
            if arm is arms[1] and k == round(before / 0.01):
                arm.inject(fault)
            arm.step(command, 0.01)
            seen += arm.poll_poses()
    count = round(before / 0.01)
    sound, false = measured
    assert all(np.array_equal(a.section_tips, b.section_tips) for a, b in zip(sound[:9], false))
    return sound[count:], false[count:], false[count - 1]


def test_frozen_cameras_repeat_their_last_pose_with_fresh_stamps():
    sound, false, last = frames('cameras freeze')
    assert [f.stamp_s for f in false] == [f.stamp_s for f in sound]
    assert all(np.array_equal(f.section_tips, last.section_tips) for f in false)


@pytest.mark.parametrize(('fault', 'name'), [('room', ROOM_FRAME), ('mislabel', None)])
def test_room_and_mislabel_faults_report_poses_in_the_room_frame(fault, name):
    sound, false, _ = frames(f'cameras {fault}')
    for right, wrong in zip(sound, false):
        assert wrong.frame_id == name
        np.testing.assert_allclose(wrong.section_tips, X_RB @ right.section_tips)


@pytest.mark.parametrize(
    ('fault', 'shift'), [('future', FUTURE_S), ('old', -OLD_S), ('mend', 0.0), ('stuck', None)]
)
def test_stamp_faults_change_the_stamps_but_not_the_poses(fault, shift):
    sound, false, last = frames(f'cameras {fault}')
    for right, wrong in zip(sound, false):
        expected = last.stamp_s if shift is None else right.stamp_s + shift
        assert wrong.stamp_s == pytest.approx(expected)
        assert np.array_equal(wrong.section_tips, right.section_tips)


@pytest.mark.parametrize('name', BREAKS)
def test_load_added_during_a_run_sags_like_a_configured_tip_load(name):
    cables = name.startswith('cable_arm')
    # Cable friction would hold the arm where it was before the load was added.
    rig = load_rig(name, ['plant.cable_friction_coefficient=0'] if cables else [])
    # With less, friction decides the pose of heavy arms; with more, the soft arms hang straight.
    mass_kg = 0.01 if cables else 0.05
    loaded = rig.model_copy(update={'tip_load_kg': mass_kg})
    arms = [bent(rig), bent(rig), bent(loaded)]
    arms[1][0].inject(f'tip load {mass_kg}')
    for plant, command in arms:
        for _ in range(150):
            plant.step(command, 0.02)
    bare, hung, built = (tip(plant) for plant, _ in arms)
    moved = np.linalg.norm(built - bare)
    assert moved > 1e-4
    assert np.linalg.norm(hung - built) < 0.15 * moved
    with pytest.raises(ValueError, match='expected a finite number of at least 0'):
        arms[1][0].inject('tip load -1')


@pytest.mark.parametrize('length', ['inf', 'nan', 'far'])
def test_cable_slip_by_a_non_finite_length_is_refused(length):
    plant, _ = bent(load_rig('cable_arm_single'))
    with pytest.raises(ValueError, match=f'{length} mm: expected a finite number'):
        plant.inject(f'cable slip cable_1 {length}')
