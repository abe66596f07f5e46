"""Cosserat rod against closed forms and independent solvers: beams, columns, cables."""

import math

import numpy as np
import pytest
from scipy.integrate import solve_bvp
from scipy.optimize import brentq
from scipy.special import ellipe, ellipeinc, ellipk, ellipkinc

from softarm_ros.models.cosserat.buckling import critical_load_factor
from softarm_ros.models.cosserat.config import (
    CableRoute,
    CosseratConfig,
    RectangularProfile,
    RigidConnector,
    RodCableConfig,
    RodSegmentConfig,
    RoundProfile,
)
from softarm_ros.models.cosserat.rod import CosseratRod

G = 9.81
STRIP = dict(young_modulus_Pa=210e9, poisson_ratio=0.3, width_m=0.023, height_m=0.0003)
EI = 210e9 * 0.023 * 0.0003**3 / 12.0
SOFT = RoundProfile(young_modulus_Pa=1e6, poisson_ratio=0.5, density_kg_m3=1000.0, radius_m=0.01)
SOFT_EI = 1e6 * math.pi * 0.01**4 / 4.0
SOFT_W = 1000.0 * math.pi * 0.01**2 * G


def rod(profile, length, cables=(), steps=10, extensible=False, **segment):
    return CosseratRod(
        CosseratConfig(
            segments=[RodSegmentConfig(name='a', length_m=length, profile=profile, **segment)],
            cables=cables,
            steps=steps,
            extensible=extensible,
        )
    )


def cable(name, angle_deg, radius_m=0.008, **route):
    return RodCableConfig(
        name=name,
        routes=[CableRoute(segment='a', radius_m=radius_m, angle_deg=angle_deg, **route)],
    )


def elastica(force, length, stiffness):
    """Tip (along, drop, slope) of a cantilever under a dead transverse tip force."""
    alpha = length * math.sqrt(force / stiffness)

    def modulus(slope):
        m = 0.5 * (1.0 + math.sin(slope))
        return m, math.asin(1.0 / math.sqrt(2.0 * m))

    def miss(slope):
        m, phi = modulus(slope)
        return ellipk(m) - ellipkinc(phi, m) - alpha

    slope = brentq(miss, 1e-9, math.pi / 2 - 1e-9, xtol=1e-15)
    m, phi = modulus(slope)
    drop = length * (1.0 - 2.0 / alpha * (ellipe(m) - ellipeinc(phi, m)))
    return math.sqrt(2.0 * stiffness * math.sin(slope) / force), drop, slope


# mass g, x_tip, drop, slope deg, drop with strip weight, drop at the ends of a 12.5 mm connector
# (mm); the fishbone arm's table.
PUBLISHED = [
    (0, 49.996, 0.581, 1.00, 0.620, 0.837, 1.177),
    (50, 49.928, 2.456, 4.22, 2.494, 3.404, 4.792),
    (150, 49.547, 6.127, 10.56, 6.164, 8.306, 11.677),
    (250, 48.879, 9.604, 16.63, 9.638, 12.681, 17.780),
    (350, 47.985, 12.809, 22.32, 12.841, 16.424, 22.949),
    (450, 46.933, 15.705, 27.56, 15.734, 19.554, 27.221),
    (550, 45.786, 18.286, 32.35, 18.312, 22.155, 30.722),
]


