"""Friction of cables in the chain: capstan law, sticking, energy."""

import numpy as np
import pytest
from plant_cases import EI, LENGTH, RADIUS, plant_config, soft_arm
from scipy.integrate import trapezoid

from softarm_ros.plant.body_kernels import load_bodies, place_bodies
from softarm_ros.plant.cable_kernels import measure_cables
from softarm_ros.plant.config import PlantCable
from softarm_ros.plant.layout import Loads
from softarm_ros.plant.soft_arm import SoftArm
from softarm_ros.plant.thread_kernels import hold_threads

MU = 0.2
ONE = [PlantCable(0, 0.0)]
# A cable that does not cut in, on a body that does not shorten: the closed forms hold.
HARD = {'cutting_in_stiffness_N_m2': 1e9, 'axial_stiffness_N': 1e7}
FAR_M = 0.05


def hard_arm(cables=ONE, segments=10, sections=1, section=None, **fields):
    fields = {'cable_friction_coefficient': MU} | fields
    return soft_arm(cables, sections, segments=segments, section=HARD | (section or {}), **fields)


def bent(arm, angle_rad):
    """Bend every joint equally about y, towards the cable at angle 0."""
    half = 0.5 * angle_rad / len(arm.body.mass)
    arm.state.quaternion[:] = [0.0, np.sin(half), 0.0, np.cos(half)]
    return arm


def slid(arm, tension_N, by_m):
    """Slide all cables past their guides with the body held; return the tensions (m, n)."""
    arm.state.tension[:] = tension_N
    place_bodies(arm.body, arm.state, arm.scratch)
    load_bodies(arm.body, arm.state, Loads(np.zeros(3), np.zeros(3)), arm.scratch, 1e-3)
    measure_cables(arm.body, arm.cables, arm.state, arm.scratch)
    for _ in range(100):  # limits follow the tensions of the last call
        if by_m:
            arm.threads.nodes.beyond[:] = arm.threads.nodes.beyond + by_m
        hold_threads(arm.cables, arm.state, arm.threads, arm.scratch)
    return arm.state.tension[:, None] - arm.threads.nodes.lost


@pytest.mark.parametrize('by_m', [FAR_M, -FAR_M])
def test_straight_cable_loses_no_tension(by_m):
    assert np.allclose(slid(hard_arm(), 3.0, by_m), 3.0, rtol=1e-12)


@pytest.mark.parametrize(('by_m', 'sign'), [(FAR_M, -1.0), (-FAR_M, 1.0)])
def test_tension_around_a_half_circle_follows_the_capstan_law(by_m, sign):
    for segments in (10, 20, 40):
        tension = slid(bent(hard_arm(segments=segments), np.pi), 3.0, by_m)[0]
        # A segment has the tension of the point where the cable has turned into its chord.
        turned = np.pi * (np.arange(segments) + 0.5) / segments
        assert tension == pytest.approx(3.0 * np.exp(sign * MU * turned), rel=1e-9)


def test_tension_ratio_of_a_half_circle_converges_to_exp_minus_mu_pi():
    ends = [slid(bent(hard_arm(segments=n), np.pi), 3.0, FAR_M)[0, -1] for n in (16, 32, 64)]
    misses = np.abs(np.array(ends) / 3.0 - np.exp(-MU * np.pi))
    assert misses[2] < 3e-3
    assert misses[:-1] / misses[1:] == pytest.approx(2.0, rel=0.02)


def test_cable_of_the_second_section_has_friction_in_the_tube_and_the_endcaps():
    cables = [PlantCable(1, 0.0)]
    arm = bent(hard_arm(cables, sections=2), 1.2)
    tension = slid(arm, 3.0, FAR_M)[0]
    crossing = 2.0 * np.arctan(RADIUS / 0.03)
    assert arm.threads.crossing[0, 10] == pytest.approx(crossing)
    assert tension[9] == pytest.approx(3.0 * np.exp(-MU * 0.57), rel=1e-9)
    assert tension[19] == pytest.approx(3.0 * np.exp(-MU * (1.17 + crossing)), rel=1e-9)


