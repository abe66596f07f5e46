"""Cosserat rod: convergence, energy, invariance, derivatives, an independent formulation."""

import math

import numpy as np
import pytest
from cosserat_cases import FORCE, MOMENT, TENSIONS, winding_arm

from softarm_reproduction.rod_reference import random_cases, reference_tip, two_segment_arm
from softarm_ros.geometry.poses import displacement
from softarm_ros.geometry.rotations import exp_so3, rotation_z
from softarm_ros.models.arm_model import ModelError
from softarm_ros.models.cosserat.arm import CosseratArm
from softarm_ros.models.cosserat.config import (
    CableRoute,
    CosseratConfig,
    MatrixProfile,
    RigidConnector,
    RodCableConfig,
    RodSegmentConfig,
)
from softarm_ros.models.cosserat.rod import CosseratRod


@pytest.fixture(scope='module')
def arm():
    return CosseratArm(two_segment_arm())


def test_winding_arm_agrees_with_an_independent_formulation():
    config = winding_arm(steps=24)
    tensions = np.array([2.0, 3.0, 1.5])
    state = CosseratRod(config).solve(tensions, (0.05, -0.1, 0.02), (1e-3, 2e-3, -1e-3))
    # The reference search starts from our solution, which saves a third of its shots. It must
    # still meet its own boundary conditions.
    point, rotation, _ = reference_tip(
        config,
        tensions,
        (0.05, -0.1, 0.02),
        (1e-3, 2e-3, -1e-3),
        1e-8,
        np.concatenate([state.forces[0], state.moments[0]]),
    )
    assert state.tip[:3, 3] == pytest.approx(point, abs=2e-8)
    assert state.tip[:3, :3] == pytest.approx(rotation, abs=2e-7)
    assert np.linalg.norm(point - [0.0, 0.0, 0.25]) > 0.05


def test_twenty_random_cases_converge_from_a_cold_start():
    coarse, fine = CosseratRod(two_segment_arm(5)), CosseratRod(two_segment_arm(80))
    for case in random_cases(20, seed=20):
        first, second = coarse.solve(*case), fine.solve(*case)
        assert first.converged, first.message
        assert second.converged, second.message
        assert np.linalg.norm(first.tip[:3, 3] - second.tip[:3, 3]) < 1e-6
        warm = coarse.solve(*case, near=first)
        assert np.linalg.norm(warm.tip[:3, 3] - first.tip[:3, 3]) < 1e-9


def test_random_case_agrees_with_an_independent_formulation():
    tensions, force, moment = random_cases(20, seed=20)[0]
    config = two_segment_arm(20)
    state = CosseratRod(config).solve(tensions, force, moment)
    loads = np.concatenate([state.forces[0], state.moments[0]])
    # Our base wrench covers rod and cables. The reference needs the rod's share and starts from 0.
    point, _, reaction = reference_tip(config, tensions, force, moment, 1e-8, 0.0 * loads)
    assert state.tip[:3, 3] == pytest.approx(point, abs=1e-8)
    assert np.isfinite(reaction).all()


def test_tip_error_converges_with_order_six():
    steps = [3, 6, 12, 24]
    tips = [
        CosseratRod(two_segment_arm(n)).solve(TENSIONS, FORCE, MOMENT).tip[:3, 3]
        for n in [*steps, 160]
    ]
    errors = np.linalg.norm(np.array(tips[:-1]) - tips[-1], axis=1)
    orders = np.log2(errors[:-1] / errors[1:])
    assert (orders > 5.5).all(), orders
    assert errors[0] < 2e-6


@pytest.mark.parametrize('extensible', [True, False])
def test_elastic_energy_equals_the_work_of_the_loads(extensible):
    """U(1) = D(1) - int_0^1 D dx, with D(x) the displacements the unit loads work on."""
    rod = CosseratRod(winding_arm(40, extensible).model_copy(update={'gravity_m_s2': (0, 0, 0)}))
    tensions, force = np.array([2.0, 3.0, 1.5]), np.array([0.05, -0.1, 0.02])
    gravity = np.array([3.0, -5.0, 7.0])
    masses = [s.profile.mass_per_length for s in rod.config.segments]

    def displaced(share):
        state = rod.solve(share * tensions, share * force, gravity=share * gravity)
        assert state.converged
        work = tensions @ state.contractions + force @ state.tip[:3, 3]
        for k, segment in enumerate(rod.config.segments):
            # Simpson over the ends of the steps.
            weights = np.array([1.0, *([4.0, 2.0] * 19), 4.0, 1.0]) / 3.0 * segment.length_m / 40
            mass = weights * [masses[k](x) for x in np.linspace(0.0, 1.0, 41)]
            work += mass @ state.points[41 * k : 41 * (k + 1)] @ gravity
        return work, state.elastic_energy_J

    nodes, weights = np.polynomial.legendre.leggauss(12)
    path = sum(w * displaced(0.5 * (x + 1.0))[0] for x, w in zip(nodes, weights)) / 2.0
    at_end, energy = displaced(1.0)
    assert energy == pytest.approx(at_end - path, rel=1e-6)
    assert energy > 1e-3