@pytest.mark.parametrize('row', PUBLISHED)
def test_cantilever_matches_the_elastica_and_the_fishbone_table(row):
    mass, x_mm, drop_mm, slope_deg, heavy_mm, flex_mm, connector_mm = row
    force = (0.001 * mass + 0.01546) * G
    state = rod(RectangularProfile(**STRIP), 0.05).solve([], (0.0, -force, 0.0))
    along, drop, slope = elastica(force, 0.05, EI)
    assert state.tip[2, 3] == pytest.approx(along, rel=1e-9)
    assert -state.tip[1, 3] == pytest.approx(drop, rel=1e-8)
    assert state.tip[2, 2] == pytest.approx(math.cos(slope), rel=1e-9)
    assert 1e3 * drop == pytest.approx(drop_mm, abs=1e-3)
    assert 1e3 * along == pytest.approx(x_mm, abs=1e-3)
    assert math.degrees(slope) == pytest.approx(slope_deg, abs=6e-3)
    full = rod(RectangularProfile(**STRIP), 0.05, extensible=True).solve([], (0, -force, 0))
    assert -1e3 * full.tip[1, 3] == pytest.approx(drop_mm, abs=1e-3)
    heavy = rod(RectangularProfile(**STRIP, density_kg_m3=7850.0), 0.05)
    state = heavy.solve([], (0.0, -force, 0.0), gravity=(0.0, -G, 0.0))
    assert -1e3 * state.tip[1, 3] == pytest.approx(heavy_mm, abs=1e-3)
    tool = rod(
        RectangularProfile(**STRIP, density_kg_m3=7850.0),
        0.05,
        connector=RigidConnector(length_m=0.0125),
    )
    state = tool.solve([], (0.0, -force, 0.0), gravity=(0.0, -G, 0.0))
    assert -1e3 * state.points[-1, 1] == pytest.approx(flex_mm, abs=1e-3)
    assert -1e3 * state.tip[1, 3] == pytest.approx(connector_mm, abs=1e-3)


@pytest.mark.parametrize('extensible', [True, False])
@pytest.mark.parametrize('turns', [0.1, 0.5, 1.0])
def test_pure_end_moment_bends_the_rod_into_a_circle(turns, extensible):
    angle = 2.0 * math.pi * turns
    state = rod(SOFT, 0.2, steps=80, extensible=extensible).solve(
        [], tip_moment=(angle * SOFT_EI / 0.2, 0.0, 0.0)
    )
    radius = 0.2 / angle
    expected = [0.0, -radius * (1.0 - math.cos(angle)), radius * math.sin(angle)]
    assert state.tip[:3, 3] == pytest.approx(expected, abs=2e-11)
    assert state.strains[:, 0] == pytest.approx(np.full(81, angle / 0.2), rel=1e-10)


def test_end_torque_twists_the_rod_as_in_closed_form():
    torque = 1e-3
    state = rod(SOFT, 0.2, extensible=True).solve([], tip_moment=(0.0, 0.0, torque))
    twist = 0.2 * torque / (2.0 * SOFT_EI / 3.0)
    assert math.atan2(state.tip[1, 0], state.tip[0, 0]) == pytest.approx(twist, rel=1e-9)


@pytest.mark.parametrize('radius_mm, tension, degrees', [
    (8, 3, 6.33), (10, 3, 7.91), (12, 3, 9.49), (8, 10, 21.09), (10, 9, 23.72), (12, 10, 31.63),
])  # fmt: skip
def test_straight_cable_bends_by_tension_times_radius(radius_mm, tension, degrees):
    radius = 1e-3 * radius_mm
    for extensible in (True, False):
        state = rod(
            RectangularProfile(**STRIP), 0.05, [cable('c', 90.0, radius)], extensible=extensible
        ).solve([tension])
        assert np.abs(state.strains[:, 0]) == pytest.approx(
            np.full(11, tension * radius / EI), rel=1e-10
        )
        assert state.contractions[0] == pytest.approx(
            radius * 0.05 * tension * radius / EI + extensible * 0.05 * tension / (210e9 * 6.9e-6),
            rel=1e-9,
        )
    assert math.degrees(0.05 * tension * radius / EI) == pytest.approx(degrees, abs=6e-3)


