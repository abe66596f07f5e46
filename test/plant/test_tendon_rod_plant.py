import math

import numpy as np
import pytest

from softarm_ros.models.cosserat.arm import CosseratArm
from softarm_ros.models.cosserat.config import (
    CableRoute,
    CosseratConfig,
    MatrixProfile,
    RodCableConfig,
    RodSegmentConfig,
)
from softarm_ros.plant.errors import PlantError
from softarm_ros.plant.tendon_rod.config import PlantTendon
from softarm_ros.plant.tendon_rod.kernels import load_rod, read_cell
from softarm_ros.plant.tendon_rod.plant import TendonRodPlant
from softarm_ros.rigs.loader import load_rig

RIG = load_rig('fishbone_arm')
DOWN = (0.0, -9.81, 0.0)
PULL = np.array([6.0, 1.0, 8.0, 1.0, 1.0, 5.0, 4.0, 1.0])


def update(block, **values):
    return block.model_copy(update=values)


def plant_config(**values):
    return update(RIG.plant, **values)


def winch(**values):
    return update(RIG.plant.winch, **values)


def exact(**values):
    return winch(
        load_cell_gain_sd=0.0, load_cell_zero_sd_N=0.0, load_cell_resolution_N=0.0, **values
    )


def tendons(count=8):
    names = RIG.section_names
    return [
        PlantTendon(a.name, a.routes, tuple(names.index(r.segment) for r in a.routes))
        for a in RIG.actuators[:count]
    ]


def build(config=None, seed=0, load=0.0, tension=None):
    pull = np.ones(8) if tension is None else tension
    return TendonRodPlant(config or RIG.plant, tendons(), DOWN, load, pull, seed)


def cosserat_twin(config, load=0.0):
    """Return the plant's statics in the other formulation: shooting of the continuous rod."""
    segments, cables = [], []
    for name, s in zip(RIG.section_names, config.segments):
        law = s.profile.stiffness(0.5)
        sleeve = s.sleeve_bending_stiffness_N_m2
        law += np.diag([sleeve, sleeve, s.sleeve_torsion_stiffness_N_m2, 0.0, 0.0, 0.0])
        mass = s.profile.mass_per_length(0.5) + s.sleeve_mass_kg / s.length_m
        profile = MatrixProfile(
            stiffness_matrix=tuple(map(tuple, law.tolist())), mass_per_length_kg_m=mass
        )
        segments.append(
            RodSegmentConfig(
                name=name,
                length_m=s.length_m,
                profile=profile,
                rest_curvature_1_m=s.rest_curvature_1_m,
                connector=s.connector,
            )
        )
    for tendon in tendons():
        side = tendon.routes[0].angle_deg
        routes = [
            CableRoute(segment=n, radius_m=config.passage_radius_m, angle_deg=side)
            for n in RIG.section_names[: tendon.segment_indices[0]]
        ]
        own = config.segments[tendon.segment_indices[0]]
        routes += [
            update(r, radius_m=own.cable_radius_m + own.cable_radius_error_m)
            for r in tendon.routes
        ]
        cables.append(RodCableConfig(name=tendon.name, routes=tuple(routes)))
    return CosseratArm(
        CosseratConfig(
            segments=segments, cables=cables, gravity_m_s2=DOWN, extensible=False, steps=8
        )
    )


@pytest.mark.parametrize(('load', 'force'), [(0.0, (0.0, 0.0, 0.0)), (0.03, (0.1, 0.05, -0.2))])
def test_statics_converge_to_the_continuous_rod(load, force):
    """Pieces of constant strain against shooting: the difference falls with their length."""
    misses = []
    for pieces in (4, 8, 16):
        config = plant_config(pieces_per_segment=pieces)
        at_rest = build(config, load=load).drives.static_equilibrium(PULL, force).section_tips
        total = np.array(force) + load * np.array(DOWN)
        rod = cosserat_twin(config).forward(PULL, total).section_tips
        misses.append(np.abs(at_rest - rod)[:, :3, 3].max())
    assert misses[0] < 2.5e-4
    assert misses[0] / misses[1] > 3.3 and misses[1] / misses[2] > 3.3


def test_unit_swings_at_the_frequency_of_a_beam_with_an_end_mass():
    """Undamped release of one strip: omega^2 = 3 E I / (m L^3), m large against the strip."""
    segment = update(
        RIG.plant.segments[0],
        rest_curvature_1_m=(0.0, 0.0, 0.0),
        sleeve_mass_kg=1e-5,
        damping_time_s=0.0,
        connector=update(RIG.plant.segments[0].connector, length_m=0.0, mass_kg=0.0),
    )
    config = plant_config(
        segments=(segment,), pieces_per_segment=8, payload_radius_m=1e-3, winch=exact(),
        friction_coefficient=0.0,
    )  # fmt: skip
    start, mass = np.array([1e-3, 0.0]), 0.5
    arm = TendonRodPlant(config, tendons(2), (0.0, 0.0, 0.0), mass, start, 0)
    stiffness = segment.profile.stiffness(0.5)[1, 1] + segment.sleeve_bending_stiffness_N_m2
    period = 2.0 * math.pi / math.sqrt(3.0 * stiffness / (mass * segment.length_m**3))
    arm.drives.winches.tension[:] = 0.0
    tips = []
    for _ in range(int(2.6 * period / 0.002)):
        arm.step(np.zeros(2), 0.002)
        tips.append(arm.true_section_tips()[-1, 0, 3])
    x = np.array(tips)
    falls = np.flatnonzero((x[:-1] > 0.0) & (x[1:] <= 0.0))
    crossings = falls + x[falls] / (x[falls] - x[falls + 1])
    assert len(crossings) >= 2
    assert np.diff(crossings)[0] * 0.002 == pytest.approx(period, rel=5e-3)


