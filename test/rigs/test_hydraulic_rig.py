"""Rigs of water-hydraulic arms: checks of the file, and its effect on model and plant."""

import re
from pathlib import Path

import numpy as np
import pytest

from softarm_ros.drivers.pressure_loop import PressureLoopConfig
from softarm_ros.drivers.pressure_servo_config import PressureServoConfig
from softarm_ros.drivers.servo_config import ServoConfig
from softarm_ros.geometry.configs import ConfigBlock
from softarm_ros.models.hydraulics.section_config import ChamberedSection, HydraulicSectionConfig
from softarm_ros.plant.hydraulic.config import (
    FabricConfig,
    HoldingBrakeConfig,
    HydraulicPlantConfig,
    PlantHydraulicSection,
    PressureSensorConfig,
    ServoDriveConfig,
)
from softarm_ros.rigs.arms.hydraulic import HydraulicActuatorConfig, HydraulicArm
from softarm_ros.rigs.errors import RigError
from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.arm_assembly import build_plant

ROOT = Path(__file__).parents[2]
SHIPPED = ROOT / 'config' / 'rigs' / 'hydraulic_arm.yaml'
TEXT = SHIPPED.read_text(encoding='utf-8')
DOCS = (ROOT / 'docs' / 'arms_hydraulic.md').read_text(encoding='utf-8')
SCALE = TEXT.index('scale: 4.0e+5 ')
INPUT = TEXT[SCALE : TEXT.index('# a higher pressure', SCALE)]
SMALL_INPUT = INPUT.replace('4.0e+5', '1.0e+5', 1).replace('1.25e+6', '5.0e+5')
OWN = set(HydraulicArm.model_fields) - {'kind', 'actuators'}
NAMES = {field.alias or name for name, field in HydraulicPlantConfig.model_fields.items()}
BLOCKS = {
    'arm': (HydraulicArm, OWN),
    'arm.sections': (HydraulicSectionConfig, set(HydraulicSectionConfig.model_fields)),
    'arm.actuators': (HydraulicActuatorConfig, set(HydraulicActuatorConfig.model_fields)),
    'arm.pressure_loop': (PressureLoopConfig, set(PressureLoopConfig.model_fields)),
    'drives.servo': (
        PressureServoConfig,
        set(PressureServoConfig.model_fields) - set(ServoConfig.model_fields),
    ),
    'plant': (HydraulicPlantConfig, NAMES),
    'plant.sections': (
        PlantHydraulicSection,
        set(PlantHydraulicSection.model_fields) - set(ChamberedSection.model_fields),
    ),
    'plant.fabric': (FabricConfig, set(FabricConfig.model_fields)),
    'plant.drive': (ServoDriveConfig, set(ServoDriveConfig.model_fields)),
    'plant.drive.brake': (HoldingBrakeConfig, set(HoldingBrakeConfig.model_fields)),
    'plant.pressure_sensor': (PressureSensorConfig, set(PressureSensorConfig.model_fields)),
}


def rig_with(tmp_path, *edits):
    text = TEXT
    for old, new in edits:
        assert text.count(old) >= 1, old
        text = text.replace(old, new, 1)
    path = tmp_path / 'rig.yaml'
    path.write_text(text, encoding='utf-8')
    return load_rig(path)


def test_shipped_hydraulic_rig_has_pressure_limits_and_chamber_angles():
    rig = load_rig('hydraulic_arm')
    assert isinstance(rig.arm, HydraulicArm)
    limits = rig.actuator_limits()
    assert (limits.unit, limits.effort_unit) == ('Pa', 'N m')
    np.testing.assert_array_equal(limits.position_max, 1e6)
    assert rig.section_names == ('proximal', 'distal')
    angles = [chamber.angle_deg for chamber in rig.arm.chambers()]
    assert angles == [0.0, 120.0, 240.0, 180.0, 300.0, 60.0]