def test_heavy_cantilever_matches_a_collocation_solution():
    length = 0.3
    heavy = rod(SOFT, length, steps=20).solve([], (0.0, -0.05, 0.0), gravity=(0.0, -G, 0.0))

    def beam(s, y):
        # Angle below the horizontal, curvature, along, drop.
        shear = 0.05 + SOFT_W * (length - s)
        return np.vstack([y[1], -shear * np.cos(y[0]) / SOFT_EI, np.cos(y[0]), np.sin(y[0])])

    s = np.linspace(0.0, length, 101)
    plane = solve_bvp(
        beam,
        lambda a, b: np.array([a[0], b[1], a[2], a[3]]),
        s,
        np.vstack([s, 0 * s + 1.0, s, 0.2 * s]),
        tol=1e-10,
        max_nodes=20000,
    )
    assert plane.status == 0
    assert heavy.tip[2, 3] == pytest.approx(plane.y[2, -1], abs=1e-8)
    assert -heavy.tip[1, 3] == pytest.approx(plane.y[3, -1], abs=1e-8)
    assert plane.y[3, -1] > 0.15


def test_hanging_rod_stretches_under_its_weight():
    hanging = rod(SOFT, 0.3, extensible=True).solve([], gravity=(0.0, 0.0, G))
    area = math.pi * 0.01**2
    assert hanging.tip[2, 3] == pytest.approx(
        0.3 + SOFT_W * 0.3**2 / (2.0 * 1e6 * area), rel=1e-12
    )


def test_columns_buckle_at_greenhills_and_eulers_loads():
    column = rod(SOFT, 0.2, steps=10)
    # Heavy column, Greenhill: w L^3 / EI = 9/4 j^2, j the first zero of J_(-1/3).
    factor = critical_load_factor(column, [], gravity=(0.0, 0.0, -G), max_factor=10.0)
    assert factor * SOFT_W * 0.2**3 / SOFT_EI == pytest.approx(7.837347, rel=1e-6)
    # Euler.
    factor = critical_load_factor(column, [], tip_force=(0.0, 0.0, -1.0), gravity=(0, 0, 0))
    assert factor == pytest.approx(math.pi**2 * SOFT_EI / (4.0 * 0.2**2), rel=1e-6)
    # A central cable compresses its rod but never buckles it, because the cable bends along.
    central = rod(SOFT, 0.2, [cable('c', 0.0, 0.0)], steps=10)
    assert critical_load_factor(central, [1.0], max_factor=20.0) == math.inf


@pytest.mark.parametrize('tip_deg', [20.0, 60.0, 120.0])
def test_buckled_column_has_the_shape_of_the_elastica(tip_deg):
    """Timoshenko & Gere: P = K(k)^2 EI / L^2, height 2 E/K - 1, deflection 2 k / K (over L)."""
    k = math.sin(math.radians(0.5 * tip_deg))
    big_k, big_e = ellipk(k * k), ellipe(k * k)
    column = rod(SOFT, 0.2, steps=20)
    state = column.solve([], (0.0, 0.0, -(big_k**2) * SOFT_EI / 0.04), gravity=(0, 0, 0))
    assert state.stable
    assert 'buckled' in state.message
    assert state.tip[2, 3] == pytest.approx(0.2 * (2.0 * big_e / big_k - 1.0), rel=1e-7)
    assert np.hypot(*state.tip[:2, 3]) == pytest.approx(0.2 * 2.0 * k / big_k, rel=1e-7)


def test_twist_by_three_helical_cables_matches_the_moment_balance():
    tension, radius, turns, length = 4.0, 0.008, 1.5, 0.2
    twisted = rod(
        SOFT,
        length,
        [cable(f'c{i}', 120.0 * i, radius, turns=turns) for i in range(3)],
        steps=40,
        extensible=True,
    ).solve([tension] * 3)
    torsion, axial = 2.0 * SOFT_EI / 3.0, 1e6 * math.pi * 0.01**2
    wound = 2.0 * math.pi * turns / length

    def stretch(twist, v):
        return math.hypot(v, radius * (wound + twist))

    def v_of(twist):
        return brentq(
            lambda v: axial * (v - 1.0) + 3.0 * tension * v / stretch(twist, v), 0.5, 1.0
        )

    twist = brentq(
        lambda k: torsion * k + 3.0 * tension * radius**2 * (wound + k) / stretch(k, v_of(k)),
        -30.0,
        0.0,
        xtol=1e-14,
    )
    assert twisted.strains[:, 2] == pytest.approx(np.full(41, twist), rel=1e-8)
    assert twisted.tip[:3, 3] == pytest.approx([0.0, 0.0, length * v_of(twist)], abs=1e-9)
    assert abs(twist * length) > 0.1


