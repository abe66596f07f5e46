"""Observers of the tip load, on arms that equal their model plus a known error."""

import numpy as np
import pytest

from softarm_ros.control.estimation.swung_actuation import SwungActuation
from softarm_ros.control.estimation.tip_force import TipForceObserver
from softarm_ros.control.estimation.tip_load import PERIOD_S, TipSeen
from softarm_ros.control.estimation.tip_weight import FIRST_S, TipWeightObserver
from softarm_ros.geometry.poses import pose
from softarm_ros.geometry.rotations import exp_so3
from softarm_ros.models.arm_model import ModelError
from softarm_ros.rigs.errors import RigError
from softarm_ros.rigs.loader import load_rig
from softarm_ros.rigs.swung_mass import swung_mass_kg
from softarm_ros.runtime.assembly import build_estimator

GRAVITY = np.array([0.0, 0.0, 9.81])
NOISE_M, NOISE_RAD = 2e-4, 2e-3
BEGIN_S = 2.0 - FIRST_S - PERIOD_S  # the observer accepts weights from 2 s on


class Arm:
    """An arm with a fixed pose error that moves to and fro under a force at its tip."""

    def __init__(self, directions, seed=0, spread_N=1.0, share=0.0, swung_mass_kg=0.0):
        self.rig = load_rig('fishbone_arm')
        self.model, self.rng = self.rig.model(), np.random.default_rng(seed)
        if directions.shape[1] > 1:
            self.observer = TipForceObserver(self.model, 0.0, spread_N, share, 0.3)
        else:
            gravity = 9.81 * directions[:, 0]
            self.observer = TipWeightObserver(
                self.model, gravity, 0.0, spread_N, share, swung_mass_kg
            )
        rest = self.model.rest_configuration
        far = self.rig.sample_configurations(np.random.default_rng(2), 1)[0] - rest
        self.rest, self.way = rest, 0.3 * far
        self.shift = 3e-3 * self.rng.standard_normal(3)
        self.turn = exp_so3(0.02 * self.rng.standard_normal(3))

    def weigh(self, begin, end, force, moving=0.0):
        for now in np.arange(begin, end, PERIOD_S):
            q = self.rest + (1.0 + 0.2 * np.sin(now)) * self.way
            actuation = self.model.actuation_of(q)
            tip = self.model.forward(actuation, tuple(force)).tip
            noise = exp_so3(NOISE_RAD * self.rng.standard_normal(3)) @ self.turn
            where = tip[:3, 3] + self.shift + NOISE_M * self.rng.standard_normal(3)
            covariance = np.diag([NOISE_M**2] * 3 + [NOISE_RAD**2] * 3)
            seen = TipSeen(
                pose(noise @ tip[:3, :3], where),
                covariance,
                np.broadcast_to(moving, 6),
                1e-8 * np.eye(6),
            )
            assert self.observer.due(now)
            self.observer.actuated(now, actuation)
            self.observer.update(now, seen)
        return self.observer.load()


@pytest.mark.parametrize('sign', [1.0, -1.0])
def test_added_weight_is_estimated_with_sign_and_size(sign):
    arm = Arm(np.array([[0.0], [-1.0], [0.0]]))
    before = arm.weigh(BEGIN_S, 3.0, np.zeros(3))
    assert np.linalg.norm(before.force) < 0.01
    force = sign * np.array([0.0, -0.1, 0.0])
    after = arm.weigh(3.0, 4.0, force)
    assert after.problem == ''
    np.testing.assert_allclose(after.force, force, atol=0.02)
    off = arm.weigh(4.0, 5.0, np.zeros(3))
    np.testing.assert_allclose(off.force, np.zeros(3), atol=0.02)


def test_force_is_estimated_along_compliant_directions_and_uncertain_elsewhere():
    arm = Arm(np.eye(3))
    arm.weigh(0.0, 3.0, np.zeros(3))
    force = np.array([0.03, -0.08, 0.0])
    after = arm.weigh(3.0, 4.5, force)
    np.testing.assert_allclose(after.force[:2], force[:2], atol=0.03)
    sd = np.sqrt(np.diag(after.covariance))
    assert np.all(np.abs(after.force - force) < 4.0 * sd + 1e-3)


def test_force_is_as_uncertain_on_an_arm_that_equals_its_model_at_first():
    wrong, right = Arm(np.eye(3), seed=1), Arm(np.eye(3), seed=1)
    right.shift, right.turn = np.zeros(3), np.eye(3)
    expected = wrong.weigh(0.0, 1.0, np.zeros(3)).covariance
    found = right.weigh(0.0, 1.0, np.zeros(3)).covariance
    np.testing.assert_allclose(found, expected, atol=0.01 * np.abs(expected).max())


