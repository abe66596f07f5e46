"""Estimators as a control loop uses them, on an arm with a known true shape."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softarm_ros.control.estimation.chain_kernels import strains_of
from softarm_ros.control.estimation.configuration_rate import configuration_rate
from softarm_ros.control.estimation.predicting import PredictingEstimator
from softarm_ros.control.estimator import Health, Surroundings
from softarm_ros.control.estimators import direct, window
from softarm_ros.control.estimators import filter as filter_part
from softarm_ros.geometry.poses import pose
from softarm_ros.geometry.rotations import exp_so3
from softarm_ros.geometry.sightings import BodySighting, Place, PointSighting, Sighting
from softarm_ros.rigs.loader import load_rig

NOISE_M, RATE_HZ = 2e-4, 100.0


@pytest.fixture(scope='module')
def arm():
    return load_rig('trunk').model('constant_curvature')


def build(arm, kind=filter_part, places=None, **fields):
    config = kind.PART.config(**fields)
    around = Surroundings(0.1, RATE_HZ, NOISE_M, places)
    return kind.build(config, arm, around)


class Bench:
    """An arm with constant bend errors that follows its command and is measured with noise."""

    def __init__(self, arm, estimator, seed=0, amplitude=0.3):
        self.arm, self.estimator, self.rng = arm, estimator, np.random.default_rng(seed)
        self.amplitude = amplitude
        self.off = 0.05 * self.rng.standard_normal(len(arm.rest_configuration))

    def commanded(self, time):
        phase = np.arange(len(self.off)) + 0.8 * time
        return self.amplitude * np.sin(phase)

    def truth(self, time):
        """Return the true section tips: the command, about 0.1 s late, plus the bend errors."""
        strains, _ = self.estimator._commanded.at(time)
        bends = np.stack([strains[:, 4], -strains[:, 3]], axis=1).ravel()
        return self.arm.shape_of(bends + self.off).section_tips

    def sighting(self, time, names=None, tip_only=False):
        tips = self.truth(time)
        bodies = []
        for k, tip in enumerate(tips):
            turn = exp_so3(2e-3 * self.rng.standard_normal(3))
            seen = pose(turn @ tip[:3, :3], tip[:3, 3] + NOISE_M * self.rng.standard_normal(3))
            name = f'section_{k}'
            if names is None or name in names:
                bodies.append(BodySighting(name, seen))
        stamp = round(1e9 * time)
        if tip_only:
            point = PointSighting('tip', bodies[-1].pose[:3, 3])
            return Sighting(stamp, 'base', (), (point,))
        return Sighting(stamp, 'base', tuple(bodies))

    def run(self, begin, end, delay=0.01, see=lambda time: True, **how):
        """Run from `begin` to `end` [s]; return the tip error at the end [m]."""
        for time in np.arange(begin, end, 0.01):
            self.estimator.command(time, self.arm.posture_of(self.commanded(time)))
            if time - delay >= 0.0 and see(time):
                self.estimator.observe(self.sighting(time - delay, **how))
        return self.away(end)

    def away(self, time):
        estimate = self.estimator.estimate(time)
        return float(np.linalg.norm(estimate.tip[:3, 3] - self.truth(time)[-1, :3, 3]))


def test_filter_estimates_tip_configuration_strains_and_tip_velocity(arm):
    estimator = build(arm)
    bench = Bench(arm, estimator)
    errors = [bench.run(0.0, 1.0), *(bench.run(t, t + 0.1) for t in np.arange(1.0, 3.0, 0.1))]
    assert np.sqrt(np.mean(np.square(errors[1:]))) < NOISE_M
    now = 3.0
    estimate = estimator.estimate(now)
    assert estimate.health is Health.OK
    assert estimate.stamp_s == now
    tips = bench.truth(now)
    np.testing.assert_allclose(estimate.configuration, arm.observed_configuration(tips), atol=0.02)
    np.testing.assert_allclose(estimate.strains, strains_of(tips), atol=0.02)
    speed = (bench.truth(now + 1e-4)[-1, :3, 3] - bench.truth(now - 1e-4)[-1, :3, 3]) / 2e-4
    assert np.linalg.norm(estimate.tip_twist[:3] - speed) < 0.2 * np.linalg.norm(speed)
    assert np.all(np.linalg.eigvalsh(estimate.strain_covariance) > -1e-12)
    assert np.all(np.linalg.eigvalsh(estimate.tip_covariance) > 0.0)


@pytest.mark.parametrize('rig', ['trunk', 'cable_arm', 'hydraulic_arm'])
@pytest.mark.parametrize('kind', [filter_part, window])
def test_velocity_of_the_configuration_is_the_slope_of_its_prediction(rig, kind):
    model = load_rig(rig).model()
    estimator = build(model, kind)
    rest, scale = model.rest_configuration, 0.05 * model.configuration_scale

    def configuration(time):
        return rest + scale * np.sin(np.arange(len(rest)) + 2.0 * time)

    for time in np.arange(0.0, 1.0, 0.01):
        posture = model.posture_of(configuration(time))
        estimator.command(time, posture)
        bodies = [BodySighting(f'section_{k}', t) for k, t in enumerate(posture.section_tips)]
        estimator.observe(Sighting(round(1e9 * time), 'base', tuple(bodies)))
    estimate = estimator.estimate(1.0)
    rate = configuration_rate(model, estimate)
    after, before = (estimator.estimate(1.0 + h).configuration for h in (1e-3, -1e-3))
    slope = (after - before) / 2e-3
    assert np.abs(slope / model.configuration_scale).max() > 0.05
    np.testing.assert_allclose(rate, slope, atol=0.02 * np.abs(slope).max())
    truth = (configuration(1.001) - configuration(0.999)) / 2e-3
    np.testing.assert_allclose(rate, truth, atol=0.3 * np.abs(truth).max())


def test_without_velocities_or_configuration_there_is_no_velocity_of_the_configuration(arm):
    estimator = build(arm, direct)
    tips = arm.shape_of(arm.rest_configuration + 0.1).section_tips
    bodies = [BodySighting(f'section_{k}', tip) for k, tip in enumerate(tips)]
    bodies.append(BodySighting('tip', tips[-1]))
    assert estimator.observe(Sighting(0, 'base', tuple(bodies))) is None
    estimate = estimator.estimate(0.0)
    assert estimate.configuration is not None
    assert configuration_rate(arm, estimate) is None
    muscles = load_rig('pam_arm').model()
    blind = build(muscles)
    posture = muscles.posture_of(muscles.rest_configuration)
    blind.command(0.0, posture)
    blind.observe(Sighting(0, 'base', (BodySighting('tip', posture.section_tips[-1]),)))
    assert configuration_rate(muscles, blind.estimate(0.01)) is None


def test_filter_tracks_the_tip_from_tip_measurements_alone(arm):
    bench = Bench(arm, build(arm))
    bench.run(0.0, 2.0, tip_only=True)
    errors = [bench.run(t, t + 0.1, tip_only=True) for t in np.arange(2.0, 3.0, 0.1)]
    assert np.sqrt(np.mean(np.square(errors))) < np.sqrt(3) * NOISE_M


def test_filter_tracks_the_arm_from_points_on_the_centreline(arm):
    places = {'low': Place(0, 0.7), 'middle': Place(1, 0.5), 'high': Place(2, 0.6)}
    estimator = build(arm, places=places)
    bench = Bench(arm, estimator)
    for time in np.arange(0.0, 3.0, 0.01):
        estimator.command(time, arm.posture_of(bench.commanded(time)))
        strains = strains_of(np.ascontiguousarray(bench.truth(time)))
        points = []
        for name, place in places.items():
            seen = _place_of(strains, place) + NOISE_M * bench.rng.standard_normal(3)
            points.append(PointSighting(name, seen))
        estimator.observe(Sighting(round(1e9 * time), 'base', (), tuple(points)))
    assert bench.away(3.0) < 3e-3  # no point at the end of the arm: its last bend is a guess
    where, covariance = estimator.place(places['high'], 3.0)
    truth = _place_of(strains_of(np.ascontiguousarray(bench.truth(3.0))), places['high'])
    assert np.linalg.norm(where[:3, 3] - truth) < 1e-3
    assert np.sqrt(np.trace(covariance[:3, :3])) < 2e-3


def _place_of(strains, place):
    return _pose_of(strains, place)[:3, 3]


def _pose_of(strains, place):
    from softarm_ros.control.estimation.chain_kernels import places_into

    poses, jacobians = np.empty((1, 4, 4)), np.empty((1, 6, strains.size))
    places_into(
        strains, np.array([place.section]), np.array([place.fraction]), place.offset[None],
        poses, jacobians,
    )  # fmt: skip
    return poses[0]


def test_out_of_order_measurements_give_the_same_estimate(arm):
    estimators = [build(arm), build(arm)]
    bench = Bench(arm, estimators[0])
    sightings = []
    for time in np.arange(0.0, 1.0, 0.01):
        for one in estimators:
            one.command(time, arm.posture_of(bench.commanded(time)))
        sightings.append(bench.sighting(time))
    order = np.arange(len(sightings))
    for begin in range(0, len(order), 7):
        bench.rng.shuffle(order[begin : begin + 7])
    for k in range(len(sightings)):
        assert estimators[0].observe(sightings[k]) is None
        assert estimators[1].observe(sightings[order[k]]) is None
    first, second = (one.estimate(1.0) for one in estimators)
    np.testing.assert_array_equal(first.tip, second.tip)
    np.testing.assert_array_equal(first.strain_covariance, second.strain_covariance)
    assert first.innovations == second.innovations


def test_second_measurement_of_the_same_place_is_also_used(arm):
    spread = []
    for more in (False, True):
        bench = Bench(arm, build(arm, places={'also': Place(2)}))
        bench.run(0.0, 0.5)
        seen = bench.sighting(0.5)
        again = BodySighting('also', bench.sighting(0.5).bodies[-1].pose)
        bodies = (*seen.bodies, again) if more else seen.bodies
        sighting = Sighting(seen.stamp_ns, 'base', bodies)
        assert bench.estimator._places.measured(sighting)[0].sizes.size == (4 if more else 3)
        bench.estimator.observe(sighting)
        spread.append(np.trace(bench.estimator.estimate(0.5).tip_covariance))
    assert spread[1] < 0.99 * spread[0]


def test_filter_learns_which_section_deviates_and_how_fast(arm):
    bench = Bench(arm, build(arm), amplitude=0.1)
    bend, turns_s, still = 0.05, 4.0, bench.off.copy()
    for begin in np.arange(0.0, 8.0, 0.01):
        bench.off = still.copy()
        bench.off[2] += bend * np.sin(turns_s * begin)
        bench.run(begin, begin + 0.01, delay=0.0)
    belief = bench.estimator._belief
    scale = bench.estimator._deviation.scales[np.argmax(belief.weights)]
    rates = scale * np.diagonal(belief.rates)
    bends = {k: rates[6 * k + 3 : 6 * k + 5].max() for k in range(3)}
    assert bends[1] == pytest.approx((bend * turns_s) ** 2 / 2.0, rel=0.5)
    assert max(bends[0], bends[2]) < 0.05 * bends[1]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.floats(0.001, 0.4), st.sampled_from('wtflmo')), max_size=40))
def test_belief_stays_finite_and_positive_for_any_sequence_of_frames(arm, events):
    """Frames are complete, tip only, far off, late, missing, or have one body off."""
    bench = Bench(arm, build(arm))
    time = 0.0
    for passed, kind in events:
        time += passed
        bench.estimator.command(time, arm.posture_of(bench.commanded(time)))
        seen = bench.sighting(max(time - 0.3, 0.0) if kind == 'l' else time, tip_only=kind == 't')
        for body in seen.bodies[: {'f': 3, 'o': 1}.get(kind, 0)]:
            body.pose[:3, 3] += 0.05 * bench.rng.standard_normal(3)
        if kind != 'm':
            bench.estimator.observe(seen)
        estimate = bench.estimator.estimate(time)
        if estimate is None:
            continue
        for covariance in (estimate.tip_covariance, estimate.strain_covariance):
            values = np.linalg.eigvalsh(covariance)
            assert values.min() > -1e-9 * values.max()
        assert np.isfinite(estimate.tip).all()
        if bench.estimator._belief is not None:
            rates = bench.estimator._belief.rates
            assert np.linalg.eigvalsh(rates).min() > 0.0
            assert np.all(np.diagonal(rates) >= 0.999 * bench.estimator._deviation.least_rates)


def test_innovation_mean_is_one_for_true_noise_and_reveals_wrong_noise(arm):
    found = {}
    for factor in (0.5, 1.0, 2.0):
        stated = {'position_noise_m': factor * NOISE_M, 'orientation_noise_rad': factor * 2e-3}
        estimator = build(arm, **stated)
        Bench(arm, estimator).run(0.0, 6.0)
        seen = estimator.estimate(6.0).innovations
        found[factor] = seen.mean
        if factor == 1.0:
            assert seen.rows > 0.99 * 18 * 599  # three bodies, from 0.01 s on
    assert found[1.0] == pytest.approx(1.0, abs=0.05)
    assert found[0.5] > 1.5
    assert found[2.0] < 0.5


class WanderingBench(Bench):
    """An arm that deviates as in the filter's model, at a `share` of the assumed speeds."""

    def __init__(self, arm, estimator, share, seconds, seed=0):
        super().__init__(arm, estimator, seed)
        d, n = estimator._deviation, estimator._deviation.size
        speeds = share * np.sqrt(np.diag(d.rates))
        left = np.exp(-0.01 / d.memory_s)
        gone, v, c = d.memory_s * (1.0 - left), speeds * self.rng.standard_normal(n), np.zeros(n)
        self.path = []
        for _ in range(round(100 * seconds) + 2):
            self.path.append(c)
            c = c + gone * v
            v = left * v + speeds * np.sqrt(1.0 - left**2) * self.rng.standard_normal(n)

    def truth(self, time):
        d, (strains, _) = self.estimator._deviation, self.estimator._commanded.at(time)
        c = self.path[round(100 * time)]
        strains = strains + (d.shares * c[d.modes]).reshape(strains.shape)
        return np.array([_pose_of(strains, Place(k)) for k in range(len(strains))])


