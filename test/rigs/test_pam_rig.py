"""The rig of the muscle arm: its model, its limits and its checks."""

from pathlib import Path

import numpy as np
import pytest

from softarm_ros import load_rig
from softarm_ros.drivers.valve_config import (
    ValveBoardConfig,
    ValveDriveConfig,
    ValveTableConfig,
)
from softarm_ros.models.minimum_energy.config import BackboneConfig, ParallelModulesConfig
from softarm_ros.plant.pam_arm.config import (
    PamPlantConfig,
    PneumaticsConfig,
    RelayConfig,
)
from softarm_ros.rigs.arms.muscle import MuscleArm, MuscleConfig
from softarm_ros.rigs.checks import find_inconsistencies
from softarm_ros.rigs.schema import Rig

RIG = load_rig('pam_arm')


def changed(path, value):
    """Return the rig with another value at a path, validated again."""
    data = RIG.model_dump(by_alias=True)
    inner = data
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return Rig.model_validate(data)


def test_limits_lie_within_the_command_range_of_the_model():
    model, limits = RIG.model(), RIG.actuator_limits()
    assert limits.names == model.actuator_names
    low, high = model.modules.command_range_m
    assert np.all(limits.position_min > low) and np.all(limits.position_max < high)
    configuration = RIG.configuration_limits()
    assert np.array_equal(configuration.lower, limits.position_min)
    limits.check(model.rest_configuration)
    assert len(RIG.section_names) == len(RIG.body_radii_m()) == 10


def test_sampled_configurations_are_within_limits_and_spread_out():
    drawn = RIG.sample_configurations(np.random.default_rng(0), 40)
    limits, model = RIG.actuator_limits(), RIG.model()
    tips = model.tips_of(drawn)
    for lengths in drawn:
        limits.check(lengths)
    assert tips.shape == (40, 3) and np.ptp(tips[:, 0]) > 0.3


def test_payload_acts_on_the_model_as_a_force_at_the_tip():
    loaded = RIG.model_copy(update={'tip_load_kg': 0.05})
    bent = RIG.model().inverse((0.2, 0.0, 0.9)).actuation
    light, heavy = RIG.model().forward(bent), loaded.model().forward(bent)
    by_force = RIG.model().forward(bent, tip_force=(0.0, 0.0, 0.05 * 9.81))
    np.testing.assert_allclose(heavy.tip, by_force.tip, atol=1e-9)
    assert heavy.tip[2, 3] > light.tip[2, 3] + 1e-3


@pytest.mark.parametrize(
    ('path', 'value', 'message'),
    [
        (('medium',), 'water', 'no model of water'),
        (('sensors', 'em_tracker', 'port'), '/dev/rfcomm0', 'is used by drives.valves already'),
        (('drives', 'valves', 'pairs'), range(29), 'for each actuator, in their order: 30'),
        (('drives', 'valves', 'pairs'), [*range(29), 3], 'pairs[29] = 3: two muscles have it'),
        (('arm', 'valves', 'longest_pulse_s'), 0.25, 'expected at most 0.2, the watchdog'),
        (('arm', 'valves', 'guard_s'), 0.21, 'expected at most 0.2, the longest dead time'),
        (('arm', 'valves', 'guard_s'), 0.0305, 'expected whole milliseconds'),
        (('model', 'intervals'), 45, 'multiple of arm.modules'),
        (('plant', 'intervals'), 25, 'multiple of arm.modules'),
        (('arm', 'valves', 'guard_s'), 0.01, 'both valves of a muscle can be open together'),
        (('arm', 'actuators', 3, 'name'), 'elbow', "expected 'module_2_muscle_1'"),
        (('arm', 'actuators', 3, 'position_max_m'), 0.132, 'expected at most 0.1306'),
        (('arm', 'actuators', 3, 'position_min_m'), 0.051, 'expected at least 0.0521'),
        (('arm', 'modules', 'muscle_stiffness_N_m'), 1e5, 'the driver counts that'),
        (('arm', 'valves', 'empty_length_m'), 0.111, 'must be below full_length_m'),
        (
            ('arm', 'actuators', 3, 'position_max_m'),
            0.105,
            'position_min_m < 0.1063',
        ),
        (('arm', 'actuators', 3, 'max_speed_m_s'), 0.01, 'expected at most'),
        (
            ('arm', 'modules', 'modules'),
            9,
            'expected three for each of arm.modules.modules = 9: 27',
        ),
        (('plant', 'backbone', 'youngs_modulus_Pa'), 6.2e6, 'within a factor 5'),
        (('plant', 'anchor_radius_m'), 0.05, 'within a factor 1.5'),
        (('trajectories', 'line', 'end'), (0.5, 0.5, 0.9), 'within arm.backbone.length_m'),
    ],
)
def test_inconsistent_muscle_rigs_are_refused(path, value, message):
    with pytest.raises(ValueError) as told:
        changed(path, value)
    assert message in str(told.value)


def test_docs_name_every_field_of_the_muscle_arm():
    text = (Path(__file__).parents[2] / 'docs' / 'arms_pam.md').read_text(encoding='utf-8')
    own = set(MuscleArm.model_fields) | {'intervals'}
    blocks = (BackboneConfig, ParallelModulesConfig, MuscleConfig, ValveDriveConfig)
    blocks += (ValveBoardConfig, ValveTableConfig, PamPlantConfig, PneumaticsConfig, RelayConfig)
    named = ({f.alias or n for n, f in block.model_fields.items()} for block in blocks)
    for field in own.union(*named) - {'name', 'kind'}:
        assert f'`{field}`' in text or f'{field}: ' in text, field


def test_shipped_muscle_rig_is_consistent():
    assert find_inconsistencies(RIG.view(), RIG.checks) == []
    assert changed(('tip_load_kg',), 0.05).tip_load_kg == 0.05