def test_friction_of_a_cable_that_cuts_in_follows_its_total_turning():
    arm = soft_arm(ONE, cable_friction_coefficient=MU)
    arm.settle(tension=[2.5], tolerance=1e-6)
    bend = np.sum(arm.segment_rotation_vectors()[:, 1])
    last = arm.threads.arriving[0, -1]
    left = np.arctan2(abs(last[0]), last[2])  # still to turn at the endcap
    assert np.max(np.abs(arm.state.cut_in)) > 1e-3
    tension = slid(arm, 2.5, FAR_M)[0, -1]
    assert tension == pytest.approx(2.5 * np.exp(-MU * (bend - left)), rel=1e-6)


def test_bend_matches_closed_forms_for_a_cable_pulled_in_and_let_out():
    """EI theta' = T d exp(-+mu theta) has a closed form in either direction."""
    reach = RADIUS * LENGTH / EI
    misses = []
    for segments in (8, 16):
        arm = hard_arm(segments=segments)
        for tension in np.linspace(0.2, 3.0, 15):
            arm.settle(tension=[tension], tolerance=1e-6)
        pulled = np.sum(arm.segment_rotation_vectors()[:, 1])
        for tension in np.linspace(2.8, 1.0, 37):
            arm.settle(tension=[tension], tolerance=1e-6)
        let_out = np.sum(arm.segment_rotation_vectors()[:, 1])
        expected = np.log1p(MU * 3.0 * reach) / MU, -np.log1p(-MU * 1.0 * reach) / MU
        misses.append(np.abs([pulled / expected[0] - 1.0, let_out / expected[1] - 1.0]))
        # Without friction both would be T d L / EI, half way between.
        assert pulled < 3.0 * reach < 2.0 * 3.0 * reach - pulled
        assert let_out > 1.0 * reach
    assert np.all(misses[-1] < 5e-3)


def test_friction_never_returns_more_energy_than_it_has_taken():
    """The cable moves out at low tension and back at high tension."""
    rng = np.random.default_rng(7)
    for size_m in (5e-6, 3e-5, 2e-4):
        arm = bent(hard_arm(), 2.0)
        slid(arm, 1.0, 0.0)
        arm.threads.nodes.bristle[:] = 0.0
        threads, work, least = arm.threads, 0.0, 0.0
        for _ in range(2000):
            moved = rng.normal(scale=size_m)
            going_back = moved * np.sum(threads.nodes.bristle) < 0.0
            arm.state.tension[:] = rng.uniform(4.0, 6.0) if going_back else rng.uniform(0.3, 1.0)
            threads.nodes.beyond[:] += moved
            hold_threads(arm.cables, arm.state, threads, arm.scratch)
            # The tension taken by the guides, times the motion past them.
            work += float(threads.nodes.lost[0, -1]) * moved
            least = min(least, work)
            assert work >= threads.nodes.stored * (1.0 - 1e-9) - 1e-18
        assert work > 0.0
        assert least > -1e-15


def loop(arm, low, high, cycles, ramp_s=6.0, count=60):
    """
    Wind a cable in and out again, slowly; return contractions, tensions, bends of every cycle.

    Settling from one contraction to the next would be a jump, and a jump swings.
    """
    ends = [low, *np.linspace(low, high, count + 1)[1:], *np.linspace(high, low, count + 1)[1:]]
    steps = round(ramp_s / count / 1e-3)
    arm.settle(contraction=[low], tolerance=1e-5)
    rows = []
    for _ in range(cycles):
        rows.append([])
        for contraction in ends:
            for wound in np.linspace(arm.state.contraction[0], contraction, steps + 1)[1:]:
                arm.advance(contraction=[wound], time_step_s=1e-3)
            bend = np.linalg.norm(np.sum(arm.segment_rotation_vectors(), axis=0))
            rows[-1].append((contraction, arm.state.tension[0], bend))
    return np.array(rows)


def work_of(cycle):
    return float(trapezoid(cycle[:, 1], cycle[:, 0]))


def test_hysteresis_loops_close_and_their_loss_grows_with_friction():
    work = []
    for mu in (0.0, 0.1, 0.2):
        cycles = loop(soft_arm(ONE, cable_friction_coefficient=mu), 0.004, 0.016, 3)
        work.append(work_of(cycles[2]))
        assert np.allclose(cycles[1], cycles[2], atol=2e-3 * np.max(cycles, axis=(0, 1)))
    stored = float(trapezoid(cycles[2][:61, 1], cycles[2][:61, 0]))
    assert 0.0 < work[0] < 2e-2 * stored  # loss of the silicone, wound at 2 mm/s
    assert 0.05 * stored < work[1] - work[0] < work[2] - work[0]
    assert work[2] - work[0] == pytest.approx(2.0 * (work[1] - work[0]), rel=0.15)


