"""The simulated arm in motion: frequencies, energy, contact with the cables."""

import numpy as np
import pytest
from plant_cases import EI, GRAVITY, LENGTH, beam, ring, soft_arm
from scipy.linalg import eigh

from softarm_ros.plant.joint_kernels import turn

MASS_PER_LENGTH = 0.058 / LENGTH
# beta L of a clamped-free Euler-Bernoulli beam
BETA = np.array([1.875104069, 4.694091133, 7.854757438])
FREQUENCIES = (BETA / LENGTH) ** 2 * np.sqrt(EI / MASS_PER_LENGTH)  # rad/s
THIN = {'outer_radius_m': 1e-5, 'cable_radius_m': 1e-6}  # no rotary inertia
UNDAMPED = {'damping_time_s': 1e-12, 'cutting_in_relaxation_s': 1e-9}


def planar_modes(arm):
    """Return frequencies [rad/s] and shapes of plane bending about the straight arm."""
    n = len(arm.state.extension)

    def kinetic(rates):
        arm.state.velocity[:] = 0.0
        arm.state.velocity[:, 1] = rates
        return arm.energy().kinetic

    unit = np.eye(n)
    mass = np.array([[kinetic(a + b) - kinetic(a) - kinetic(b) for a in unit] for b in unit])
    arm.state.velocity[:] = 0.0
    squares, shapes = eigh(np.diag(arm.body.stiffness[:, 0]), mass)
    return np.sqrt(squares), shapes


def test_bending_frequencies_converge_to_the_beam_with_second_order():
    errors = np.array(
        [planar_modes(beam(n, **THIN))[0][:3] / FREQUENCIES - 1.0 for n in (8, 16, 32)]
    )
    assert np.abs(errors[2]).max() < 0.01
    ratios = errors[:-1] / errors[1:]
    assert np.all((ratios > 3.5) & (ratios < 4.8))


def test_simulated_oscillation_has_the_first_bending_frequency():
    arm = beam(8, **UNDAMPED)
    frequencies, shapes = planar_modes(arm)
    arm.state.velocity[:, 1] = 0.05 * shapes[:, 0] / np.abs(shapes[:, 0]).max()
    h = 1e-4
    crossings, last, time = [], 0.0, 0.0
    while len(crossings) < 5:
        arm.advance(time_step_s=h)
        time += h
        x = arm.section_tips()[-1, 0, 3]
        if last * x < 0.0:
            crossings.append(time - h * x / (x - last))
        last = x
    half_period = np.mean(np.diff(crossings))
    assert np.pi / half_period == pytest.approx(frequencies[0], rel=1e-4)
    assert np.pi / half_period == pytest.approx(FREQUENCIES[0], rel=0.01)


def shaken(sections, seed, section=None, cables=(), **fields):
    """Return an arm with random bends and rates, and no plane of symmetry."""
    arm = soft_arm(cables, sections, (3.0, 1.0, 9.81), segments=4, section=section, **fields)
    rng = np.random.default_rng(seed)
    for q in arm.state.quaternion:
        turn(q, *(0.2 * rng.standard_normal(3)))
    arm.state.velocity[:, :3] = 3.0 * rng.standard_normal((len(arm.state.velocity), 3))
    arm.state.velocity[:, 3] = 1e-3 * rng.standard_normal(len(arm.state.velocity))
    return arm


def energy_error(make, duration, h):
    arm = make()
    start = arm.energy().total
    arm.advance(time_step_s=h, steps=round(duration / h))
    return arm.energy().total - start


def test_energy_is_conserved_as_the_step_vanishes():
    # Large rotations in space: with a wrong Coriolis or inertia term the error would not vanish.
    section = UNDAMPED | {'axial_stiffness_N': 20.0}
    errors = [energy_error(lambda: shaken(2, 1, section), 0.04, h) for h in (8e-6, 4e-6, 2e-6)]
    exchanged = shaken(2, 1, section).energy().kinetic
    assert exchanged > 0.01
    assert abs(errors[2]) < 0.01 * exchanged
    assert errors[0] / errors[1] == pytest.approx(2.0, abs=0.1)
    assert errors[1] / errors[2] == pytest.approx(2.0, abs=0.1)


def test_energy_is_conserved_with_cables_going_taut_and_slack():
    def make():
        arm = shaken(
            2, 3, UNDAMPED | {'axial_stiffness_N': 20.0}, ring(2), cable_damping_time_s=1e-12
        )
        # The cables are just taut at the start; the motion then stretches some and loosens others.
        arm.state.contraction[:] = arm.rest_lengths() - arm.cable_lengths() + 1e-5
        return arm

    errors = [energy_error(make, 0.02, h) for h in (4e-6, 2e-6, 1e-6)]
    arm = make()
    taut = np.zeros((100, 6), dtype=bool)
    for row in taut:
        arm.advance(time_step_s=2e-5, steps=10)
        row[:] = arm.state.tension > 0.0
    assert np.any(taut[1:] & ~taut[:-1]) and np.any(~taut[1:] & taut[:-1])
    assert abs(errors[2]) < 0.02 * make().energy().kinetic
    assert errors[0] / errors[1] == pytest.approx(2.0, abs=0.3)
    assert errors[1] / errors[2] == pytest.approx(2.0, abs=0.3)