@pytest.mark.parametrize('share', [0.02, 1.0])
def test_tip_covariance_matches_the_error_even_at_wrong_deviation_speeds(arm, share):
    seconds = 16.0
    estimator = build(arm, deviation_speeds=(1.0,), learning_s=1e6, orientation_noise_rad=2e-3)
    bench = WanderingBench(arm, estimator, share, seconds)
    bench.run(0.0, 1.0)
    filters, told = [], []
    for time in np.arange(1.0, seconds, 0.01):
        bench.run(time, time + 0.005)
        estimate = estimator.estimate(time)
        off = bench.truth(time)[-1, :3, 3] - estimate.tip[:3, 3]
        told.append(off @ np.linalg.solve(estimate.tip_covariance[:3, :3], off))
        filters.append(told[-1] * estimator._belief.hindsight.scale)
    found = estimate.innovations
    assert 0.94 < found.squares / found.rows < 1.02  # innovations hardly show wrong speeds
    assert 2.5 < np.mean(told) < 3.5
    if share < 1.0:
        assert np.mean(filters) < 2.2


def test_innovations_count_each_used_measurement_once(arm):
    estimator = build(arm)
    bench = Bench(arm, estimator)
    bench.run(0.0, 1.0)
    before = estimator.estimate(1.0).innovations
    wrong = bench.sighting(0.995)
    bodies = tuple(
        BodySighting(body.name, pose(body.pose[:3, :3], body.pose[:3, 3] + 0.05))
        for body in wrong.bodies
    )
    estimator.observe(Sighting(wrong.stamp_ns, 'base', bodies))
    assert estimator.estimate(1.0).innovations == before
    newer, late = bench.sighting(1.01), bench.sighting(1.0)
    estimator.observe(newer)
    after = estimator.estimate(1.02).innovations
    assert after.rows == before.rows + 18
    estimator.observe(late)  # the newer one is processed again after it
    assert estimator.estimate(1.02).innovations.rows == before.rows + 36
    estimator.reset()
    estimator.command(0.0, arm.posture_of(bench.commanded(0.0)))
    estimator.observe(bench.sighting(0.0))
    assert estimator.estimate(0.01).innovations.rows == 18