def test_weight_covariance_is_consistent_over_twelve_arms():
    errors = []
    for seed in range(12):
        arm = Arm(np.array([[0.0], [-1.0], [0.0]]), seed)
        arm.weigh(BEGIN_S, 3.0, np.zeros(3))
        found = arm.weigh(3.0, 4.0, np.array([0.0, -0.1, 0.0]))
        errors.append((found.force[1] + 0.1) ** 2 / found.covariance[1, 1])
    assert np.mean(errors) < 2.2  # 99 % of chi-square of twelve


def test_unobservable_direction_is_reported_with_its_standard_deviation():
    rig = load_rig('pneumatic_arm')
    model = rig.model()
    # The arm hangs: 1 N pulls it down by only 0.1 mm.
    observer = TipWeightObserver(model, GRAVITY, 0.0, 0.02, 0.1)
    actuation = model.actuation_of(model.rest_configuration)
    tip = model.forward(actuation).tip
    seen = TipSeen(tip, 1e-6 * np.eye(6), np.zeros(6), 1e-6 * np.eye(6))
    for now in np.arange(0.0, 60.0, PERIOD_S):
        observer.actuated(now, actuation)
        observer.update(now, seen)
    load = observer.load()
    assert 'not observed along [0.0, 0.0, 1.0]: standard deviation' in load.problem
    assert np.sqrt(load.covariance[2, 2]) > 0.01


def test_load_in_a_gripper_is_estimated_with_the_lever_arm_of_the_gripper():
    rig = load_rig('pneumatic_arm')
    model, gripper = rig.model(), rig.gripper
    heavier = load_rig('pneumatic_arm', [f'gripper.mass_kg={gripper.mass_kg + 0.025}']).model()
    actuation = 4e4 * np.array([1.0, 0.2, 0.0, 0.9, 0.3, 0.0])
    bare, under = model.forward(actuation).tip, heavier.forward(actuation).tip
    assert np.linalg.norm(under[:3, 3] - bare[:3, 3]) > 2e-3
    found = {}
    for beyond_m in (gripper.centre_m, 0.0):
        observer = TipWeightObserver(model, GRAVITY, beyond_m, 2.5, 0.0)
        for now in np.arange(BEGIN_S, 4.0, PERIOD_S):
            tip = bare if now < 2.0 else under
            seen = TipSeen(tip, 1e-10 * np.eye(6), np.zeros(6), 1e-10 * np.eye(6))
            observer.actuated(now, actuation)
            observer.update(now, seen)
        found[beyond_m] = observer.load().force[2]
    asked = load_rig('pneumatic_arm', ['estimator.kind=filter', 'estimator.tip_load=weight'])
    assert build_estimator(asked, model)._weighing._beyond_m == gripper.centre_m
    weight = 0.025 * rig.gravity_m_s2[2]
    # The bias absorbs a few per cent of the weight.
    assert found[gripper.centre_m] == pytest.approx(weight, rel=0.1)
    assert found[0.0] > 1.15 * weight  # a force at the tip itself would have to be larger


def test_force_estimate_waits_while_the_tip_is_still_moving():
    arm = Arm(np.eye(3))
    arm.weigh(0.0, 3.0, np.zeros(3))
    force = np.array([0.03, -0.08, 0.0])
    falling = arm.weigh(3.0, 3.05, force, moving=[0.2, 0.0, 0.0, 0.0, 0.0, 0.0])
    np.testing.assert_allclose(falling.force, np.zeros(3), atol=0.01)
    assert falling.covariance[1, 1] > 0.005  # half the variance of 1 N in one of a hundred cases
    down = arm.weigh(3.1, 4.0, force)
    np.testing.assert_allclose(down.force[:2], force[:2], atol=0.03)


SIDE = np.array([[0.0], [-1.0], [0.0]])
WEIGHT = np.array([0.0, -0.1, 0.0])


def test_weight_estimate_averages_over_a_swing():
    arm = Arm(SIDE, share=0.1)
    arm.weigh(BEGIN_S, 3.0, np.zeros(3))
    give = 0.1 * arm.observer._at.slope[:3, 0]
    rest, alone = arm.shift, []
    for now in np.arange(3.0, 4.0, PERIOD_S):
        swing = 0.5 * np.sin(2.0 * np.pi * 1.5 * (now - 3.05))
        arm.shift = rest + swing * give
        found = arm.weigh(now, now + 0.5 * PERIOD_S, WEIGHT)
        alone.append(1.0 + swing)
    assert max(alone) > 1.4  # what a single update would estimate
    assert min(alone) < 0.6
    np.testing.assert_allclose(found.force, WEIGHT, atol=0.02)


