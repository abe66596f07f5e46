"""Impossible poses are not used, even if the sensor reports them."""

from __future__ import annotations

import numpy as np
import pytest

from softarm_ros.geometry.poses import pose
from softarm_ros.geometry.rotations import rotation_x, rotation_y, rotation_z
from softarm_ros.perception.config import PlausibilityConfig
from softarm_ros.perception.plausibility import Plausibility, twist_of

PERIOD_S = 0.01
FLIP = pose(rotation_z(np.pi), np.zeros(3))


def arm(time_s: float) -> dict[str, np.ndarray]:
    """Return two bodies of an arm that swings by 100 degrees at half a hertz."""
    bend = np.radians(100.0) * np.sin(np.pi * time_s)
    middle = pose(rotation_y(0.4 * bend), [0.08 * np.sin(bend), 0.0, 0.1])
    tip = pose(rotation_y(bend), [0.16 * np.sin(bend), 0.0, 0.2 * np.cos(0.5 * bend)])
    return {'middle': middle, 'tip': tip}


def judged(change, frames: int = 300) -> list:
    plausibility = Plausibility(PlausibilityConfig())
    found = []
    for k in range(frames):
        poses = change(k, arm(PERIOD_S * k))
        found.append(plausibility.judge(PERIOD_S * k, poses))
    return found


def test_poses_of_a_swinging_arm_are_accepted() -> None:
    for verdicts in judged(lambda k, poses: poses):
        assert all(not v.fault and v.position and v.orientation for v in verdicts.values())


@pytest.mark.parametrize('first', [0, 1, 100])
def test_flipped_body_keeps_its_position_and_loses_its_orientation(first: int) -> None:
    def change(k, poses):
        return {**poses, 'tip': poses['tip'] @ FLIP} if first <= k < 200 else poses

    for k, verdicts in enumerate(judged(change)):
        tip = verdicts['tip']
        assert tip.position
        assert tip.orientation != (first <= k < 200)
        assert tip.fault == ('' if tip.orientation else 'flip')
        assert not verdicts['middle'].fault


@pytest.mark.parametrize('axis', [rotation_x, rotation_y, rotation_z])
def test_flip_about_any_axis_is_rejected_until_it_ends(axis) -> None:
    """Meanwhile the arm turns by far more than the limit between consecutive frames."""
    flip = pose(axis(np.radians(170.0)), np.zeros(3))

    def change(k, poses):
        return {**poses, 'tip': poses['tip'] @ flip} if 30 <= k < 130 else poses

    for k, verdicts in enumerate(judged(change)):
        assert verdicts['tip'].position
        assert verdicts['tip'].orientation != (30 <= k < 130)


def test_body_may_have_turned_while_it_was_hidden() -> None:
    def change(k, poses):
        return {'middle': poses['middle']} if 30 <= k < 130 else poses

    for k, verdicts in enumerate(judged(change)):
        assert all(v.orientation for v in verdicts.values())
        assert ('tip' in verdicts) != (30 <= k < 130)


def test_bend_beyond_max_bend_deg_is_rejected() -> None:
    plausibility = Plausibility(PlausibilityConfig(max_bend_deg=90.0))
    verdict = plausibility.judge(0.0, {'tip': pose(rotation_x(1.7), [0, 0, 0.1])})['tip']
    assert (verdict.fault, verdict.position, verdict.orientation) == ('flip', True, False)
    assert 'bent by 97 degrees (limit 90, plausibility.max_bend_deg)' in verdict.text


def bent_at_right_angles(bend_deg: float) -> np.ndarray:
    """Return the pose of the tip of two sections that bend as far in two directions."""
    bend = np.radians(bend_deg)
    return pose(rotation_x(bend) @ rotation_y(bend), [0, 0, 0.1])


@pytest.mark.parametrize(
    ('bend_deg', 'limit_deg', 'twist'), [(90, 100, 0), (100, 100, 110), (100, 120, 0)]
)
def test_tip_first_seen_twisted_beyond_max_twist_deg_is_rejected(
    bend_deg, limit_deg, twist
) -> None:
    plausibility = Plausibility(PlausibilityConfig(max_twist_deg=limit_deg))
    text = plausibility.judge(0.0, {'tip': bent_at_right_angles(bend_deg)})['tip'].text
    said = f'first seen twisted by {twist} degrees against the base (limit 100, plausibility.max_'
    assert text.startswith(said) if twist else text == ''


