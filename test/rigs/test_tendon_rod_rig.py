import re
from pathlib import Path

import numpy as np
import pytest
import yaml

from softarm_ros.models.cosserat.config import RodSegmentConfig
from softarm_ros.models.parts import CosseratSettings
from softarm_ros.plant.tendon_rod.config import (
    PlantRodSegmentConfig,
    TendonRodPlantConfig,
    WinchConfig,
)
from softarm_ros.rigs.arms.tendon_rod import TendonConfig, TendonRodArm
from softarm_ros.rigs.errors import RigError
from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.arm_assembly import build_plant

SOURCE = load_rig('fishbone_arm').source.read_text()


def load(tmp_path, change):
    data = yaml.safe_load(SOURCE)
    change(data)
    path = tmp_path / 'arm.yaml'
    path.write_text(yaml.safe_dump(data))
    return load_rig(path)


def at(*path, value):
    """Return a change that sets the entry at a path."""

    def change(data):
        for key in path[:-1]:
            data = data[key]
        data[path[-1]] = value

    return change


STIFF = {'kind': 'round', 'young_modulus_Pa': 210e9, 'radius_m': 0.01}


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        (at('medium', value='water'), r"medium = 'water'.*no model of water; expected air"),
        (at('arm', 'segments', 1, 'name', value='unit_1'), r'arm.segments\[1\]\.name.*same name'),
        (
            at('arm', 'segments', 0, 'length_m', value=50.0),
            r'arm.segments\[0\]\.length_m = 50.* <= 5',
        ),
        (
            at('arm', 'actuators', 2, 'routes', 0, 'segment', value='unit_22'),
            r"arm.actuators\[2\]\.routes\[0\]\.segment = 'unit_22'.*did you mean 'unit_2'",
        ),
        (
            at(
                *('arm', 'actuators', 0, 'routes'),
                value=[
                    {'segment': 'unit_1', 'radius_m': 0.01, 'angle_deg': 0.0},
                    {'segment': 'unit_3', 'radius_m': 0.01, 'angle_deg': 0.0},
                ],
            ),
            r'arm.actuators\[0\]\.routes.*neighbouring segments',
        ),
        (
            at('arm', 'actuators', 1, 'routes', 0, 'turns', value=0.5),
            r'arm.actuators\[1\]\.routes\[0\]\.turns = 0\.5.*parallel to the rod',
        ),
        (
            at('arm', 'actuators', 1, 'routes', 0, 'end_radius_m', value=0.005),
            r'routes\[0\]\.end_radius_m = 0\.005.*expected radius_m = 0\.01',
        ),
        (
            at('arm', 'segments', 0, 'profile', 'kind', value='circular'),
            r"segments\[0\]\.profile\.kind = 'circular': expected one of 'matrix', 'rect.*'round'",
        ),
        (
            at('arm', 'segments', 0, 'profile', 'poisson_ratio', value=0.9),
            r'segments\[0\]\.profile\.poisson_ratio = 0\.9: expected a number > -1 and <= 0\.5',
        ),
        (
            at('plant', 'segments', 1, 'profile', 'hight_m', value=0.1),
            r"segments\[1\]\.profile\.hight_m = 0\.1: unknown field.*did you mean 'height_m'",
        ),
        (at('arm', 'pretension_N', value=20.0), r'pretension_N = 20.*tension_max_N = 20'),
        (at('controller', 'pretension_m', value=0.001), r'controller\.pretension_m.*tensions'),
        (
            at('plant', 'segments', value=yaml.safe_load(SOURCE)['plant']['segments'][:3]),
            r'plant\.segments = 3 segments.*as many as segments of the arm: 4',
        ),
        (
            at('plant', 'segments', 0, 'profile', value=STIFF),
            r'plant\.segments\[0\]\.profile.*bending stiffness about x',
        ),
        (
            at('plant', 'segments', 0, 'length_m', value=0.2),
            r'plant\.segments\[0\]\.length_m = 0\.2.*factor 3',
        ),
        (
            at('plant', 'segments', 0, 'connector', 'rotation_vector_deg', value=[0, 0, 90]),
            r'plant\.segments\[0\]\.connector.*rotation_vector_deg within 10 deg',
        ),
        (
            at('plant', 'winch', 'max_tension_rate_N_s', value=5.0),
            r'max_tension_rate_N_s = 5.*largest max_rate_N_s of the actuators, 10',
        ),
        (at('arm', 'actuators', 0, 'tension_max_N', value=-1.0), r'tension_max_N = -1'),
        (at('plant', 'time_step_s', value=0.05), r'plant\.time_step_s'),
        (at('model', value='cable_statics'), r'model\.kind.*cosserat'),
    ],
)
def test_mistakes_in_a_tendon_rod_rig_are_refused_by_field(tmp_path, change, message):
    with pytest.raises(RigError, match=message):
        load(tmp_path, change)


