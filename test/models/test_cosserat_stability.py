"""Cosserat rod: crushing loads, long heavy arms, buckling, random rods."""

import math

import numpy as np
import pytest
from cosserat_cases import FORCE, MOMENT, TENSIONS
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from scipy.integrate import solve_bvp

from softarm_reproduction.rod_reference import two_segment_arm
from softarm_ros.models.arm_model import ModelError
from softarm_ros.models.cosserat.arm import CosseratArm
from softarm_ros.models.cosserat.config import (
    CosseratConfig,
    RodSegmentConfig,
)
from softarm_ros.models.cosserat.rod import CosseratRod


def test_crushing_tensions_are_refused_and_the_next_solve_converges():
    arm = CosseratArm(two_segment_arm())
    with pytest.raises(ModelError, match=r'crush|carries|convergence|stable'):
        arm.forward([900.0] * 6)
    with pytest.raises(ModelError, match='no solution'):
        arm.rod.derivatives()
    state = arm.rod.solve(TENSIONS, FORCE, MOMENT)
    assert state.converged  # a failure does not affect the next solve


@pytest.mark.parametrize('length, force', [(0.8, 2.0), (1.2, 0.5)])
def test_long_heavy_arms_match_a_collocation_solution(length, force):
    """The arms hang and are pulled aside: w L^3 / EI = 200 and 680, solved in a plane."""
    profile = two_segment_arm().segments[0].profile
    config = CosseratConfig(
        segments=[RodSegmentConfig(name='a', length_m=length, profile=profile)],
        gravity_m_s2=(0.0, 0.0, 9.81),
        extensible=False,
        steps=40,
    )
    state = CosseratRod(config).solve([], (force, 0.0, 0.0))
    assert state.stable, state.message
    weight = profile.mass_per_length(0.0) * 9.81
    bending = profile.stiffness(0.0)[0, 0]

    def beam(s, y):
        pull = weight * (length - s)
        turn = (pull * np.sin(y[0]) - force * np.cos(y[0])) / bending
        return np.vstack([y[1], turn, np.sin(y[0]), np.cos(y[0])])

    s = np.linspace(0.0, length, 400)
    guess = np.vstack([0.8 * s / length, 0.8 / length + 0 * s, 0.4 * s, 0.9 * s])
    plane = solve_bvp(
        beam, lambda a, b: np.array([a[0], b[1], a[2], a[3]]), s, guess, tol=1e-9, max_nodes=50000
    )
    assert plane.status == 0
    assert state.tip[[0, 2], 3] == pytest.approx(plane.y[2:, -1], abs=2e-6)


@pytest.mark.parametrize('upwards', [-9.81, 9.81])
def test_loads_beyond_buckling_lead_to_stable_shapes(upwards):
    """Standing soft arm, tensions to 10 N, 0.5 N, 0.02 N m: limit loads and several branches."""
    config = two_segment_arm(5).model_copy(update={'gravity_m_s2': (0.0, 0.0, -upwards)})
    rod = CosseratRod(config)
    rng = np.random.default_rng(5)
    stable = 0
    for _ in range(40):
        state = rod.solve(
            rng.uniform(0, 10, 6), rng.uniform(-0.5, 0.5, 3), rng.uniform(-0.02, 0.02, 3)
        )
        stable += state.stable
        assert state.stable or state.message
    assert stable >= 39


@settings(deadline=None, max_examples=25, derandomize=True)
@given(
    st.integers(1, 3),
    st.lists(st.floats(0.0, 4.0), min_size=9, max_size=9),
    st.lists(st.floats(-0.1, 0.1), min_size=3, max_size=3),
    st.floats(-1.5, 1.5),
    st.booleans(),
)
def test_random_rods_balance_their_loads_or_report_failure(
    segments, tensions, force, turns, extensible
):
    """For converged solutions, the base wrench and the local material law must balance."""
    config = two_segment_arm(6, extensible, segments, 2)
    cables = [
        cable.model_copy(
            update={'routes': tuple(r.model_copy(update={'turns': turns}) for r in cable.routes)}
        )
        for cable in config.cables
    ]
    rod = CosseratRod(config.model_copy(update={'cables': tuple(cables)}))
    pulls = np.array(tensions[: 2 * segments])
    state = rod.solve(pulls, force)
    if not state.converged:
        assert state.message
        assert np.isnan(state.tip).all()
        reject()
    mass = segments * 1000.0 * math.pi * 0.01**2 * 0.2
    assert state.forces[0] == pytest.approx(np.add(force, [0, 0, 9.81 * mass]), abs=1e-9)
    assert state.rotations[0] == pytest.approx(np.eye(3), abs=1e-9)
    # The cut wrench at the base, from the strain there: rod plus cables.
    u, v = state.strains[0, :3], state.strains[0, 3:]
    stiffness = config.segments[0].profile.stiffness(0.0)
    moment = stiffness[:3, :3] @ u
    for pull, cable in zip(pulls, cables):
        r, dr = np.split(cable.routes[0].offset(0.0, 0.2), 2)
        along = v + np.cross(u, r) + dr
        moment += pull * np.cross(r, along / np.linalg.norm(along))
    assert moment == pytest.approx(state.moments[0], abs=1e-6)
