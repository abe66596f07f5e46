"""An arm of two kinds by YAML alone: chambers of one, regulators and body of the other."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from softarm_ros.drivers.daq_actuators import DaqActuators
from softarm_ros.plant.pneumatic.pneumatic_plant import PneumaticPlant
from softarm_ros.rigs.errors import RigError
from softarm_ros.rigs.graph import BACKENDS, check_backend
from softarm_ros.rigs.loader import load_rig, validate_rig
from softarm_ros.rigs.yaml_document import read_yaml
from softarm_ros.runtime.arm_assembly import build_driver, build_plant
from softarm_ros.runtime.direct import run_direct

FILE = Path(__file__).parent / 'chambers_on_regulators.yaml'
TEXT = FILE.read_text(encoding='utf-8')


def test_rig_combines_the_model_of_one_kind_with_drives_and_body_of_another():
    rig = load_rig(FILE)
    assert rig.model_names == ('constant_curvature', 'cosserat', 'hydraulic_statics')
    assert isinstance(build_plant(rig, 0), PneumaticPlant)
    assert isinstance(build_driver(rig, rig.devices), DaqActuators)
    assert rig.actuator_limits().effort_unit == 'Pa'
    for backend in BACKENDS:
        check_backend(rig, backend)


def test_model_and_simulated_body_bend_alike_within_10_percent():
    """Parameters follow from each other; gravity, mounts and tolerances make the difference."""
    rig = load_rig(FILE)
    for chamber in range(6):
        pressures = np.zeros(6)
        pressures[chamber] = 6.0e4
        plant = build_plant(rig, 0)
        for _ in range(30):
            plant.step(pressures, 0.1)
        real = plant.true_section_tips()[-1, :3, 3]
        known = rig.model().forward(pressures).tip[:3, 3]
        away = np.linalg.norm(known[:2])
        assert away > 0.008
        assert np.linalg.norm(real[:2] - known[:2]) < 0.1 * away


def test_combined_arm_tracks_its_path():
    record = run_direct(load_rig(FILE), None, seed=0)
    assert record.completed
    error = record.error()
    assert 1e-4 < error.mean < 0.01 * record.info.arm_length_m
    assert error.max < 0.02 * record.info.arm_length_m


@pytest.mark.parametrize(
    ('old', 'new', 'message'),
    [
        (
            'kind: chamber_chain',
            'kind: cable_chain',
            r"plant.kind = 'cable_chain': is built for 'wound_cables', and this arm has "
            r"'water_cylinders', 'regulated_chambers'; known: 'chamber_chain', 'water_chain'",
        ),
        (
            'daq:\n',
            'steppers:\n',
            r"drives.steppers: is built for 'wound_cables', and this arm has",
        ),
        (
            'kind: hydraulic_statics',
            'kind: angle_correction',
            r"'angle_correction' is built on 'air_chambers', and this arm provides 'water_ch",
        ),
        (
            'angle_deg: 210.0',
            'angle_deg: 120.0',
            r'arm.actuators\[1\].angle_deg = 120: .* 10 of 210, w',
        ),
        ('gain: [1.006, ', 'gain: [', r'plant.regulators.gain = 5 values: expected one a chamber'),
        (
            'play_Pa: 800.0',
            'play_Pa: 4000.0',
            r'outputs\[0\].high = 91000: expected at least 92000',
        ),
    ],
)
def test_incompatible_parts_are_refused_by_field(tmp_path, old, new, message):
    assert old in TEXT
    path = tmp_path / 'rig.yaml'
    path.write_text(TEXT.replace(old, new, 1), encoding='utf-8')
    with pytest.raises(RigError) as error:
        load_rig(path)
    assert re.search(r'rig\.yaml:\d+: .*' + message, str(error.value)), str(error.value)


def test_arm_and_body_with_different_numbers_of_sections_are_refused(tmp_path):
    path = tmp_path / 'rig.yaml'
    second = '    - {<<: *body, extension_m: [0.0079, 0.0082, 0.008]}\n'
    assert second in TEXT
    path.write_text(TEXT.replace(second, ''), encoding='utf-8')
    with pytest.raises(RigError, match=r'plant.sections = 1 section: .* sections of the arm: 2'):
        load_rig(path)


def test_devices_and_body_for_different_actuators_are_refused():
    document = read_yaml(load_rig('hydraulic_arm').source)
    devices = {'daq': document.data['drives']['daq']}
    changed = replace(document, data={**document.data, 'drives': devices})
    message = (
        r"plant.kind = 'water_chain': is built for 'water_cylinders', and drives.daq serves "
        r"'regulated_chambers'; expected one of 'chamber_chain', or another device"
    )
    with pytest.raises(RigError, match=message):
        validate_rig(changed)


def test_servo_cylinders_require_torque_per_pressure():
    torque = 'torque_per_pressure_N_m_Pa'
    axes = [f'arm.actuators[{k}].{torque}=null' for k in range(6)]
    with pytest.raises(RigError, match=rf'arm.actuators\[0\]\.{torque}: missing; servo cylinders'):
        load_rig('hydraulic_arm', axes)