def test_motion_ends_at_the_static_equilibrium_and_loses_energy():
    config = plant_config(friction_coefficient=0.0, winch=exact(guide_loss=0.0))
    arm = build(config)
    rest = arm.drives.static_equilibrium(PULL).section_tips
    before = arm.true_section_tips()
    energies = []
    for _ in range(200):
        arm.step(PULL, 0.1)
        energies.append(arm.body.energy_J() - _work_of(arm))
    np.testing.assert_allclose(arm.true_section_tips(), rest, atol=2e-5)
    assert np.abs(arm.true_section_tips() - before).max() > 0.02
    # Under constant tension the energy less the cables' work only falls (after the winches' lag).
    assert np.all(np.diff(energies[10:]) < 1e-7)


def _work_of(arm):
    """Return the work (J) of constant tensions from the unstrained arm on."""
    rod = arm.body.rod
    load_rod(rod, 1e-3)
    phi = rod.scratch.logarithm
    x, y = rod.place[..., 0], rod.place[..., 1]
    length = (rod.body.segment_length + rod.state.extension)[:, None]
    along = length + phi[:, :1] * y - phi[:, 1:2] * x
    lengths = np.sum(rod.runs * np.hypot(along, phi[:, 2:3] * np.hypot(x, y)), axis=0)
    return float(-arm.drives.winches.tension @ lengths)


def test_winches_follow_with_their_lag_and_rate_limit():
    config = plant_config(winch=exact(max_tension_rate_N_s=1e3))
    arm = build(config)
    step = np.ones(8)
    step[0] = 1.1
    arm.step(step, 0.05)
    lag = 0.1 * (1.0 - math.exp(-1.0))
    assert arm.drives.true_tension()[0] - 1.0 == pytest.approx(lag, rel=1e-9)
    step[0] = 15.0
    rated = build(plant_config(winch=exact(max_tension_rate_N_s=4.0)))
    rated.step(step, 0.5)
    assert rated.drives.true_tension()[0] - 1.0 == pytest.approx(2.0, abs=1e-9)


def test_load_cells_have_a_resolution_and_errors_of_their_seed():
    assert read_cell(5.004, 0.0, 0.0, 0.01) == pytest.approx(5.0)
    assert read_cell(5.0, 0.02, 0.03, 0.0) == pytest.approx(5.13)
    one, two = build(seed=1), build(seed=2)
    for arm in (one, two):
        arm.step(PULL, 2.0)
    shown = one.actuator_state().position
    np.testing.assert_allclose(shown, np.round(shown, 2), atol=1e-12)
    np.testing.assert_allclose(shown, PULL, atol=0.02)  # the servo controls these readings
    assert 0.005 < np.abs(one.drives.true_tension() - PULL).max() < 0.4
    assert np.abs(one.drives.true_tension() - two.drives.true_tension()).max() > 0.01


def test_hold_keeps_the_present_tension():
    arm = build()
    arm.step(PULL, 0.1)
    before = arm.actuator_state().position
    assert np.all(np.abs(before - PULL)[[0, 2]] > 0.3)
    arm.hold()
    arm.step(None, 1.0)
    np.testing.assert_allclose(arm.actuator_state().position, before, atol=0.03)


@pytest.mark.parametrize(
    ('command', 'message'),
    [
        (np.zeros(7), 'shape'),
        ([1, 1, 1, np.nan, 1, 1, 1, 1], 'down_2 = nan is not finite'),
        ([1, 1, -0.5, 1, 1, 1, 1, 1], 'up_2 = -0.5 N; a cable only pulls'),
    ],
)
def test_bad_commands_are_refused_and_nothing_moves(command, message):
    arm = build()
    before = arm.true_section_tips()
    with pytest.raises(ValueError, match=message):
        arm.step(command, 0.1)
    with pytest.raises(ValueError, match='duration_s'):
        arm.step(np.ones(8), 0.0)
    assert arm.time_s == 0.0
    np.testing.assert_array_equal(arm.true_section_tips(), before)


def test_folding_arm_raises_an_error():
    with pytest.raises(PlantError, match='segment 1 has turned'):
        arm = build()
        for _ in range(50):
            arm.step(np.array([1.0, 1.0, 90.0, 0.0, 1.0, 1.0, 1.0, 1.0]), 0.1)


def test_payload_bends_the_arm_like_a_tip_force_of_its_weight():
    heavy, light = build(load=0.05), build()
    by_force = light.drives.static_equilibrium(np.ones(8), (0.0, -0.05 * 9.81, 0.0)).section_tips
    np.testing.assert_allclose(heavy.true_section_tips(), by_force, atol=2e-6)
    assert heavy.true_section_tips()[-1, 1, 3] < light.true_section_tips()[-1, 1, 3] - 0.01


def test_shorter_steps_move_the_arm_alike():
    tips = []
    for step in (2e-3, 1e-3, 5e-4):
        arm = build(plant_config(time_step_s=step, winch=exact()))
        way = []
        for k in range(30):
            target = 1.0 + (PULL - 1.0) * min(k / 15.0, 1.0)
            arm.step(target, 0.1)
            way.append(arm.true_section_tips()[-1, :3, 3])
        tips.append(np.array(way))
    assert np.abs(tips[1] - tips[2]).max() < 1e-4
    assert np.abs(tips[0] - tips[2]).max() < 4e-4