@pytest.mark.parametrize(
    ('old', 'new', 'field', 'expected'),
    [
        (
            'angle_deg: 120.0}',
            'angle_deg: 2.0}',
            r'arm.actuators\[1\].angle_deg',
            '10 to less than 180 deg',
        ),
        (
            'section: distal, angle_deg: 300.0',
            'section: proximal, angle_deg: 300.0',
            r'arm.sections\[0\].name',
            'exactly 3',
        ),
        (
            'section: proximal\n',
            'section: proximol\n',
            r'arm.actuators\[0\].section',
            'did you mean',
        ),
        (
            'pressure_max_Pa: 1.0e+6',
            'pressure_max_Pa: 2.0e+6',
            r'arm.actuators\[0\].pressure_max_Pa',
            'max_torque_N_m',
        ),
        ('preload_Pa: 1.0e+5', 'preload_Pa: 2.0e+6', 'preload_Pa', '0 to 1e'),
        (
            'rest_bend_deg: [0.302403,',
            'rest_bend_deg: [150.0,',
            r'arm.sections\[0\].rest_bend_deg',
            'less than max_bending_angle_deg = 120',
        ),
        ('pressure_min_Pa: 0.0', 'pressure_min_Pa: 1.5e+6', 'pressure_max_Pa', '1.5e'),
        ('0.98, 1.015', '0.98, 1.3', r'efficiency_factors\[1\]', 'at most 1'),
        ('[0.98, 1.015,', '[1.015,', 'plant.efficiency_factors', 'one for each actuator: 6'),
        ('mass_kg: 0.36 ', 'mass_kg: 3.6 ', r'plant.sections\[0\].mass_kg', 'factor 2'),
        (
            'length_m: 0.399169',
            'length_m: 399.169',
            r'arm.sections\[0\].length_m',
            '<= 5',
        ),
        ('pitch_radius_m: 0.029625', 'pitch_radius_m: 0.3', 'pitch', 'outer_radius'),
        (
            'settle_tolerance_m',
            'pretension_m: 0.001\n  settle_tolerance_m',
            'pretension',
            'cables',
        ),
        (
            'name: proximal_2, base: 2',
            'name: proximal_9, base: 2',
            r'servo.axes',
            'in their order',
        ),
        (
            'torque_limit_N_m: 2.5',
            'torque_limit_N_m: 2.0',
            r'axes\[0\].torque_limit',
            'at least 2.5',
        ),
        (
            'torque_limit_N_m: 2.5',
            'torque_limit_N_m: 4.0',
            r'axes\[0\].torque_limit',
            'at most pl',
        ),
        ('sensor_high_Pa: 1.3e+6', 'sensor_high_Pa: 0.9e+6', 'sensor_high_Pa', 'pressure_max_Pa'),
        ('sensor_low_Pa: -1.3e+5', 'sensor_low_Pa: 0.0', 'sensor_low_Pa', 'pressure_min_Pa'),
        ('name: proximal_2, channel', 'name: other, channel', 'daq.inputs', 'for each actuator'),
        ('scale: 4.0e+5', 'scale: 4.0e+4', r'inputs\[0\]', 'high = 1.25e+06 Pa outside'),
        (INPUT, SMALL_INPUT, r'inputs\[0\].scale', '0 to 1e+06'),
        ('open_below_V: 0.5', 'open_below_V: 0.9', 'open_below_V', 'sound sensor'),
        ('filter_s: 0.06 ', 'filter_s: 0.03 ', 'filter_s', 'phase margin of -9 deg'),
        ('medium: air ', 'medium: oil ', 'medium', 'water'),
        (
            '- name: distal\n',
            '- name: proximal\n',
            r'arm.sections\[1\].name',
            'unique',
        ),
    ],
)
def test_wrong_files_are_refused_by_field(tmp_path, old, new, field, expected):
    with pytest.raises(RigError) as error:
        rig_with(tmp_path, (old, new))
    assert re.search(field, str(error.value)), str(error.value)
    assert expected in str(error.value)


def test_a_missing_plant_section_is_refused(tmp_path):
    start = TEXT.index('    - length_m: 0.3955')
    end = TEXT.index('  axis:')
    with pytest.raises(RigError, match=r'plant.sections.*as many as sections of the arm: 2'):
        rig_with(tmp_path, (TEXT[start:end], ''))