def test_actuator_limits_are_the_tensions_of_the_file(tmp_path):
    rig = load(tmp_path, at('arm', 'actuators', 3, 'tension_max_N', value=12.0))
    limits = rig.actuator_limits()
    assert limits.unit == 'N'
    np.testing.assert_array_equal(limits.position_max, [20, 20, 20, 12, 20, 20, 20, 20])
    np.testing.assert_array_equal(limits.position_min, 0.0)
    np.testing.assert_array_equal(rig.configuration_limits().upper, limits.position_max)
    assert rig.section_names == ('unit_1', 'unit_2', 'unit_3', 'unit_4')


def test_tip_load_lowers_the_tip_of_model_and_plant(tmp_path):
    light, heavy = load_rig('fishbone_arm'), load(tmp_path, at('tip_load_kg', value=0.02))
    for tip in (
        lambda rig: rig.model().shape_of(np.ones(8)).tip,
        lambda rig: build_plant(rig, 0).true_section_tips()[-1],
    ):
        sag = tip(light)[1, 3] - tip(heavy)[1, 3]
        assert 0.002 < sag < 0.05


def test_round_rod_with_cables_through_two_segments_is_a_valid_rig(tmp_path):
    """The kind also covers a tentacle of two round segments with three cables."""

    def tentacle(data):
        round_ = {
            'kind': 'round', 'young_modulus_Pa': 1e6, 'density_kg_m3': 1100.0, 'radius_m': 0.008,
        }  # fmt: skip
        names = ('low', 'high')
        del data['drives'], data['sensors']['qtm']  # of an arm with eight cables
        data['gravity_m_s2'] = [0.0, 0.0, 9.81]
        data['arm']['segments'] = [{'name': n, 'length_m': 0.08, 'profile': round_} for n in names]
        cable = {k: v for k, v in data['arm']['actuators'][0].items() if k != 'name'}
        data['arm']['actuators'] = [
            {
                **cable,
                'name': f'c{k}',
                'tension_max_N': 3.0,
                'routes': [
                    {'segment': n, 'radius_m': 0.006, 'angle_deg': 120.0 * k} for n in names
                ],
            }
            for k in range(3)
        ]
        data['arm']['pretension_N'] = 0.1
        body = dict(data['plant']['segments'][0])
        body.update(
            length_m=0.08, profile=round_, connector={}, rest_curvature_1_m=[0, 0, 0],
            cable_radius_m=None, cable_radius_error_m=0.0,
        )  # fmt: skip
        data['plant']['segments'] = [body, body]

    rig = load(tmp_path, tentacle)
    model, plant = rig.model(), build_plant(rig, 0)
    pull = np.array([1.0, 0.1, 0.1])
    assert model.shape_of(pull).tip[0, 3] > 0.01
    for _ in range(20):
        plant.step(pull, 0.1)
    tip = plant.true_section_tips()[-1, :3, 3]
    assert np.linalg.norm(tip - model.shape_of(pull).tip[:3, 3]) < 0.02
    assert model.inverse(model.shape_of(pull).tip[:3, 3], guess=np.full(3, 0.5)).converged


DOCS = (Path(__file__).parents[2] / 'docs' / 'arms_fishbone.md').read_text(encoding='utf-8')
OWN = set(TendonRodArm.model_fields)
BLOCKS = {
    'The rig file': OWN - {'kind', 'actuators'} | {'medium', 'tip_load_kg', 'model'},
    'model': set(CosseratSettings.model_fields),
    'segments': set(RodSegmentConfig.model_fields),
    'actuators': set(TendonConfig.model_fields),
    'plant': {f.alias or n for n, f in TendonRodPlantConfig.model_fields.items()},
    'plant.segments': set(PlantRodSegmentConfig.model_fields),
    'plant.winch': set(WinchConfig.model_fields),
}


@pytest.mark.parametrize('heading', BLOCKS)
def test_docs_list_every_tendon_rod_field(heading):
    body = re.split(rf'^##+ {re.escape(heading)}$', DOCS, maxsplit=1, flags=re.MULTILINE)[1]
    body = re.split(r'^##', body, maxsplit=1, flags=re.MULTILINE)[0]
    assert set(re.findall(r'^\| `(\w+)`', body, flags=re.MULTILINE)) == BLOCKS[heading]
