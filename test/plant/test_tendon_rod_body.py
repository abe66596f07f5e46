"""The moving rod against another formulation: segments of constant strain, `models/dynamics`."""

import math

import numpy as np
import pytest

from softarm_ros.models.dynamics.arm import ArmDynamics
from softarm_ros.models.dynamics.config import (
    ConnectorConfig,
    DynamicSectionConfig,
    RigidBodyConfig,
)
from softarm_ros.models.dynamics.simulation import ArmIntegrator
from softarm_ros.models.dynamics.tangents import equilibrium
from softarm_ros.plant.step_damping import split_damping
from softarm_ros.plant.step_kernels import OK
from softarm_ros.plant.tendon_rod.body import cable_paths, rod_of
from softarm_ros.plant.tendon_rod.config import PlantTendon
from softarm_ros.plant.tendon_rod.kernels import load_rod, move_rod
from softarm_ros.plant.tendon_rod.rod import RodBody
from softarm_ros.rigs.loader import load_rig

RIG = load_rig('fishbone_arm')
DOWN = (0.0, -9.81, 0.0)
PULL = np.array([6.0, 1.0, 8.0, 1.0, 1.0, 5.0, 4.0, 1.0])
LOAD = 0.02
PERIOD, SECONDS, RELEASE = 0.05, 1.0, 0.3


def config_of(pieces):
    return RIG.plant.model_copy(update={'pieces_per_segment': pieces})


def tendons():
    names = RIG.section_names
    return [
        PlantTendon(a.name, a.routes, tuple(names.index(r.segment) for r in a.routes))
        for a in RIG.actuators
    ]


def tension(t):
    """Return tensions (8,) [N] at t [s]: from PULL to 1 N, smooth at both ends."""
    share = math.cos(0.5 * math.pi * min(t / RELEASE, 1.0)) ** 2
    return 1.0 + (PULL - 1.0) * share


def rows(matrix):
    return tuple(tuple(map(float, row)) for row in matrix)


def known_section(config, segment):
    """Return the section of a segment, order eps, kx, ky, kz; the core's stretch is undamped."""
    law = segment.profile.stiffness(0.5)[np.ix_([5, 0, 1, 2], [5, 0, 1, 2])]
    bending = segment.sleeve_bending_stiffness_N_m2
    law += np.diag([0.0, bending, bending, segment.sleeve_torsion_stiffness_N_m2])
    damping = segment.damping_time_s * law
    damping[0, :] = damping[:, 0] = 0.0
    mass = segment.sleeve_mass_kg / segment.length_m + segment.profile.mass_per_length(0.5)
    slice_ = 0.25 * mass * config.outer_radius_m**2
    c, radius = segment.connector, config.connector_radius_m
    across = c.mass_kg * (3.0 * radius**2 + c.length_m**2) / 12.0
    return DynamicSectionConfig(
        length_m=segment.length_m,
        segments=config.pieces_per_segment,
        mass_per_length_kg_m=mass,
        slice_inertia_kg_m=(slice_, slice_, 2.0 * slice_),
        stiffness=rows(law),
        damping=rows(damping),
        rest_strain=(0.0, *segment.rest_curvature_1_m),
        body=RigidBodyConfig(
            mass_kg=c.mass_kg,
            centre_m=(0.0, 0.0, 0.5 * c.length_m),
            inertia_kg_m2=(across, across, 0.5 * c.mass_kg * radius**2),
        ),
        connector=ConnectorConfig(length_m=c.length_m),
    )


class KnownRod:
    """The rod in segments of constant strain, without friction."""

    def __init__(self, pieces):
        config = config_of(pieces)
        ball = 0.4 * LOAD * config.payload_radius_m**2
        payload = RigidBodyConfig(mass_kg=LOAD, inertia_kg_m2=(ball, ball, ball))
        self.arm = ArmDynamics([known_section(config, s) for s in config.segments], payload)
        self.place, self.runs = cable_paths(config, tendons())

    def under(self, pull):
        return self.arm.loads(
            DOWN, cable_offset_m=self.place, cable_tension_N=self.runs * np.asarray(pull)
        )

    def tip(self, strains):
        return self.arm.node_poses(strains)[-1][:3, 3]

    def rest(self, pull):
        strains = self.arm.straight
        for share in (0.25, 0.5, 0.75, 1.0):
            found = equilibrium(self.arm, self.under(1.0 + share * (pull - 1.0)), guess=strains)
            strains = found.strains
        assert found.converged and found.stable
        return strains

    def way(self, h):
        run = ArmIntegrator(self.arm, tolerance_m=1e-7)
        state, tips = run.start(self.under(PULL), self.rest(PULL)), []
        for k in range(round(SECONDS / h)):
            moved = run.advance(state, self.under(tension((k + 0.5) * h)), h)
            assert moved.converged
            state = moved.state
            if (k + 1) % round(PERIOD / h) == 0:
                tips.append(self.tip(state.strains))
        return np.array(tips)