@pytest.mark.parametrize(('damping', 'bar'), [(0.05, 0.1), (0.2, 0.2), (0.5, 0.3)])
def test_weight_estimate_with_a_swung_mass_converges_within_a_slow_swing(damping, bar):
    """The arm swings on the weight once a second; half a swing says little about damping."""
    off = {}
    for swung_kg in (0.0, 0.2):
        arm = Arm(SIDE, share=0.1, swung_mass_kg=swung_kg)
        arm.weigh(BEGIN_S, 3.0, np.zeros(3))
        give = arm.observer._at.slope[:3, 0] * 0.1
        stiffness = 0.1 * give @ SIDE[:, 0] / (give @ give)
        w = np.sqrt(stiffness / (0.2 + 0.1 / 9.81))
        assert 2.0 * np.pi / w > 0.95
        rest, slow, found = arm.shift, np.sqrt(1.0 - damping**2), []
        for now in np.arange(3.0, 4.0, PERIOD_S):
            turn = w * (now - 2.97)
            swing = np.cos(slow * turn) + damping / slow * np.sin(slow * turn)
            arm.shift = rest - np.exp(-damping * turn) * swing * give
            found.append(arm.weigh(now, now + 0.5 * PERIOD_S, WEIGHT))
        off[swung_kg] = [np.linalg.norm(load.force - WEIGHT) / 0.1 for load in found]
    assert off[0.2][-1] < bar
    if damping == 0.05:
        assert max(off[0.2][4:]) < 0.5 * max(off[0.0][4:])


def test_weight_estimate_allows_for_the_tracker_lifting_the_weight():
    """The tip swings towards its static position while the actuators lift the weight back."""
    found = {}
    for swung_kg in (0.0, 0.2):
        arm = Arm(SIDE, share=0.1, swung_mass_kg=swung_kg)
        arm.weigh(BEGIN_S, 3.0, np.zeros(3))
        q, swung, model = arm.rest + arm.way, SwungActuation(np.array([0.3])), arm.model
        give = arm.observer._at.slope[:3, 0] * 0.1
        w = np.sqrt(0.1 * give @ SIDE[:, 0] / (give @ give) / (0.2 + 0.1 / 9.81))
        for now in np.arange(2.98, 4.0, 0.02):
            loaded = max(now - 2.98, 0.0)
            # The tracker takes back all of the deflection within half a second; it knows no load.
            lift = -min(loaded / 0.5, 1.0) * give / np.linalg.norm(give)
            actuation = model.actuation_of(_reached(model, q, lift * np.linalg.norm(give)))
            arm.observer.actuated(now, actuation)
            swung.take(now, actuation, w)
            if not arm.observer.due(now):
                continue
            turn, slow = w * loaded, np.sqrt(1.0 - 0.3**2)
            swing = np.cos(slow * turn) + 0.3 / slow * np.sin(slow * turn)
            tip = model.forward(swung.value[0], tuple(WEIGHT)).tip
            where = tip[:3, 3] + arm.shift - np.exp(-0.3 * turn) * swing * give
            covariance = np.diag([NOISE_M**2] * 3 + [NOISE_RAD**2] * 3)
            seen = TipSeen(
                pose(arm.turn @ tip[:3, :3], where), covariance, np.zeros(6), covariance
            )
            arm.observer.update(now, seen)
        found[swung_kg] = -arm.observer.load().force[1] / 0.1
    assert found[0.2] == pytest.approx(1.0, abs=0.2)
    assert abs(found[0.2] - 1.0) < 0.5 * abs(found[0.0] - 1.0)


def _reached(model, configuration, way):
    """Return the configuration near another whose tip is displaced by `way` (3,) [m]."""
    steps = 1e-4 * np.eye(len(configuration))
    here = model.forward(model.actuation_of(configuration)).tip[:3, 3]
    slopes = [
        (model.forward(model.actuation_of(configuration + step)).tip[:3, 3] - here) / 1e-4
        for step in steps
    ]
    return configuration + np.linalg.pinv(np.transpose(slopes), rcond=1e-3) @ way