def test_profiles_match_closed_forms_of_torsion_and_bending_stiffness():
    strip = RectangularProfile(**STRIP)
    # b h^3 / 3 (1 - 0.63 h / b), as in the fishbone arm's table.
    assert strip.torsion_constant_m4 == pytest.approx(0.2053e-12, rel=2e-4)
    square = RectangularProfile(young_modulus_Pa=1e6, width_m=0.02, height_m=0.02)
    assert square.torsion_constant_m4 == pytest.approx(0.1405770 * 0.02**4, rel=1e-6)
    tube = RoundProfile(young_modulus_Pa=1e6, radius_m=0.01, inner_radius_m=0.008)
    assert tube.stiffness(0.0)[0, 0] == pytest.approx(1e6 * math.pi / 4 * (1e-8 - 0.8**4 * 1e-8))


def test_fishbone_module_matches_the_table():
    """Two crossed strips with one cable each; the cable of the second runs in a sheath."""
    strip = dict(young_modulus_Pa=210e9, poisson_ratio=0.3)
    # The table puts the weight of the connectors at the ends of the strips. With the weight
    # halfway along the connectors the tips are up to 0.2 mm lower.
    connector = RigidConnector(length_m=0.0125, mass_kg=0.01546, centre_of_mass_m=0.0)
    # z is the table's x, x its z, y its y; unit 1 bends towards x, unit 2 towards y.
    arm = CosseratRod(
        CosseratConfig(
            segments=[
                RodSegmentConfig(
                    name='a',
                    length_m=0.05,
                    profile=RectangularProfile(width_m=0.0003, height_m=0.023, **strip),
                    connector=connector,
                ),
                RodSegmentConfig(
                    name='b',
                    length_m=0.05,
                    profile=RectangularProfile(width_m=0.023, height_m=0.0003, **strip),
                    connector=connector,
                ),
            ],
            cables=[
                RodCableConfig(
                    name='one', routes=[CableRoute(segment='a', radius_m=0.01, angle_deg=0.0)]
                ),
                RodCableConfig(
                    name='two', routes=[CableRoute(segment='b', radius_m=0.01, angle_deg=90.0)]
                ),
            ],
            gravity_m_s2=(0.0, -G, 0.0),
        )
    )
    table = {
        (5, 3): ((61.729, -0.025, 8.584), (122.380, 4.298, 22.824)),
        (5, 6): ((61.729, -0.025, 8.584), (121.646, 9.420, 22.677)),
        (5, 9): ((61.729, -0.025, 8.584), (120.383, 14.428, 22.405)),
        (10, 3): ((59.449, -0.093, 16.864), (115.250, 4.096, 44.589)),
        (10, 6): ((59.449, -0.093, 16.864), (114.570, 9.220, 44.302)),
        (10, 9): ((59.449, -0.093, 16.864), (113.403, 14.232, 43.770)),
    }
    worst = 0.0
    for tensions, points in table.items():
        state = arm.solve(np.array(tensions, dtype=float))
        for tip, point in zip(state.segment_tips, points):
            ours = 1e3 * tip[:3, 3][[2, 1, 0]]
            print(tensions, ours.round(3), point, (ours - point).round(4))
            worst = max(worst, float(np.abs(ours - point).max()))
    assert worst < 0.001