def test_measurement_beyond_max_lateness_is_refused_with_the_limit(arm):
    bench = Bench(arm, build(arm, max_lateness_s=0.2))
    bench.run(0.0, 1.0)
    said = bench.estimator.observe(bench.sighting(0.5))
    assert 'older than the newest (limit 200 ms)' in said


def test_dropout_is_bridged_then_the_estimate_is_lost_and_the_pace_falls_to_zero(arm):
    bench = Bench(arm, build(arm))
    bench.run(0.0, 2.0)
    paces = []
    for begin in np.arange(2.0, 3.0, 0.05):
        away = bench.run(begin, begin + 0.05, see=lambda time: False)
        paces.append(bench.estimator.pace(begin + 0.05))
        if begin < 2.22:
            assert away < 3e-3
            assert paces[-1] == 1.0
            assert bench.estimator.estimate(begin + 0.05).health is Health.DEGRADED
    assert paces[-1] == 0.0
    assert np.all(np.diff(paces) <= 0.0)
    lost = bench.estimator.estimate(3.0)
    assert lost.health is Health.LOST
    assert 'no pose for' in lost.reason
    assert 'limit 500 ms' in lost.reason
    bench.run(3.0, 3.05)
    assert bench.estimator.estimate(3.05).health is Health.OK
    assert 0.0 < bench.estimator.pace(3.1) < 1.0  # the pace rises without a jump
    bench.run(3.05, 3.3)
    assert bench.estimator.pace(3.3) == 1.0