def test_deflection_within_first_s_is_not_counted_as_a_weight():
    """The same deflection counts as model error at 1 s, and as a weight after `FIRST_S`."""
    for at, share in ((1.0, 0.0), (FIRST_S + 1.0, 1.0)):
        arm = Arm(SIDE, share=0.1)
        arm.weigh(0.0, at, np.zeros(3))
        told = arm.weigh(at, at + 1.0, WEIGHT)
        np.testing.assert_allclose(told.force, share * WEIGHT, atol=0.02)


def test_swung_mass_of_a_uniform_cantilever_is_33_140_of_its_mass():
    rig = load_rig('pam_arm')
    model = rig.model()
    mass = rig.arm.backbone.mass_per_length_kg_m * rig.arm.backbone.length_m
    assert swung_mass_kg(rig, model) == pytest.approx(33.0 / 140.0 * mass, rel=1e-6)
    loaded = load_rig('pam_arm', ['tip_load_kg=0.05'])
    assert swung_mass_kg(loaded, model) == pytest.approx(swung_mass_kg(rig, model) + 0.05)


def test_slowly_growing_model_error_is_not_taken_for_a_weight():
    arm = Arm(SIDE, share=0.1)
    arm.weigh(BEGIN_S, 3.0, np.zeros(3))
    give = 0.1 * arm.observer._at.slope[:3, 0]
    rest = arm.shift
    for now in np.arange(3.0, 8.0, PERIOD_S):
        arm.shift = rest + (now - 3.0) / 5.0 * give  # as much as the weight would deflect it
        slow = arm.weigh(now, now + 0.5 * PERIOD_S, np.zeros(3))
    assert np.linalg.norm(slow.force) < 0.2 * 0.1
    after = arm.weigh(8.0, 9.0, WEIGHT)
    np.testing.assert_allclose(after.force, WEIGHT, atol=0.02)


def test_sideways_deflection_adds_uncertainty_but_hardly_changes_the_weight():
    errors, sds = np.zeros((2, 8)), np.zeros((2, 8))
    for seed in range(8):
        for k, share in enumerate((0.0, 0.1)):
            arm = Arm(SIDE, seed, share=share)
            arm.weigh(BEGIN_S, 3.0, np.zeros(3))
            # The arm yields as the model says, plus 30 % of that sideways.
            give = 0.1 * arm.observer._at.slope[:, 0]
            size = np.linalg.norm(give[:3])
            arm.shift = arm.shift + 0.3 * size * np.cross(give[:3] / size, [0.0, 0.0, 1.0])
            after = arm.weigh(3.0, 4.0, WEIGHT)
            errors[k, seed] = after.force[1] - WEIGHT[1]
            sds[k, seed] = np.sqrt(after.covariance[1, 1])
    assert np.abs(errors).max() < 0.05 * np.linalg.norm(WEIGHT)
    assert np.all(sds[1] > np.hypot(sds[0], 0.09 * np.linalg.norm(WEIGHT)))


def test_actuation_refused_by_the_model_is_reported_and_changes_nothing():
    arm = Arm(np.eye(3))
    arm.weigh(0.0, 1.0, np.zeros(3))
    seen = TipSeen(np.eye(4), np.eye(6), np.zeros(6), np.eye(6))
    arm.observer.actuated(1.0, np.full(len(arm.rig.actuator_names), np.nan))
    arm.observer.update(1.0, seen)
    assert 'the model refuses the actuation' in arm.observer.load().problem
    np.testing.assert_allclose(arm.observer.load().force, np.zeros(3), atol=0.05)


@pytest.mark.parametrize('name', ['cable_arm', 'trunk'])
def test_models_without_tip_loads_are_refused(name):
    rig = load_rig(name, ['estimator.kind=filter', 'estimator.tip_load=weight'])
    with pytest.raises(RigError, match='does not account for tip loads; cosserat does') as told:
        build_estimator(rig, rig.model())
    assert 'the load at the tip cannot be estimated' in str(told.value)
    with pytest.raises(ModelError, match='does not account for tip loads'):
        TipForceObserver(rig.model(), 0.0, 1.0, 0.1, 0.3)


def test_enabling_tip_load_estimation_does_not_change_the_motion():
    frames = {}
    for asked in ([], ['estimator.tip_load=weight']):
        rig = load_rig('fishbone_arm', ['estimator.kind=filter', *asked])
        from softarm_ros.runtime.direct import run_direct

        record = run_direct(rig, seed=3, should_stop=_after(60))
        frames[bool(asked)] = record.samples.tip
    np.testing.assert_array_equal(frames[False], frames[True])


def _after(cycles):
    left = iter(range(cycles))
    return lambda: next(left, None) is None
