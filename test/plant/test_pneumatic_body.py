"""The pneumatic body against another formulation: rest, motion, load on the base."""

from itertools import pairwise

import numpy as np
import pytest
from pneumatic_strains import StrainBody, modulus_left

from softarm_ros.models.hydrodynamics.config import WaterConfig
from softarm_ros.plant.fluid import Fluid
from softarm_ros.plant.joint_kernels import log_of_quaternion
from softarm_ros.plant.pneumatic.arm_kernels import drive_into, step_arm
from softarm_ros.plant.pneumatic.body import PneumaticBody
from softarm_ros.plant.pneumatic.chambers import PlantChambers
from softarm_ros.plant.pneumatic.silicone_kernels import softened
from softarm_ros.plant.step_damping import split_damping
from softarm_ros.plant.step_kernels import OK
from softarm_ros.rigs.loader import load_rig

CONFIG = load_rig('pneumatic_arm').plant
ASKEW = (1.5, -2.0, 9.4)
WATER = 998.0


def bent():
    chambers = PlantChambers(CONFIG.sections, CONFIG.hysteresis)
    chambers.settle(np.array([[5e4, 0.0, 2e4], [0.0, 4e4, 3e4]]))
    return chambers.free_strains()


def chain(n, config=CONFIG, fluid=None, load=0.0):
    config = config.model_copy(update={'segments_per_section': n})
    return PneumaticBody(config, ASKEW, fluid, load)


def distance(one, other):
    return float(np.linalg.norm(one[..., :3, 3] - other[..., :3, 3], axis=-1).max())


# -- at rest ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('density', 'load', 'held'),
    [(0.0, 0.0, 0.0), (0.0, 0.1, 0.15), (WATER, 0.0, 0.0)],
    ids=['air', 'object off the axis', 'water'],
)
def test_body_at_rest_converges_to_segments_of_constant_strain(density, load, held):
    """Tips and load on the base: second order in the segments, same limit."""
    free, offset = bent(), np.array([0.012, -0.009, 0.006])
    known = StrainBody(
        CONFIG, ASKEW, 32, load=load, held=held, offset=offset, density=density,
        stretched=free[:, 3],
    )  # fmt: skip
    strains = known.rest(free)
    still = np.zeros_like(strains)
    tips, wrench = known.tips(strains), known.load_on_base(free, strains, still, still)
    gaps, misses = [], []
    for n in (2, 4, 8):
        body = chain(n, fluid=Fluid(WaterConfig()) if density else None, load=load)
        if held:
            body.carry(held, 0.0, offset)
        body.settle(free)
        gaps.append(distance(body.section_tips(), tips))
        misses.append(np.abs(body.base_wrench() - wrench))
    assert gaps[1] < 5e-5  # four segments, as in the rig
    assert gaps[0] / gaps[1] > 3.3 and gaps[1] / gaps[2] > 3.3
    assert gaps[2] < 1.3e-5
    assert np.max(misses[1][:3]) < 1e-9 and np.max(misses[1][3:]) < 2.5e-4
    assert np.max(misses[2][3:]) < np.max(misses[1][3:]) / 3.3 < np.max(misses[0][3:]) / 10.0


def test_released_object_no_longer_loads_the_base():
    free, body = bent(), chain(4)
    body.settle(free)
    before = body.base_wrench()
    body.carry(0.2, 0.0, np.array([0.0, 0.01, 0.0]))
    body.settle(free)
    assert np.linalg.norm(body.base_wrench()[:3] - before[:3]) == pytest.approx(
        0.2 * np.linalg.norm(ASKEW)
    )
    body.release()
    body.settle(free)
    np.testing.assert_allclose(body.base_wrench(), before, atol=1e-8)


# -- in motion --------------------------------------------------------------------------------

PERIOD, SECONDS = 0.02, 0.6


def falling(free, t):
    """Return free strains whose bends vanish within 0.2 s; the elongation stays."""
    return free * [*3 * [np.cos(0.5 * np.pi * min(t / 0.2, 1.0)) ** 2], 1.0]


def with_damping(time):
    sections = [s.model_copy(update={'damping_time_s': time}) for s in CONFIG.sections]
    return CONFIG.model_copy(update={'sections': tuple(sections)})


def by_strains(config, h, held, offset):
    """Return tips (k, 3) and loads on the base (k, 6) every PERIOD."""
    free = bent()
    known = StrainBody(config, ASKEW, 8, held=held, offset=offset, stretched=free[:, 3])
    run = known.integrator(1e-8)
    state = run.start(known.under(free), known.rest(free))
    tips, wrenches, per = [], [], round(PERIOD / h)
    for k in range(round(SECONDS / h)):
        before, now = state, falling(free, (k + 0.5) * h)
        moved = run.advance(state, known.under(now), h)
        assert moved.converged
        state = moved.state
        strains, rates = 0.5 * (before.strains + state.strains), 0.5 * (before.rates + state.rates)
        gained = (state.rates - before.rates) / h
        wrenches.append(known.load_on_base(now, strains, rates, gained))
        if (k + 1) % per == 0:
            tips.append(known.tips(state.strains)[-1, :3, 3])
    # The loads belong to the middles of the steps: take the mean of two for the time between.
    between = 0.5 * (np.array(wrenches[:-1]) + np.array(wrenches[1:]))
    return np.array(tips), between[per - 1 :: per]