def test_rejected_exposure_has_the_same_effect_as_a_missing_one(arm):
    benches = [Bench(arm, build(arm)) for _ in range(2)]
    for number, bench in enumerate(benches):
        bench.run(0.0, 1.0)
        spoiled = bench.sighting(1.0)
        for body in spoiled.bodies:
            body.pose[:3, 3] += [0.05, 0.0, 0.0]
        if number:
            bench.estimator.observe(spoiled)
        bench.run(1.01, 1.3)
    without, after = (bench.estimator.estimate(1.3) for bench in benches)
    np.testing.assert_array_equal(after.tip, without.tip)
    np.testing.assert_array_equal(after.strain_covariance, without.strain_covariance)


def test_outliers_are_rejected_and_named(arm):
    bench = Bench(arm, build(arm))
    bench.run(0.0, 1.0)
    before = bench.estimator.estimate(1.0)
    right = bench.sighting(0.995)
    for body in right.bodies:
        body.pose[:3, 3] += [0.05, 0.0, 0.0]
    bench.estimator.observe(right)
    after = bench.estimator.estimate(1.0)
    np.testing.assert_array_equal(after.tip, before.tip)
    assert after.health is Health.DEGRADED
    assert 'section_0 rejected' in after.reason


def test_flipped_body_is_used_for_position_but_its_attitude_is_rejected(arm):
    bench = Bench(arm, build(arm))
    bench.run(0.0, 1.0)
    flipped = bench.sighting(0.995)
    flipped.bodies[-1].pose[:3, :3] = flipped.bodies[-1].pose[:3, :3] @ np.diag([1.0, -1.0, -1.0])
    bench.estimator.observe(flipped)
    assert bench.estimator.estimate(1.0).reason == 'attitude of section_2 rejected'
    assert bench.away(1.0) < 5e-4