def test_reversed_cable_sticks_before_it_slides():
    cycle = loop(soft_arm(ONE, cable_friction_coefficient=MU), 0.004, 0.016, 1)[0]
    up, down = cycle[:61], cycle[60:]
    loading = (up[-1, 1] - up[-2, 1]) / (up[-1, 0] - up[-2, 0])
    turning = (down[0, 1] - down[1, 1]) / (down[0, 0] - down[1, 0])
    assert turning > 1.5 * loading
    # At equal contraction the pull is less and the bend more on the way back.
    assert np.all(down[::-1, 1][5:-2] < up[5:-2, 1])
    assert np.all(down[::-1, 2][5:-2] > up[5:-2, 2])


def test_opposite_cables_have_equal_loops():
    here = loop(soft_arm(ONE, cable_friction_coefficient=MU), 0.004, 0.012, 1)
    cables = [PlantCable(0, np.pi)]
    there = loop(soft_arm(cables, cable_friction_coefficient=MU), 0.004, 0.012, 1)
    assert np.allclose(here, there, rtol=1e-6)


def driven(step_s, mu=MU, damping_s=0.03):
    """Wind the cable of a hanging arm in and out; return tips, energies and work."""
    config = plant_config(1, section={'damping_time_s': damping_s}, cable_friction_coefficient=mu)
    arm = SoftArm(config, ONE, (0.0, 0.0, 9.81))
    arm.settle(contraction=[0.001], tolerance=1e-6)
    work, total, tips = [0.0], [arm.energy().total], []
    steps = round(1.2 / step_s)
    for k in range(steps):
        before = arm.state.contraction[0]
        contraction = 0.001 + 0.006 * (1.0 - np.cos(2.0 * np.pi * 2.0 * (k + 1) * step_s / 1.2))
        arm.advance(contraction=[contraction], time_step_s=step_s)
        work.append(work[-1] + arm.state.tension[0] * (contraction - before))
        total.append(arm.energy().total)
        tips.append(arm.section_tips()[-1, :3, 3])
    return np.array(tips), np.array(total) - total[0], np.array(work)


def test_tip_of_a_driven_arm_converges_with_the_time_step():
    finest = driven(1.25e-4)[0]
    errors = []
    for step_s in (2e-3, 1e-3, 5e-4):
        tips = driven(step_s)[0]
        every = round(step_s / 1.25e-4)
        errors.append(float(np.max(np.linalg.norm(tips - finest[every - 1 :: every], axis=1))))
    assert errors[0] < 1.5e-3
    assert errors[1] < 0.65 * errors[0]
    assert errors[2] < 0.65 * errors[1]


def test_driven_arm_never_regains_lost_energy():
    _, energy, work = driven(2e-4, damping_s=1e-3)
    lost = work - energy
    assert lost[-1] > 0.0
    # Lost energy never comes back, except for the error of the steps.
    assert np.min(lost - np.maximum.accumulate(lost)) > -0.01 * np.max(lost)


def test_friction_vanishes_on_a_slack_cable():
    arm = soft_arm(ONE, cable_friction_coefficient=MU)
    arm.settle(contraction=[0.012], tolerance=1e-5)
    assert np.max(np.abs(arm.threads.nodes.lost)) > 0.1
    arm.settle(contraction=[-0.002], tolerance=1e-5)
    assert arm.state.tension[0] == 0.0
    assert np.max(np.abs(arm.threads.nodes.lost)) < 1e-6


def test_vanishing_friction_gives_the_frictionless_arm():
    free, slippery = (soft_arm(ONE, cable_friction_coefficient=mu) for mu in (0.0, 1e-9))
    assert free.threads.nodes.bristle.size == 0
    rests = [a.settle(contraction=[0.015], tolerance=1e-6) for a in (free, slippery)]
    assert rests[0].tension == pytest.approx(rests[1].tension, rel=1e-7)
    assert np.allclose(rests[0].section_tips, rests[1].section_tips, atol=1e-8)


def test_friction_state_of_a_copy_is_independent():
    arm = soft_arm(ONE, cable_friction_coefficient=MU)
    arm.settle(contraction=[0.01], tolerance=1e-5)
    held = arm.threads.nodes.bristle.copy()
    arm.copy().settle(contraction=[0.002], tolerance=1e-5)
    assert np.array_equal(arm.threads.nodes.bristle, held)