def by_joints(config, h, held, offset):
    """Return the same for the chain; its load on the base is that at the start of a step."""
    body, free = chain(8, config), bent()
    if held:
        body.carry(held, 0.0, offset)
    body.settle(free)
    arm = body.arm
    times = arm.body.damping_time.copy()
    split_damping(times, h, arm.body.damping_time, arm.solver.damping_time)
    tips, wrenches, per = [], [], round(PERIOD / h)
    for k in range(round(SECONDS / h)):
        drive_into(arm, falling(free, k * h))
        assert step_arm(arm, h)[0] == OK
        if k % per == 0:
            wrenches.append(body.base_wrench())
        if (k + 1) % per == 0:
            tips.append(body.section_tips()[-1, :3, 3].copy())
    return np.array(tips), np.array(wrenches)


@pytest.mark.parametrize(
    ('time', 'held'), [(0.05, 0.0), (0.008, 0.1)], ids=['silicone', 'hardly damped, object held']
)
def test_swing_of_the_body_matches_segments_of_constant_strain(time, held):
    """The path of the tip shows frequency and decay; its error is of order two in the step."""
    config, offset = with_damping(time), np.array([0.012, -0.009, 0.006])
    tips, wrenches = by_strains(config, 2e-3, held, offset)
    moved = float(np.linalg.norm(tips - tips[0], axis=1).max())
    ways, gaps, misses = [], [], []
    for h in (0.01, 0.005, 0.0025):
        way, borne = by_joints(config, h, held, offset)
        ways.append(way)
        gaps.append(float(np.linalg.norm(way - tips, axis=1).max()))
        misses.append(np.abs(borne[1:] - wrenches).max(axis=0))
    assert moved > 0.04
    assert gaps[1] < 6e-3 * moved
    assert gaps[2] < 6e-5  # at rest, eight joints and eight constant strains differ by as much
    moves = [float(np.linalg.norm(b - a, axis=1).max()) for a, b in pairwise(ways)]
    assert moves[0] / moves[1] > 3.0
    for part in (slice(3), slice(3, 6)):
        assert misses[2][part].max() < 0.01 * np.ptp(wrenches, axis=0)[part].max()


def test_free_oscillation_dissipates_energy():
    """Released from a bend without weight: the sum of kinetic and elastic energy only falls."""
    body = PneumaticBody(CONFIG, (0.0, 0.0, 0.0), None, 0.0)
    body.settle(bent())
    arm, h = body.arm, 0.005
    times = arm.body.damping_time.copy()
    split_damping(times, h, arm.body.damping_time, arm.solver.damping_time)
    drive_into(arm, np.zeros((2, 4)))
    energies, elastic = [], _elastic(body)
    for _ in range(400):  # the arcs swing slowly: a second leaves a thousandth
        status, _, kinetic = step_arm(arm, h)
        assert status == OK
        after = _elastic(body)
        # Velocities belong to the middles of the steps, like the mean of the stored energies.
        energies.append(kinetic + 0.5 * (elastic + after))
        elastic = after
    assert np.all(np.diff(energies[1:]) < 1e-6 * energies[0])
    assert energies[-1] < 1e-4 * energies[0]


def _elastic(body):
    state, stiffness = body.arm.state, body.arm.body.stiffness
    phi = np.array([log_of_quaternion(q)[:3] for q in state.quaternion])
    bending = stiffness[:, 0] * (phi[:, 0] ** 2 + phi[:, 1] ** 2)
    rest = stiffness[:, 1] * phi[:, 2] ** 2 + stiffness[:, 2] * state.extension**2
    return 0.5 * float(np.sum(bending + rest))


# -- silicone ---------------------------------------------------------------------------------


@pytest.mark.parametrize('c20_share', [0.0, 0.18])
def test_stiffness_of_an_elongated_arc_matches_yeohs_energy(c20_share):
    for strain in (0.0, 0.05, 0.15, 0.3, 0.6):
        assert softened(strain, c20_share) == pytest.approx(
            modulus_left(1.0 + strain, c20_share), rel=1e-4
        )
    assert softened(-0.1, c20_share) == 1.0


def test_inflated_arm_bends_more_under_a_side_load_by_its_lost_modulus():
    """Straight, all chambers filled: the arcs' part of the turn grows as the modulus falls."""
    strain = 0.2
    rigid = [s.model_copy(update={'youngs_modulus_Pa': 1e9, 'c20_Pa': 1e9 * 0.18 / 6.0,
                                  'wall_share': s.wall_share * 0.66e-3})
             for s in CONFIG.sections]  # fmt: skip
    turns = []
    for stretched in (0.0, strain):
        body = PneumaticBody(
            CONFIG.model_copy(update={'sections': tuple(rigid)}), (1e-3, 0.0, 0.0), None, 0.0
        )
        free = np.zeros((2, 4))
        free[:, 3] = stretched
        turns.append(body.section_tips_at_rest(free)[-1][0, 2])
    # Moments of the weights also grow with the length: both arcs by a fifth, 40 mm of 270 mm.
    grown = turns[1] / turns[0]
    assert 1.0 / softened(strain, 0.18) < grown < 1.2 / softened(strain, 0.18)