@pytest.mark.parametrize('kind', [filter_part, window])
def test_lasting_deviation_beyond_the_gate_is_accepted(arm, kind):
    bench = Bench(arm, build(arm, kind))
    bench.run(0.0, 1.0)
    bench.off = bench.off + 0.3  # the arm has been pushed aside permanently
    bench.estimator.observe(bench.sighting(1.0))
    assert bench.away(1.01) > 0.03
    bench.run(1.01, 1.4)
    assert bench.away(1.4) < 1e-3
    assert bench.estimator.estimate(1.4).health is Health.OK


def test_actuators_alone_give_an_estimate_reported_as_degraded(arm):
    estimator = build(arm)
    assert estimator.estimate(0.0) is None
    configuration = 0.2 * np.ones(len(arm.rest_configuration))
    for time in np.arange(0.0, 2.0, 0.05):
        estimator.actuated(time, arm.actuation_of(configuration))
    estimate = estimator.estimate(2.0)
    assert estimate.health is Health.DEGRADED
    assert 'from the actuators alone' in estimate.reason
    tip = arm.shape_of(configuration).tip
    assert np.linalg.norm(estimate.tip[:3, 3] - tip[:3, 3]) < 1e-3
    assert np.sqrt(estimate.tip_covariance[0, 0]) > 0.01  # includes the error of the model