def test_turning_base_and_loads_turns_the_shape():
    turn = np.array([0.4, -0.9, 1.3])
    rotation = exp_so3(turn)
    config = winding_arm(40)
    root = RodSegmentConfig(
        name='root',
        length_m=0.01,
        profile=MatrixProfile(stiffness_matrix=np.diag([1e9] * 6).tolist()),
        connector=RigidConnector(rotation_vector_deg=np.degrees(turn)),
    )
    turned = config.model_copy(update={'segments': (root, *config.segments)})
    tensions, force, moment = [2.0, 3.0, 1.5], np.array([0.1, -0.1, 0.0]), np.array([0, 2e-3, 0])
    plain = CosseratRod(config).solve(tensions, force, moment)
    other = CosseratRod(turned).solve(
        tensions,
        rotation @ force,
        rotation @ moment,
        gravity=rotation @ config.gravity_m_s2,
    )
    assert other.tip[:3, 3] - [0, 0, 0.01] == pytest.approx(rotation @ plain.tip[:3, 3], abs=1e-8)
    assert other.contractions == pytest.approx(plain.contractions, abs=1e-9)


def test_turning_cables_and_loads_turns_the_shape(arm):
    config = arm.config
    cables = [
        cable.model_copy(
            update={
                'routes': tuple(
                    r.model_copy(update={'angle_deg': r.angle_deg + 35.0}) for r in cable.routes
                )
            }
        )
        for cable in config.cables
    ]
    turned = CosseratRod(config.model_copy(update={'cables': tuple(cables)}))
    about_z = rotation_z(math.radians(35.0))
    plain = arm.rod.solve(TENSIONS, FORCE, MOMENT)
    other = turned.solve(TENSIONS, about_z @ FORCE, about_z @ MOMENT)
    assert other.tip[:3, 3] == pytest.approx(about_z @ plain.tip[:3, 3], abs=1e-11)


def test_inextensible_rod_is_the_limit_of_high_shear_and_axial_stiffness(arm):
    stiff = two_segment_arm()
    segments = []
    for segment in stiff.segments:
        matrix = segment.profile.stiffness(0.0)
        matrix[3:] *= 1e5
        profile = MatrixProfile(
            stiffness_matrix=matrix.tolist(),
            mass_per_length_kg_m=segment.profile.mass_per_length(0.0),
        )
        segments.append(segment.model_copy(update={'profile': profile}))
    limit = CosseratRod(stiff.model_copy(update={'segments': tuple(segments)}))
    kirchhoff = CosseratRod(two_segment_arm(extensible=False))
    first = limit.solve(TENSIONS, FORCE, MOMENT).tip
    second = kirchhoff.solve(TENSIONS, FORCE, MOMENT).tip
    assert first[:3, 3] == pytest.approx(second[:3, 3], abs=2e-7)


@pytest.mark.parametrize('extensible', [True, False])
def test_derivatives_match_finite_differences(extensible):
    rod = CosseratRod(winding_arm(extensible=extensible, turn_deg=(20.0, -10.0, 40.0)))
    loads = np.concatenate([[2.0, 3.0, 1.5], [0.05, -0.1, 0.02], [1e-3, 2e-3, -1e-3]])

    def solve(x):
        state = rod.solve(x[:3], x[3:6], x[6:])
        return state.tip, state.contractions

    solve(loads)
    found = rod.derivatives()
    twists, pulls = np.zeros((6, 9)), np.zeros((3, 9))
    for i in range(9):
        change = np.zeros(9)
        change[i] = 1e-4 if i < 6 else 1e-6
        (tip_a, pull_a), (tip_b, pull_b) = solve(loads - change), solve(loads + change)
        twists[:, i] = displacement(tip_a, tip_b) / (2.0 * change[i])
        pulls[:, i] = (pull_b - pull_a) / (2.0 * change[i])
    # The discrete equations and the derivatives agree to the order of the scheme.
    assert found.tip_by_tension == pytest.approx(twists[:, :3], rel=1e-5, abs=1e-7)
    assert found.compliance == pytest.approx(twists[:, 3:], rel=1e-5, abs=3e-5)
    assert found.contraction_by_tension == pytest.approx(pulls[:, :3], rel=1e-5, abs=1e-9)
    assert found.contraction_by_wrench == pytest.approx(pulls[:, 3:], rel=1e-5, abs=1e-7)