@pytest.mark.parametrize(
    'edit',
    [('medium: air ', 'medium: water '), ('medium: air ', 'tip_load_kg: 0.1\nmedium: air ')],
    ids=['water', 'payload'],
)
def test_water_and_payload_affect_model_and_plant_alike(tmp_path, edit):
    dry, wet = load_rig('hydraulic_arm'), rig_with(tmp_path, edit)
    pressure = np.array([1e5, 2e5, 3e5, 2e5, 1e5, 1e5])
    moved = [
        wet.model().forward(pressure).tip[:3, 3] - dry.model().forward(pressure).tip[:3, 3],
    ]
    arms = [build_plant(rig, 0) for rig in (dry, wet)]
    for arm in arms:
        for k in range(100):
            arm.step(1e5 + (pressure - 1e5) * min(k / 50, 1.0), 0.02)
    moved.append(arms[1].true_section_tips()[-1, :3, 3] - arms[0].true_section_tips()[-1, :3, 3])
    first, second = moved
    assert np.linalg.norm(first) > 0.02
    # Same direction and similar distance: the plant has other parameters and friction.
    assert first @ second > 0.8 * np.linalg.norm(first) * np.linalg.norm(second)
    assert 0.5 < np.linalg.norm(second) / np.linalg.norm(first) < 2.0


def test_sampling_without_an_allowed_configuration_returns_the_rest_configuration():
    rig = load_rig('hydraulic_arm')
    straight = [s.model_copy(update={'max_bending_angle_deg': 0.01}) for s in rig.arm.sections]
    stiff = rig.with_arm(sections=tuple(straight))
    rng, model = np.random.default_rng(0), stiff.model()
    assert stiff.arm.sample_configurations(model, rng, 2).shape == (0, 6)
    rest = np.tile(model.rest_configuration, (2, 1))
    np.testing.assert_array_equal(stiff.sample_configurations(rng, 2), rest)


def test_constant_curvature_model_ignores_weight():
    rig = load_rig('hydraulic_arm')
    arm = rig.model('constant_curvature')
    assert arm.name == 'constant_curvature'
    shape = arm.forward(np.full(6, 3e5))
    assert np.abs(arm.held(shape.configuration).strains[:, 3]).max() < 1e-12
    with pytest.raises(RigError, match='hydraulic_statics'):
        rig.model('statics')


def test_sampled_configurations_are_within_bending_and_pressure_limits():
    rig = load_rig('hydraulic_arm')
    model, limits = rig.model(), rig.actuator_limits()
    samples = rig.sample_configurations(np.random.default_rng(2), 8)
    assert samples.shape == (8, 6)
    for row in samples:
        assert rig.configuration_limits().clipped(row) == pytest.approx(row)
        limits.check(np.round(model.actuation_of(row)))


@pytest.mark.parametrize('heading', BLOCKS)
def test_docs_explain_every_hydraulic_field_with_its_default(heading):
    block, expected = BLOCKS[heading]
    body = re.split(rf'^### {re.escape(heading)}$', DOCS, maxsplit=1, flags=re.MULTILINE)[1]
    body = re.split(r'^##', body, maxsplit=1, flags=re.MULTILINE)[0]
    rows = [
        [cell.strip() for cell in line.strip('|').split('|')]
        for line in body.splitlines()
        if line.startswith('| `')
    ]
    assert {name.strip('`') for name, *_ in rows} == expected
    for name, default, text in rows:
        names = {field.alias or own: field for own, field in block.model_fields.items()}
        field = names[name.strip('`')]
        assert text, name
        if field.is_required():
            assert default == '', name
        elif name == '`medium`':
            assert default == 'that of the rig'
        elif field.default is None:
            assert default == 'none', name
        elif isinstance(field.default, ConfigBlock):
            assert default == 'all defaults', name
        elif isinstance(field.default, tuple):
            assert default == '[' + ', '.join(f'{v:g}' for v in field.default) + ']', name
        else:
            shown = field.default if isinstance(field.default, str) else f'{field.default:g}'
            assert default == shown, name
