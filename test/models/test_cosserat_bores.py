"""Bores in a Cosserat rod: chambers whose pressure pushes along the normals of the sections."""

import numpy as np
import pytest
from cosserat_cases import winding_arm
from pydantic import ValidationError

from softarm_ros.geometry.poses import displacement
from softarm_ros.models.arm_model import ModelError
from softarm_ros.models.cosserat.arm import CosseratArm
from softarm_ros.models.cosserat.buckling import critical_load_factor
from softarm_ros.models.cosserat.config import (
    CableRoute,
    CosseratConfig,
    MatrixProfile,
    RodCableConfig,
    RodSegmentConfig,
    RoundProfile,
)
from softarm_ros.models.cosserat.rod import CosseratRod

MODULUS, POISSON, RADIUS, LENGTH = 1e6, 0.5, 0.01, 0.2
AREA, INERTIA = np.pi * RADIUS**2, np.pi * RADIUS**4 / 4.0


def bore(name, radius, angle_deg, segment='only', most=50.0):
    route = CableRoute(segment=segment, radius_m=radius, angle_deg=angle_deg)
    return RodCableConfig(name=name, routes=(route,), max_tension_N=most, bore=True)


def straight_rod(bores, steps=8, **changes):
    profile = RoundProfile(
        radius_m=RADIUS, young_modulus_Pa=MODULUS, poisson_ratio=POISSON, **changes
    )
    segment = RodSegmentConfig(name='only', length_m=LENGTH, profile=profile)
    return CosseratConfig(segments=(segment,), cables=bores, steps=steps)


@pytest.mark.parametrize('push', [2.0, 8.0, -3.0])
def test_pressure_in_one_bore_stretches_and_bends_the_rod_as_in_closed_form(push):
    r = 0.006
    state = CosseratRod(straight_rod((bore('b', r, 30.0),))).solve([-push])
    stretch = 1.0 + push / (MODULUS * AREA)
    curvature = push * r / (MODULUS * INERTIA)
    away = stretch * (1.0 - np.cos(curvature * LENGTH)) / curvature
    along = stretch * np.sin(curvature * LENGTH) / curvature
    c, s = np.cos(np.radians(30.0)), np.sin(np.radians(30.0))
    # A filled chamber bends the arm away from itself.
    np.testing.assert_allclose(state.tip[:3, 3], (-c * away, -s * away, along), atol=1e-9)
    gained = LENGTH * (stretch - 1.0 + curvature * r)
    np.testing.assert_allclose(-state.contractions, [gained], atol=1e-12)


@pytest.fixture(scope='module')
def mixed():
    """Return a tapered rod with winding and short cables, and bores in both segments."""
    arm = winding_arm(24)
    more = (bore('low', 0.007, 40.0, 'a'), bore('high', 0.004, 200.0, 'b'))
    return CosseratRod(arm.model_copy(update={'cables': (*arm.cables, *more)}))


TENSIONS = np.array([2.0, 3.0, 1.5, -4.0, -2.0])
WRENCH = ((0.05, -0.1, 0.02), (1e-3, 2e-3, -1e-3))


def test_derivatives_with_bores_match_finite_differences(mixed):
    mixed.solve(TENSIONS, *WRENCH)
    found = mixed.derivatives()
    assert found.stable
    step = 1e-4
    for i in range(5):
        dt = step * (np.arange(5) == i)
        ahead = mixed.solve(TENSIONS + dt, *WRENCH)
        behind = mixed.solve(TENSIONS - dt, *WRENCH)
        twist = displacement(behind.tip, ahead.tip) / (2.0 * step)
        scale = np.abs(found.tip_by_tension[:, i]).max()
        np.testing.assert_allclose(found.tip_by_tension[:, i], twist, atol=1e-5 * scale)
        change = (ahead.contractions - behind.contractions) / (2.0 * step)
        scale = np.abs(found.contraction_by_tension).max()
        np.testing.assert_allclose(found.contraction_by_tension[:, i], change, atol=1e-5 * scale)


def test_bore_pressure_and_tip_load_are_reciprocal(mixed):
    """Maxwell-Betti: a load lengthens a chamber by as much as its pressure moves the tip."""
    mixed.solve(TENSIONS, WRENCH[0])  # a dead moment is not conservative
    found = mixed.derivatives()
    np.testing.assert_allclose(
        found.contraction_by_tension, found.contraction_by_tension.T, atol=1e-9
    )
    scale = np.abs(found.tip_by_tension).max()
    np.testing.assert_allclose(
        found.contraction_by_wrench.T, found.tip_by_tension, atol=1e-6 * scale
    )


def test_work_of_the_pressure_equals_the_elastic_energy():
    """Without weight U(1) = sum T (dl(1) - int_0^1 dl dx) along a load path."""
    rod = CosseratRod(straight_rod((bore('b', 0.006, 0.0), bore('c', 0.006, 120.0)), 12))
    push = np.array([9.0, 4.0])

    def gained(share):
        return -rod.solve(-share * push).contractions

    nodes, weights = np.polynomial.legendre.leggauss(8)
    path = sum(w * push @ gained(0.5 * (x + 1.0)) for x, w in zip(nodes, weights)) / 2.0
    end = rod.solve(-push)
    assert end.elastic_energy_J == pytest.approx(push @ gained(1.0) - path, rel=1e-9)
    assert end.elastic_energy_J > 1e-3


@pytest.mark.parametrize('push', [0.0, 10.0, 30.0])
def test_column_buckles_at_its_euler_load_at_any_bore_pressure(push):
    """The walls hold the pressure of the bores: it neither buckles nor straightens a column."""
    bores = tuple(bore(f'b{k}', 0.006, 120.0 * k, most=1e3) for k in range(3))
    # Stiff against stretch and shear, which would move the load by E I / (E A L^2).
    stiffness = np.diag([1e-2, 1e-2, 1e-2, 1e5, 1e5, 3e5]).tolist()
    segment = RodSegmentConfig(
        name='only', length_m=LENGTH, profile=MatrixProfile(stiffness_matrix=stiffness)
    )
    rod = CosseratRod(CosseratConfig(segments=(segment,), cables=bores, steps=8))
    euler = np.pi**2 * 1e-2 / (4.0 * LENGTH**2)
    factor = critical_load_factor(rod, np.full(3, -push), (0.0, 0.0, -euler), max_factor=3.0)
    assert factor == pytest.approx(1.0, rel=2e-3)
    assert rod.solve(np.full(3, -push)).stable


def test_invalid_bores_and_pressures_are_refused():
    with pytest.raises(ModelError, match=r'tension of b is -60\.0 N, allowed are -50 to 50'):
        CosseratRod(straight_rod((bore('b', 0.006, 0.0),))).solve([-60.0])
    route = CableRoute(segment='only', radius_m=0.006, angle_deg=0.0, turns=0.5)
    with pytest.raises(ValidationError, match="bore 'b': its place in the section must be"):
        RodCableConfig(name='b', routes=(route,), bore=True)
    with pytest.raises(ModelError, match='a bore is no cable'):
        CosseratArm(straight_rod((bore('b', 0.006, 0.0),))).forward_lengths([0.0])