def test_compliance_is_symmetric_and_reciprocal_without_a_tip_moment(arm):
    arm.rod.solve(TENSIONS, FORCE)
    found = arm.rod.derivatives()
    assert found.compliance == pytest.approx(found.compliance.T, rel=1e-5, abs=1e-5)
    assert found.contraction_by_wrench == pytest.approx(found.tip_by_tension.T, rel=1e-5, abs=1e-8)
    assert np.linalg.eigvalsh(found.compliance).min() > 0.0


def test_connector_wrenches_act_as_tip_loads_of_their_segment():
    """A force at the first connector is a force at the tip of the first segment alone."""
    config = two_segment_arm(10).model_copy(update={'cables': (), 'gravity_m_s2': (0, 0, 0)})
    both = CosseratRod(config)
    wrenches = np.zeros((2, 6))
    wrenches[0] = [0.1, 0.05, 0.0, 0.0, 1e-3, 2e-3]
    state = both.solve([], connector_wrenches=wrenches)
    one = CosseratRod(config.model_copy(update={'segments': config.segments[:1]}))
    alone = one.solve([], wrenches[0, :3], wrenches[0, 3:])
    assert state.segment_tips[0] == pytest.approx(alone.tip, abs=1e-12)
    wrenches[1], wrenches[0] = wrenches[0], 0.0
    at_tip = both.solve([], connector_wrenches=wrenches).tip
    assert at_tip == pytest.approx(both.solve([], wrenches[1, :3], wrenches[1, 3:]).tip, abs=1e-12)


def test_centerline_is_accurate_evenly_spaced_and_ends_at_the_tip(arm):
    config = two_segment_arm(5)
    segments = [
        s.model_copy(update={'connector': RigidConnector(length_m=0.03)}) for s in config.segments
    ]
    config = config.model_copy(update={'segments': tuple(segments)})
    coarse = CosseratRod(config).solve(TENSIONS, FORCE, MOMENT)
    fine = CosseratRod(config.model_copy(update={'steps': 100})).solve(TENSIONS, FORCE, MOMENT)
    line, exact = coarse.centerline(101), fine.centerline(101)
    assert np.abs(line - exact).max() < 2e-6
    assert line[0] == pytest.approx([0, 0, 0], abs=1e-15)
    assert line[-1] == pytest.approx(coarse.tip[:3, 3], abs=1e-12)
    spacing = np.linalg.norm(np.diff(exact, axis=0), axis=1)
    assert spacing == pytest.approx(np.full(100, 0.0046), rel=0.05)


def test_bad_input_names_field_value_and_limit(arm):
    with pytest.raises(ModelError, match=r'tension of c0_1 is -1\.0 N, allowed are 0 to 1000'):
        arm.forward([0.0, -1.0, 0.0, 0.0, 0.0, 0.0])
    with pytest.raises(ModelError, match='c0_0 is nan'):
        arm.forward([math.nan, 0.0, 0.0, 0.0, 0.0, 0.0])
    with pytest.raises(ValueError, match=r'shape \(2,\), expected \(6,\)'):
        arm.forward([1.0, 2.0])
    with pytest.raises(ValueError, match='not finite'):
        arm.forward(np.zeros(6), (math.inf, 0.0, 0.0))
    with pytest.raises(ModelError, match=r'force \[1e\+200, 0, 0\] N, tip moment \[0, '):
        arm.forward(np.zeros(6), np.array([1e200, 0.0, 0.0]))
    with pytest.raises(ValueError, match='expected 3 numbers each'):
        arm.forward(np.zeros(6), (1.0,))
    with pytest.raises(ValueError, match='must be 0 as length_m is 0'):
        RigidConnector(mass_kg=0.1, centre_of_mass_m=0.01)
    with pytest.raises(ValueError, match='not positive definite'):
        MatrixProfile(stiffness_matrix=np.diag([1.0, 1, 1, 1, 1, -1]).tolist())
    with pytest.raises(ValueError, match='neighbouring'):
        CosseratConfig(
            segments=two_segment_arm(segments=3).segments,
            cables=[
                RodCableConfig(
                    name='jumps',
                    routes=[
                        CableRoute(segment=s, radius_m=0.01, angle_deg=0.0) for s in ('s0', 's2')
                    ],
                )
            ],
        )