def test_invalid_sightings_and_places_are_refused_with_the_cause(arm):
    estimator = build(arm)
    nowhere = Sighting(0, 'base', (BodySighting('hat', np.eye(4)),))
    assert estimator.observe(nowhere) == 'sighting before the first command'
    estimator.command(0.0, arm.posture_of(arm.rest_configuration))
    assert "'hat' has no place on the arm" in estimator.observe(nowhere)
    bad = Sighting(0, 'base', (BodySighting('section_0', np.full((4, 4), np.nan)),))
    assert "'section_0' is not finite" in estimator.observe(bad)
    with pytest.raises(ValueError, match="place of 'hat': section 7"):
        build(arm, places={'hat': Place(7)})


@pytest.mark.parametrize('variance', [-1.0, -1e-8, np.nan, np.inf])
def test_invalid_covariance_is_refused_and_leaves_the_filter_usable(arm, variance):
    """ROS messages use -1 for unknown; a filter that accepts it stays NaN for ever."""
    bench = Bench(arm, build(arm))
    bench.run(0.0, 0.5)
    seen = bench.sighting(0.5)
    point = PointSighting('tip', seen.bodies[-1].pose[:3, 3], np.diag([1e-8, 1e-8, variance]))
    refused = bench.estimator.observe(Sighting(seen.stamp_ns, 'base', seen.bodies[:-1], (point,)))
    assert refused == "the covariance of 'tip' is invalid: expected no negative variance"
    bench.run(0.5, 1.0)
    assert np.isfinite(bench.estimator.estimate(1.0).tip_covariance).all()
    assert bench.away(1.0) < 1e-3


@pytest.mark.parametrize('kind', [filter_part, window])
@pytest.mark.parametrize('stated', ['by the rig', 'with a point', 'along one axis'])
def test_zero_measurement_noise_still_gives_an_estimate(arm, kind, stated):
    """As simulated arms state it. The window's estimate once was NaN, with health OK."""
    noise = 0.0 if stated == 'by the rig' else NOISE_M
    estimator = kind.build(kind.PART.config(), arm, Surroundings(0.1, RATE_HZ, noise))
    bench = Bench(arm, estimator)
    variances = np.diag([1e-8 if stated == 'along one axis' else 0.0, 0.0, 0.0])
    for time in np.arange(0.0, 1.0, 0.01):
        estimator.command(time, arm.posture_of(bench.commanded(time)))
        place = bench.truth(time)[-1, :3, 3]
        point = PointSighting('tip', place, None if noise == 0.0 else variances)
        assert estimator.observe(Sighting(round(1e9 * time), 'base', (), (point,))) is None
    estimate = estimator.estimate(1.0)
    assert bench.away(1.0) < 2e-3
    assert np.linalg.eigvalsh(estimate.tip_covariance).min() > 0.0


def test_window_estimates_the_tip_about_as_well_as_the_filter(arm):
    errors = {}
    for kind in (filter_part, window):
        bench = Bench(arm, build(arm, kind))
        bench.run(0.0, 1.0)
        errors[kind] = [bench.run(t, t + 0.1) for t in np.arange(1.0, 3.0, 0.1)]
    filtered, fitted = (np.sqrt(np.mean(np.square(errors[k]))) for k in (filter_part, window))
    assert fitted < 1.2 * filtered


