"""Friction of the cables of the tendon-driven rod: capstan law, sticking, energy."""

import math

import numpy as np
import pytest

from softarm_ros.plant.tendon_rod.body import rod_of
from softarm_ros.plant.tendon_rod.config import PlantTendon
from softarm_ros.plant.tendon_rod.kernels import free_cables, load_rod, spread_tensions
from softarm_ros.plant.tendon_rod.layout import WinchParameters, WinchState
from softarm_ros.plant.tendon_rod.plant import TendonRodPlant
from softarm_ros.rigs.loader import load_rig

RIG = load_rig('fishbone_arm')
PER = RIG.plant.pieces_per_segment
DOWN = (0.0, -9.81, 0.0)
PULL = np.array([6.0, 1.0, 8.0, 1.0, 1.0, 5.0, 4.0, 1.0])
GUIDE, MU, H = 0.02, 0.3, 1e-3
LAST = 4  # a cable of unit 3, which passes units 1 and 2


def tendons():
    names = RIG.section_names
    return [
        PlantTendon(a.name, a.routes, tuple(names.index(r.segment) for r in a.routes))
        for a in RIG.actuators
    ]


class Bench:
    """The rod held in a bend with winches at given tensions; tests slide the cables."""

    def __init__(self, bends_rad, tension_N=5.0, stiffness_N_m=2e4):
        self.rod = rod_of(RIG.plant, tendons(), np.array(DOWN), 0.0)
        for unit, bend in enumerate(bends_rad):
            half = 0.5 * bend / PER
            across = [0.0, math.sin(half)] if unit % 2 == 0 else [math.sin(half), 0.0]
            self.rod.state.quaternion[unit * PER : (unit + 1) * PER] = [
                *across,
                0.0,
                math.cos(half),
            ]
        load_rod(self.rod, H)
        self.winches = WinchState(np.full(8, tension_N), np.zeros(8), np.full(8, tension_N))
        numbers = np.array([0.05, 60.0, stiffness_N_m, 0.01, GUIDE, MU])
        self.parameters = WinchParameters(np.zeros(8), np.zeros(8), numbers)
        free_cables(self.parameters, self.winches, self.rod)

    def spread(self):
        spread_tensions(self.parameters, self.winches, self.rod, H)
        return self.rod.tension

    def slide(self, by_m, times=1):
        """Let cables (8,) or all slide past every node; return their tensions (joints, 8)."""
        for _ in range(times):  # limits follow the tensions of the last call
            self.rod.nodes.beyond[:] += np.broadcast_to(by_m, 8)[:, None]
            self.spread()
        return self.rod.tension


def test_friction_follows_the_capstan_law_in_both_directions():
    bench = Bench([0.6])
    tension = bench.slide(np.array([0.05, -0.05] * 4), 100)
    assert tension.shape == (4 * PER, 8)
    # A cable of unit 3 has passed all of the bend, pulled in or let out.
    assert tension[2 * PER, LAST] == pytest.approx(5.0 * math.exp(-GUIDE - MU * 0.6), rel=1e-9)
    assert tension[2 * PER, LAST + 1] == pytest.approx(5.0 * math.exp(GUIDE + MU * 0.6), rel=1e-9)
    # In the middle of the bend half of it counts, and a cable ends with its own unit.
    middle = tension[PER // 2, 0]
    assert middle == pytest.approx(5.0 * math.exp(-GUIDE - MU * 0.3), rel=1e-9)
    assert np.all(tension[PER:, 0] == 0.0)


def test_cable_at_rest_loses_no_tension_and_its_stretching_causes_friction():
    bench = Bench([0.6, -0.4])
    at_rest = bench.spread().copy()
    assert np.array_equal(at_rest[at_rest > 0.0], np.full(PER * 20, 5.0))
    assert np.count_nonzero(at_rest[:, LAST]) == 3 * PER
    bench.winches.rate[LAST] = 2.0
    tension = bench.spread()[:, LAST]
    slid = H * 2.0 / 2e4  # less than any bristle yields at
    held = bench.rod.nodes.stiffness[LAST] * slid
    assert tension[0] == pytest.approx(5.0 - held[0] - held[1], rel=1e-12)


def test_friction_below_its_limit_is_a_spring_independent_of_the_tension():
    losses = []
    for tension in (5.0, 15.0):
        bench = Bench([0.6, -0.4], tension)
        bench.slide(1e-6)
        losses.append(bench.rod.nodes.lost[LAST, : 3 * PER + 1].copy())
        bench.slide(-1e-6)
        assert np.allclose(bench.rod.nodes.lost, 0.0, atol=1e-12)
    bent = 2 * PER  # beyond it unit 3 is straight: nothing presses there
    assert losses[0][: bent + 1] == pytest.approx(losses[1][: bent + 1], rel=1e-9)


@pytest.mark.parametrize('together', [True, False])
def test_friction_never_returns_more_energy_than_it_has_taken(together):
    """The cable moves out at low tension and back at high tension."""
    rng = np.random.default_rng(7)
    for size_m in (5e-6, 3e-5, 2e-4):
        bench = Bench([0.9, -0.7, 0.5, 0.6])
        nodes, work, least = bench.rod.nodes, 0.0, 0.0
        own = slice(0, 3 * PER + 1)
        for _ in range(2000):
            # Equally past every node, or differently past each as the joints bend.
            moved = rng.normal(scale=size_m, size=1 if together else 3 * PER + 1)
            held = nodes.stiffness[LAST, own] * nodes.bristle[LAST, own]
            going_back = np.sum(moved * held) < 0.0
            bench.winches.tension[LAST] = (
                rng.uniform(4.0, 20.0) if going_back else rng.uniform(0.3, 1.0)
            )
            nodes.beyond[LAST, own] += moved
            bench.spread()
            taken = np.diff(nodes.lost[LAST, own], prepend=0.0)
            work += float(np.sum(taken * moved))
            least = min(least, work)
            stored = 0.5 * np.sum(nodes.stiffness[LAST, own] * nodes.bristle[LAST, own] ** 2)
            assert work >= stored * (1.0 - 1e-9) - 1e-18
        assert work > 0.0
        assert least > -1e-15


def exact(**values):
    free = {'load_cell_gain_sd': 0.0, 'load_cell_zero_sd_N': 0.0, 'load_cell_resolution_N': 0.0}
    return RIG.plant.winch.model_copy(update=free | values)


def test_tip_has_a_closed_hysteresis_loop_only_with_friction():
    def loop_width(mu):
        changed = {'friction_coefficient': mu, 'winch': exact(guide_loss=0.5 * mu)}
        config = RIG.plant.model_copy(update=changed)
        arm = TendonRodPlant(config, tendons(), DOWN, 0.0, np.ones(8), 0)
        there, target = [], PULL.copy()
        for tension in (9.0, 5.0, *(1.0, 5.0, 9.0, 5.0) * 2):
            for value in np.linspace(target[0], tension, 60):  # slowly: the arm must not swing
                target[0] = value
                arm.step(target, 0.1)
            there.append(arm.true_section_tips()[-1, 0, 3])
        return there[7] - there[9], there[5] - there[9]

    gap, again = loop_width(0.2)
    assert gap < -1e-3  # rising tension bends less than falling tension
    assert abs(again) < 0.1 * abs(gap)  # the loop closes
    assert abs(loop_width(0.0)[0]) < 0.1 * abs(gap)  # the rest is swing