def test_energy_loss_equals_the_work_of_the_dampers():
    h, steps = 1e-5, 4000
    section = {'axial_stiffness_N': 20.0, 'damping_time_s': 0.01}
    arm = shaken(1, 5, section)
    stiffness = arm.body.stiffness[:, [0, 0, 1, 2]]
    start, dissipated = arm.energy().total, 0.0
    before = np.column_stack([arm.segment_rotation_vectors(), arm.state.extension])
    for _ in range(steps):
        arm.advance(time_step_s=h)
        after = np.column_stack([arm.segment_rotation_vectors(), arm.state.extension])
        dissipated += 0.01 * np.sum(stiffness * (after - before) ** 2) / h
        before = after
    assert dissipated > 0.3 * (start - arm.energy().gravity)
    assert start - arm.energy().total == pytest.approx(dissipated, rel=0.01)


@pytest.mark.parametrize('cables', [(), ring(2)])
def test_energy_of_the_undriven_arm_never_rises(cables):
    arm = soft_arm(cables, 2, GRAVITY)
    pull = (0.02, -0.03, -0.03, -0.03, 0.02, 0.0)[: len(cables)]
    arm.settle(contraction=pull, tip_force=(0.5, 0.3, -0.5))
    energies = []
    for _ in range(1500):
        arm.advance(time_step_s=0.002)
        energies.append(arm.energy().total)
    assert energies[0] - energies[-1] > 0.01
    assert np.diff(energies).max() < 1e-9
    if cables:
        arm.advance(time_step_s=0.002, steps=10000)
        settled = arm.copy().settle()
        np.testing.assert_allclose(arm.section_tips(), settled.section_tips, atol=1e-5)


def test_cables_never_push_and_slack_cables_have_no_tension():
    arm = soft_arm(ring(2), 2, GRAVITY)
    seen_slack = seen_taut = 0
    for k in range(1500):
        swing = 0.012 * np.sin(0.01 * k + np.arange(6))
        arm.advance(contraction=swing, time_step_s=0.002)
        stretch = arm.cable_lengths() - arm.rest_lengths() + swing
        tension = arm.state.tension
        assert np.all(tension >= 0.0)
        # The length at the end of the step is predicted to first order; 1 um is 0.02 N.
        assert np.all(tension[stretch < -2e-5] == 0.0)
        assert np.all(stretch[tension == 0.0] < 2e-5)
        seen_slack += np.sum(tension == 0.0)
        seen_taut += np.sum(tension > 0.0)
    assert min(seen_slack, seen_taut) > 1000


@pytest.mark.parametrize('segments', [5, 10, 20])
def test_tension_stays_smooth_in_fast_motion_at_full_tension(segments):
    # 15 N with the usual step: the tension must not chatter from step to step.
    arm = soft_arm(ring(1), 1, GRAVITY, segments=segments)
    arm.settle(tip_force=(0.0, 0.0, 25.0), tension=(15.0, 8.0, 8.0))
    held = arm.state.contraction.copy()
    arm.advance(contraction=held, tip_force=(0.0, 0.0, 25.0), time_step_s=0.002, steps=500)
    np.testing.assert_allclose(arm.state.tension, (15.0, 8.0, 8.0), rtol=1e-3)
    assert np.abs(arm.state.velocity[:, :3]).max() < 1e-3
    trace = []
    for k in range(400):
        pull = held + 4e-5 * min(k, 200) * np.array([1.0, 0.0, 0.0])
        arm.advance(contraction=pull, tip_force=(0.0, 0.0, 25.0), time_step_s=0.002)
        trace.append(arm.state.tension.copy())
    jerks = np.abs(np.diff(trace, n=2, axis=0))
    assert np.max(trace) > 15.5
    assert jerks[250:].max() < 0.01


def test_tip_hardly_depends_on_the_time_step():
    ends = []
    for h in (0.002, 0.0005):
        arm = soft_arm(ring(1), 1, GRAVITY)
        for k in range(50):
            pull = 0.02 * (k + 1) / 50
            arm.advance(contraction=(pull, -pull, -pull), time_step_s=h, steps=round(0.02 / h))
        ends.append(arm.section_tips()[-1, :3, 3])
    assert np.linalg.norm(ends[1] - ends[0]) < 5e-4