def test_window_equals_the_filter_for_tiny_deformations(arm):
    fields = {'deviation_speeds': (1.0,), 'learning_s': 1e9, 'gate_probability': 1.0 - 1e-12}
    estimators = [build(arm, filter_part, **fields), build(arm, window, **fields)]
    bench = Bench(arm, estimators[0], amplitude=0.0)
    bench.off = 1e-7 * bench.off
    for time in np.arange(0.0, 0.5, 0.01):
        for one in estimators:
            one.command(time, arm.posture_of(bench.commanded(time)))
        tips = bench.truth(time)
        bodies = tuple(
            BodySighting(f'section_{k}', pose(tip[:3, :3], tip[:3, 3] + 1e-7))
            for k, tip in enumerate(tips)
        )
        for one in estimators:
            one.observe(Sighting(round(1e9 * time), 'base', bodies))
    first, second = (one.estimate(0.5) for one in estimators)
    np.testing.assert_allclose(first.tip, second.tip, atol=1e-11)
    np.testing.assert_allclose(first.tip_covariance, second.tip_covariance, rtol=1e-4, atol=1e-12)


def test_window_covariance_stays_above_90_percent_of_the_filters_in_a_mixed_bank(arm):
    estimators = [build(arm, filter_part), build(arm, window)]
    bench, most = Bench(arm, estimators[0], amplitude=0.0), 0.0
    swing = bench.off.copy()
    for time in np.arange(0.0, 2.0, 0.01):
        bench.off = np.cos(40.0 * max(time - 1.8, 0.0)) * swing  # faster than the learnt speeds
        for one in estimators:
            one.command(time, arm.posture_of(bench.commanded(time)))
        seen = bench.sighting(time)
        for one in estimators:
            one.observe(seen)
        filtered, fitted = (
            np.trace(one.estimate(time).tip_covariance[:3, :3]) for one in estimators
        )
        weights = np.exp(estimators[0]._belief.weights)
        most = max(most, 1.0 - weights.max() / weights.sum())
        assert fitted > 0.9 * filtered
    assert most > 0.3


def test_outlier_hardly_moves_the_window_estimate(arm):
    bench = Bench(arm, build(arm, window))
    bench.run(0.0, 1.0)
    before = bench.estimator.estimate(1.0)
    spoiled = bench.sighting(0.995)
    for body in spoiled.bodies:
        body.pose[:3, 3] += [0.05, 0.0, 0.0]
    bench.estimator.observe(spoiled)
    after = bench.estimator.estimate(1.0)
    assert np.linalg.norm(after.tip[:3, 3] - before.tip[:3, 3]) < NOISE_M


def test_direct_estimator_returns_each_measurement_unchanged_and_only_once(arm):
    estimator = build(arm, direct)
    tips = arm.shape_of(0.1 * np.ones(len(arm.rest_configuration))).section_tips
    bodies = tuple(BodySighting(f'section_{k}', tip) for k, tip in enumerate(tips))
    point = PointSighting('tip', tips[-1][:3, 3])
    assert estimator.observe(Sighting(5_000_000, 'base', bodies, (point,))) is None
    estimate = estimator.estimate(1.0)
    assert estimate.stamp_s == 1e-9 * 5_000_000
    np.testing.assert_array_equal(estimate.tip[:3, 3], point.position)
    np.testing.assert_array_equal(estimate.configuration, arm.observed_configuration(tips))
    assert estimator.estimate(1.0) is None
    assert 'older than the newest' in estimator.observe(Sighting(4_000_000, 'base', (), (point,)))
    assert estimator.pace(1.0) == 1.0


def test_rig_setting_selects_the_estimator():
    from softarm_ros.runtime.assembly import build_estimator

    rig = load_rig('cable_arm_single', ['estimator.kind=filter'])
    assert isinstance(build_estimator(rig, rig.model()), PredictingEstimator)
    assert isinstance(build_estimator(load_rig('cable_arm_single'), rig.model()), direct.Direct)