class JointRod:
    """The rod of the plant under tensions without friction."""

    def __init__(self, pieces):
        self.body = RodBody(config_of(pieces), tendons(), DOWN, LOAD)

    def tip(self):
        return self.body.section_tips()[-1, :3, 3]

    def rest(self, pull):
        """Bring the rod to rest with strong damping, in small steps."""
        rod, h = self.body.rod, 0.002
        quiet = rod.body._replace(damping_time=np.full_like(rod.body.damping_time, 0.3))
        rod = rod._replace(body=quiet, solver=quiet)
        for k in range(8000):
            load_rod(rod, h)
            rod.tension[:] = rod.runs * (1.0 + (pull - 1.0) * min(k / 500.0, 1.0))
            assert move_rod(rod, h)[0] == OK
        assert np.abs(rod.state.velocity).max() < 1e-6
        rod.state.velocity[:] = 0.0

    def way(self, h):
        self.rest(PULL)
        rod, tips = self.body.rod, []
        times = rod.body.damping_time[:, 0].copy()
        split_damping(times, h, rod.body.damping_time[:, 0], rod.solver.damping_time[:, 0])
        for k in range(round(SECONDS / h)):
            load_rod(rod, h)
            rod.tension[:] = rod.runs * tension(k * h)
            assert move_rod(rod, h)[0] == OK
            if (k + 1) % round(PERIOD / h) == 0:
                tips.append(self.tip().copy())
        return np.array(tips)


def test_rod_at_rest_converges_to_segments_of_constant_strain():
    known = KnownRod(20)
    tip = known.tip(known.rest(PULL))
    gaps = []
    for pieces in (5, 10, 20):
        rod = JointRod(pieces)
        rod.rest(PULL)
        gaps.append(float(np.linalg.norm(rod.tip() - tip)))
    assert gaps[0] < 1.5e-4  # five pieces, as in the rig
    assert gaps[0] / gaps[1] > 3.3 and gaps[1] / gaps[2] > 3.3


def test_swing_of_the_rod_matches_segments_of_constant_strain():
    """The path of the tip shows frequency and decay; its error is of order two in the step."""
    known = KnownRod(8).way(0.005)
    ways = {h: JointRod(8).way(h) for h in (0.005, 0.0025, 0.00125)}
    gaps = [float(np.linalg.norm(way - known, axis=1).max()) for way in ways.values()]
    steps = [float(np.linalg.norm(ways[h] - ways[0.5 * h], axis=1).max()) for h in (0.005, 0.0025)]
    moved = float(np.linalg.norm(known - known[0], axis=1).max())
    assert moved > 0.03
    assert gaps[1] < 0.01 * moved
    assert steps[0] / steps[1] > 3.0


def test_connector_turned_about_the_axis_turns_the_following_segments():
    """The same arm, with its second unit described in axes turned by the connector."""
    plain = RIG.plant.segments[0]
    turned = plain.model_copy(
        update={'connector': plain.connector.model_copy(
            update={'rotation_vector_deg': (0.0, 0.0, 90.0)})}
    )  # fmt: skip
    config = RIG.plant.model_copy(update={'segments': (turned, plain)})
    crossed = RIG.plant.model_copy(update={'segments': (plain, RIG.plant.segments[1])})
    names = RIG.section_names
    ours = [PlantTendon(a.name, a.routes, (names.index(a.routes[0].segment),))
            for a in RIG.actuators[:4]]  # fmt: skip
    routes = RIG.actuators[0].routes
    same = [*ours[:2], PlantTendon('up', routes, (1,))]
    one = rod_of(config, same[2:], np.zeros(3), 0.0)
    other = rod_of(crossed, ours[2:3], np.zeros(3), 0.0)
    np.testing.assert_allclose(one.law[5:], other.law[5:], atol=1e-9 * other.law.max())
    np.testing.assert_allclose(one.place[5:], other.place[5:], atol=1e-12)
    tips = RodBody(config, same, (0.0, 0.0, 0.0), 0.0).section_tips()
    np.testing.assert_allclose(tips[0, :3, 0], [0.0, 1.0, 0.0], atol=1e-12)


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        ({'connector': {'rotation_vector_deg': [5.0, 0.0, 0.0]}}, r'rotation_vector_deg = \[5'),
        (
            {'profile': {'kind': 'matrix', 'stiffness_matrix': [
                [1.0 if i == j else 0.1 * ({i, j} == {0, 5}) for j in range(6)] for i in range(6)
            ]}},
            'profile couples stretch',
        ),
    ],
)  # fmt: skip
def test_tilted_connectors_and_profiles_that_couple_stretch_are_refused(change, message):
    segment = RIG.plant.segments[0]
    with pytest.raises(ValueError, match=message):
        type(segment).model_validate(segment.model_dump() | change)