def test_followed_tip_may_twist_beyond_max_twist_deg_and_a_flip_there_is_rejected() -> None:
    plausibility, half_turn = (
        Plausibility(PlausibilityConfig()),
        pose(rotation_z(np.pi), [0, 0, 0]),
    )
    way = np.concatenate([np.linspace(0.0, 120.0, 100), np.full(50, 120.0)])
    twists, accepted = [], []
    for k, bend_deg in enumerate(way):
        seen = bent_at_right_angles(bend_deg)
        twists.append(np.degrees(twist_of(seen[:3, :3])))
        if 120 <= k < 130:
            seen = seen @ half_turn
        accepted.append(plausibility.judge(0.01 * k, {'tip': seen})['tip'].orientation)
    assert max(np.abs(twists)) > 120.0
    assert accepted == [not 120 <= k < 130 for k in range(150)]


def test_bodies_that_swap_names_are_both_rejected_until_they_swap_back() -> None:
    def change(k, poses):
        if 100 <= k < 250:
            return {'middle': poses['tip'], 'tip': poses['middle']}
        return poses

    for k, verdicts in enumerate(judged(change)):
        swapped = 100 <= k < 250
        for verdict in verdicts.values():
            assert verdict.position != swapped
            assert (verdict.fault == 'swap') == swapped
            assert verdict.orientation != swapped


def test_bodies_that_swap_names_during_a_gap_are_both_rejected() -> None:
    """After 0.2 s without a frame each could have moved to the place of the other."""

    def change(k, poses):
        if 80 <= k < 100:
            return {}
        return {'middle': poses['tip'], 'tip': poses['middle']} if 80 <= k < 250 else poses

    for k, verdicts in enumerate(judged(change)):
        assert {v.fault for v in verdicts.values()} <= ({'swap'} if 100 <= k < 250 else {''}), k


def test_body_at_the_place_of_a_hidden_one_is_rejected_as_long_as_that_lasts() -> None:
    def change(k, poses):
        return {'tip': poses['middle']} if 100 <= k < 250 else poses

    for k, verdicts in enumerate(judged(change)):
        tip = verdicts['tip']
        assert tip.position == tip.orientation == (not 100 <= k < 250), k
        assert tip.fault == ('swap' if 100 <= k < 250 else '')
        if tip.fault:
            assert "'middle'" in tip.text


def test_reflection_is_rejected_and_a_displaced_body_is_accepted_later() -> None:
    shift = pose(np.eye(3), [0.3, 0.0, 0.0])

    def change(k, poses):
        stray = k == 50 or k >= 100
        return {**poses, 'tip': shift @ poses['tip']} if stray else poses

    tips = [verdicts['tip'] for verdicts in judged(change)]
    assert tips[50].fault == 'jump'
    assert not tips[51].fault
    assert all(v.fault == 'jump' for v in tips[100:130])
    assert not any(v.fault for v in tips[131:])


def test_pose_beyond_reach_m_is_rejected() -> None:
    plausibility = Plausibility(PlausibilityConfig(reach_m=0.5))
    far = pose(np.eye(3), [0.0, 0.0, 0.6])
    verdict = plausibility.judge(0.0, {'tip': far})['tip']
    assert (verdict.fault, verdict.position) == ('reach', False)
    assert '0.600 m' in verdict.text and '0.5 m' in verdict.text


@pytest.mark.parametrize('bend', np.radians([-170, -90, 0, 45, 120, 170]))
@pytest.mark.parametrize('plane', np.radians([0, 50, 200]))
@pytest.mark.parametrize('twist', np.radians([-170, -30, 0, 90]))
def test_twist_is_separated_from_bend(bend: float, plane: float, twist: float) -> None:
    bent = rotation_z(plane) @ rotation_x(bend) @ rotation_z(-plane)
    assert twist_of(bent @ rotation_z(twist)) == pytest.approx(twist, abs=1e-9)


def test_twist_is_defined_for_half_turns() -> None:
    assert abs(twist_of(rotation_z(np.pi))) == pytest.approx(np.pi)
    assert abs(twist_of(rotation_y(2.0) @ rotation_z(np.pi))) == pytest.approx(np.pi)
    assert twist_of(rotation_x(np.pi)) == 0.0
