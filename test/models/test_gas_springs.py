"""Muscles as gas springs in the controller's model: law, derivatives, limits."""

import numpy as np
import pytest

from softarm_ros import load_rig
from softarm_ros.models.minimum_energy.arm import MinimumEnergyArm
from softarm_ros.models.minimum_energy.config import BackboneConfig, ParallelModulesConfig
from softarm_ros.models.minimum_energy.gas_springs import GasSprings
from softarm_ros.models.minimum_energy.kernels import elastic_energy
from softarm_ros.rigs.arms.muscle import MuscleArm
from softarm_ros.runtime.assembly import build_tracker

LAW = GasSprings(0.05, 0.11, 21.6, 12.8)
P = np.array([0.2, 0.05, 0.9])


def arm(**changes):
    return MinimumEnergyArm(BackboneConfig(), ParallelModulesConfig(**changes))


def test_free_length_pull_and_length_are_consistent():
    rng = np.random.default_rng(0)
    free, pull = rng.uniform(0.055, 0.125, 50), rng.uniform(-12.0, 14.0, 50)
    length = LAW.length(pull, free)
    np.testing.assert_allclose(LAW.pull(length, free), pull, atol=1e-12)
    np.testing.assert_allclose(LAW.free(pull, length), free, atol=1e-12)
    np.testing.assert_allclose(LAW.length(np.zeros(50), free), free, atol=1e-15)


def test_vented_muscle_pushes_with_its_skeleton_alone():
    length = np.array([0.09, 0.1, 0.11])
    pushes = LAW.pull(length, LAW.vented(length))
    np.testing.assert_allclose(pushes, -LAW.skeleton_N_m * (0.11 - length), atol=1e-12)


def test_most_gas_gives_the_supply_push_at_full_length():
    assert float(LAW.pull(np.array(0.11), LAW.most_m)) == pytest.approx(-12.8)
    # The middle pull is halfway between those of vacuum and supply.
    length = np.array(0.1)
    middle = float(LAW.middle_pull(length))
    most, least = float(LAW.pull(length, 0.05)), -12.8 - LAW.skeleton_N_m * 0.01
    assert middle == pytest.approx(0.5 * (most + least))


def test_straight_arm_with_vented_muscles_stays_straight():
    model = arm()
    rest = model.equilibrium(model.rest_configuration)
    np.testing.assert_allclose(rest.positions[-1], [0.0, 0.0, 1.0], atol=1e-12)
    np.testing.assert_allclose(rest.tensions, -22.8 / 0.06 * 0.01, rtol=1e-9)
    np.testing.assert_allclose(
        model.preferred_configuration(model.rest_configuration), model.rest_configuration
    )


def test_equilibrium_minimises_the_energy_of_rod_weight_skeletons_and_gas():
    """Envelope theorem: the total energy changes with a command as that of the gas alone."""
    model = arm()
    commands, law = model.inverse(P).actuation, model.modules.gas_springs

    def total(command):
        s = model.equilibrium(command)
        weight = float(np.sum(model.rod.loads() * np.diff(s.positions, axis=0)))
        energy = elastic_energy(s.nodes, model.rod.ds, model.rod.stiffness) - weight
        folds = 0.5 * law.skeleton_N_m * (s.lengths - law.shortest_m) ** 2
        return energy + float(np.sum(folds - law.gas(command) * np.log(s.lengths)))

    state = model.equilibrium(commands)
    np.testing.assert_allclose(state.tensions, law.pull(state.lengths, commands), atol=1e-12)
    for i in (0, 7, 16, 29):
        step = 1e-5 * np.eye(30)[i]
        slope = (total(commands + step) - total(commands - step)) / 2e-5
        by_gas = law.skeleton_N_m * (2.0 * commands[i] - law.shortest_m)
        assert slope == pytest.approx(-by_gas * np.log(state.lengths[i]), abs=1e-5)


def test_tip_jacobian_by_commands_matches_finite_differences():
    model, rng = arm(), np.random.default_rng(3)
    commands = model.inverse(P).actuation + 1e-3 * rng.normal(size=30)
    posture = model.posture_of(commands)
    h = 1e-6
    for i in range(0, 30, 4):
        step = h * np.eye(30)[i]
        ahead, behind = (model.equilibrium(commands + s * step) for s in (1.0, -1.0))
        tip = (ahead.positions[-1] - behind.positions[-1]) / (2.0 * h)
        np.testing.assert_allclose(posture.tip_jacobian[:, i], tip, atol=1e-6)


@pytest.mark.parametrize('point', [P, [-0.1, 0.15, 0.92], [0.0, -0.2, 0.9]])
def test_forward_of_inverse_returns_the_point(point):
    model = arm()
    solution = model.inverse(point)
    assert solution.converged, solution.message
    np.testing.assert_allclose(model.forward(solution.actuation).tip[:3, 3], point, atol=1e-7)


def test_inverse_respects_the_actuator_limits_if_they_allow_the_point():
    rig = load_rig('pam_arm')
    model, limits = rig.model(), rig.actuator_limits()
    for point in ((0.16, 0.08, 0.9), (0.0, -0.2, 0.9)):
        near = model.inverse(point)
        assert near.converged
        limits.check(near.actuation)
        free = arm().inverse(point).actuation
        assert free.min() < limits.position_min[0] and free.max() > limits.position_max[0]


def test_muscles_without_supply_push_are_nearly_empty_on_the_paths():
    """Muscles filled only to their full length push 4 N, and other muscles must compensate."""
    for point in ((0.0, 0.2, 0.9), (0.16, 0.0, 0.9), (0.16, 0.16, 0.9)):
        least, pushes = [], []
        for supply in (0.0, 13.5):
            model = arm(max_pull_N=22.7, supply_push_N=supply)
            solution = model.inverse(point)
            least.append(solution.actuation.min())
            pushes.append(-model.equilibrium(solution.actuation).tensions.min())
        assert least[0] < 0.0503 and least[1] > 0.056
        assert pushes[0] < 5.0 and pushes[1] > 10.0


def test_command_range_stays_between_vacuum_and_supply():
    """Holds for muscles longer than 92 mm, as on every path, so no other check is needed."""
    rig = load_rig('pam_arm')
    law, limits, model = MuscleArm.of(rig).modules.gas_springs, rig.actuator_limits(), rig.model()
    lengths = np.linspace(0.092, 0.108, 9)
    for free in (limits.position_min[0], limits.position_max[0]):
        inside = law.gas(np.array(free)) / lengths
        assert np.all(inside > 0.05 * law.max_pull_N)
        assert np.all(inside < law.max_pull_N + law.supply_push_N)
    for point in ((0.2, 0.0, 0.9), (0.16, 0.16, 0.9), (0.16, 0.0, 0.9)):
        assert model.equilibrium(model.inverse(point).actuation).lengths.min() > 0.092


def test_tracking_a_target_beyond_reach_stays_between_vacuum_and_supply():
    rig = load_rig('pam_arm')
    model, law = rig.model(), MuscleArm.of(rig).modules.gas_springs
    tracker = build_tracker(rig, model)
    target = 1.002 * np.array([0.05, 0.0, np.sqrt(1.0 - 0.05**2)])
    for _ in range(400):
        tracker.step(np.zeros(3), 0.5 * (target - tracker.tip()), 0.05)
    assert np.linalg.norm(target - tracker.tip()) < 0.02
    state = model.equilibrium(tracker.configuration)
    inside = law.gas(tracker.configuration) / state.lengths
    assert np.all((inside > 0.0) & (inside < law.max_pull_N + law.supply_push_N))
