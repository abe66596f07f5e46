"""The pneumatic rig loads, refuses inconsistent values, and its page names every field."""

import copy
import math
from pathlib import Path

import numpy as np
import pytest
from pydantic import BaseModel

from softarm_ros.models.arm_model import ModelError
from softarm_ros.rigs.arms.pneumatic import PneumaticArm
from softarm_ros.rigs.graph import graph_plan
from softarm_ros.rigs.loader import RigError, load_rig, validate_rig
from softarm_ros.rigs.yaml_document import YamlDocument, read_yaml
from softarm_ros.runtime.arm_assembly import build_driver, build_emulated_arm, build_plant

ROOT = Path(__file__).parents[2]
SHIPPED = ROOT / 'config' / 'rigs' / 'pneumatic_arm.yaml'
PAGE = ROOT / 'docs' / 'arms_pneumatic.md'


@pytest.fixture(scope='module')
def shipped():
    return read_yaml(SHIPPED)


def load_changed(document, change):
    data = copy.deepcopy(document.data)
    change(data)
    changed = YamlDocument(document.source, data, document.lines)
    return validate_rig(changed)


def put(path, value):
    def change(data):
        for key in path[:-1]:
            data = data[key]
        data[path[-1]] = value

    return change


def drop_chamber(data):
    data['arm']['actuators'] = data['arm']['actuators'][:5]


def all_of(*changes):
    def change(data):
        for one in changes:
            one(data)

    return change


WRONG = {
    'same section twice': (
        put(['arm', 'sections', 1, 'name'], 'proximal'),
        'arm.sections[1].name',
    ),
    'chamber missing': (drop_chamber, 'arm.actuators'),
    'chamber misnamed': (
        put(['arm', 'actuators', 4, 'name'], 'distal_2'),
        'arm.actuators[4].name',
    ),
    'beyond the curve': (
        put(['arm', 'actuators', 2, 'pressure_max_Pa'], 9.5e4),
        'pressure_max_Pa',
    ),
    'gripper that the simulated arm has not': (put(['plant', 'gripper'], None), 'plant.gripper'),
    'force sensor likewise': (put(['plant', 'wrench_sensor'], None), 'plant.wrench_sensor'),
    'regulator missing': (put(['plant', 'regulators', 'gain'], [1.0] * 5), 'regulators.gain'),
    'driver limit': (put(['plant', 'regulators', 'max_pressure_Pa'], 8e4), 'max_pressure_Pa'),
    'plant of one section': (
        lambda d: d['plant'].__setitem__('sections', d['plant']['sections'][:1]),
        'plant.sections',
    ),
    'another arm': (put(['plant', 'sections', 0, 'bending_length_m'], 0.3), 'bending_length_m'),
    'another length': (put(['plant', 'tip_length_m'], 0.045), 'plant.tip_length_m'),
    'gripper': (put(['gripper', 'open_pressure_Pa'], 6e4), 'gripper.open_pressure_Pa'),
    'floats': (
        all_of(put(['medium'], 'water'), put(['gripper', 'volume_m3'], 1e-4)),
        'gripper.volume_m3',
    ),
    'weightless model': (
        all_of(put(['model'], 'constant_curvature'), put(['tip_load_kg'], 0.1)),
        'tip_load_kg',
    ),
}

DAQ = ['drives', 'daq']
WRONG_DEVICES = {
    'no monitor': (
        put([*DAQ, 'inputs', 2, 'name'], 'third'),
        'drives.daq: DAQ inputs: expected one for each actuator; no proximal_chamber_3',
    ),
    'no valve': (
        put([*DAQ, 'outputs', 0, 'name'], 'first'),
        'drives.daq: streamed DAQ outputs: expected proximal_chamber_1_valve',
    ),
    'valves in another order': (
        all_of(
            put([*DAQ, 'outputs', 0, 'name'], 'proximal_chamber_2_valve'),
            put([*DAQ, 'outputs', 1, 'name'], 'proximal_chamber_1_valve'),
        ),
        'in this order',
    ),
    'unit': (put([*DAQ, 'inputs', 0, 'unit'], 'kPa'), 'drives.daq.inputs[0].unit'),
    'no room for the play': (
        put([*DAQ, 'outputs', 3, 'high'], 9e4),
        'drives.daq.outputs[3].high',
    ),
    'a valve that never shuts': (
        all_of(put([*DAQ, 'outputs', 5, 'low'], 1e3), put([*DAQ, 'outputs', 5, 'safe'], 1e3)),
        'drives.daq.outputs[5].low',
    ),
    'monitor too small': (
        put([*DAQ, 'inputs', 4, 'scale'], 3.5e4),
        'drives.daq.inputs[4].scale',
    ),
    'limit below full pressure': (
        put([*DAQ, 'inputs', 1, 'high'], 9e4),
        'drives.daq.inputs[1].high',
    ),
    'gripper at nothing': (
        put(['drives', 'gripper', 'vacuum_line'], 'nothing'),
        'drives.gripper.vacuum_line',
    ),
    'gripper without what tasks know of it': (
        all_of(
            lambda data: data.pop('gripper'),
            put(['drives', 'gripper', 'vacuum_line'], 'nothing'),
        ),
        'drives.gripper.vacuum_line',
    ),
    'another gripper than that of tasks': (
        put(['drives', 'gripper', 'close_pressure_Pa'], 4e4),
        'drives.gripper.close_pressure_Pa',
    ),
    'gripper beyond its regulator': (
        all_of(
            put(['drives', 'gripper', 'close_pressure_Pa'], 9.5e4),
            put(['gripper', 'close_pressure_Pa'], 9.5e4),
        ),
        'outside [0, 90000] Pa',
    ),
}


@pytest.mark.parametrize(('change', 'field'), WRONG_DEVICES.values(), ids=WRONG_DEVICES)
def test_inconsistent_devices_are_refused_by_field(shipped, change, field):
    with pytest.raises(RigError) as caught:
        load_changed(shipped, change)
    assert field in str(caught.value) and 'drives' in str(caught.value)


def test_rig_without_devices_refuses_the_emulated_backend(shipped):
    rig = load_changed(shipped, lambda data: data.pop('drives'))
    with pytest.raises(RigError, match=r"declares no devices for backend 'emulated'"):
        graph_plan(rig, 'emulated', rig_source=SHIPPED)


def test_gripper_drive_may_be_left_out(shipped):
    rig = load_changed(shipped, lambda data: data['drives'].pop('gripper'))
    assert rig.devices.gripper is None and set(rig.devices.blocks()) == {'daq'}
    assert build_driver(rig, rig.devices).gripper is None
    assert type(rig).model_validate(rig.model_dump(by_alias=True)) == rig


def test_gripper_and_force_sensor_may_be_left_out_of_the_arm(shipped):
    def bare(data):
        for block, field in (
            ('plant', 'gripper'),
            ('plant', 'wrench_sensor'),
            ('drives', 'gripper'),
        ):
            data[block].pop(field)
        data['drives']['daq'].pop('force_sensor')
        data.pop('gripper')

    rig = load_changed(shipped, bare)
    plant, arm = build_plant(rig, 0), build_emulated_arm(rig, 0)
    assert plant.gripping is None and plant.weighed is None
    assert 'holds_object' not in arm.report()
    with pytest.raises(ValueError, match='object put'):
        arm.inject('object put 0 0 0.2 0.1')
    arm.close()


@pytest.mark.parametrize(('change', 'field'), WRONG.values(), ids=WRONG)
def test_inconsistent_values_are_refused_by_field(shipped, change, field):
    with pytest.raises(RigError) as caught:
        load_changed(shipped, change)
    assert field in str(caught.value) and 'expected' in str(caught.value)


def test_shipped_pneumatic_rig_has_its_models_and_limits(shipped):
    rig = load_changed(shipped, lambda data: None)
    assert rig.model().name == 'angle_correction'
    assert rig.model('constant_curvature').name == 'constant_curvature'
    limits = rig.actuator_limits()
    assert limits.unit == 'Pa' and limits.effort_unit == 'Pa'
    upper = rig.configuration_limits().upper
    np.testing.assert_allclose(rig.model().actuation_of(upper), limits.position_max, rtol=1e-9)


def sag(rig):
    """Return how far [m] the weight moves the tip in a posture."""
    e = np.array([0.015, 0.0, 0.005, 0.0, 0.012, 0.003])
    tips = [rig.model(name).shape_of(e).tip[:3, 3] for name in rig.model_names]
    return float(np.linalg.norm(tips[0] - tips[1]))


def test_payload_and_water_affect_model_and_plant_alike(shipped):
    """Load and water move the tip of both by the same to 30 %."""
    rigs = [
        load_changed(shipped, change)
        for change in (
            lambda data: None,
            put(['tip_load_kg'], 0.05),
            put(['medium'], 'water'),
        )
    ]
    sags = [sag(rig) for rig in rigs]
    assert sags[1] > 1.1 * sags[0] and sags[2] < 0.15 * sags[0]
    pressures = np.array([4e4, 0.0, 1e4, 0.0, 4e4, 1e4])
    known, real = [], []
    for rig in rigs:
        known.append(rig.model().forward(pressures).tip[:3, 3])
        real.append(build_plant(rig, 0).drives.tips_at_rest(pressures)[-1, :3, 3])
    for k in (1, 2):
        model, plant = known[k] - known[0], real[k] - real[0]
        assert np.linalg.norm(model - plant) < 0.3 * np.linalg.norm(model)


def test_load_that_makes_the_posture_unstable_raises(shipped):
    rig = load_changed(shipped, put(['tip_load_kg'], 3.0))
    rig = rig.model_copy(update={'gravity_m_s2': (0.0, 0.0, -9.81)})
    with pytest.raises(ModelError, match='stable'):
        rig.model().shape_of(np.full(6, 0.01))


def fields_of(model, seen):
    for name, field in model.model_fields.items():
        seen.add(name)
        for candidate in (field.annotation, *getattr(field.annotation, '__args__', ())):
            if isinstance(candidate, type) and issubclass(candidate, BaseModel):
                fields_of(candidate, seen)
    return seen


def test_docs_name_every_field_of_the_pneumatic_arm():
    names = ('rigs.md', 'drivers.md')
    general = ''.join((ROOT / 'docs' / name).read_text(encoding='utf-8') for name in names)
    page = PAGE.read_text(encoding='utf-8')
    missing = [
        name
        for name in sorted(fields_of(PneumaticArm, set()))
        if f'`{name}`' not in page and f'`{name}`' not in general
    ]
    assert not missing


def test_attitudes_of_the_task_are_within_limits_and_invalid_ones_are_refused():
    from softarm_ros.rigs.task_file import load_task
    from softarm_ros.runtime.task_plan import TaskError, plan_stages

    rig = load_rig('pneumatic_arm')
    task = load_task('pick_and_place')
    limits = rig.actuator_limits()
    stages = plan_stages(rig, rig.model(), task, limits)
    groups = [s for s in stages if s.configuration is not None]
    assert len(groups) == 6
    for stage in groups:
        rig.actuator_limits().check(rig.model().actuation_of(stage.configuration))
    first = np.radians([270, 50])
    bends = rig.model().bends_and_lengths(groups[0].configuration)[:2]
    np.testing.assert_allclose(
        bends, first[1] * np.array([math.cos(first[0]), math.sin(first[0])]), atol=1e-12
    )
    step = task.steps[1].model_copy(update={'attitude_deg': (270.0, 50.0)})
    with pytest.raises(TaskError, match='has 2 angles; expected 4'):
        plan_stages(rig, rig.model(), task.model_copy(update={'steps': (step,)}), limits)
    step = task.steps[1].model_copy(update={'attitude_deg': (0.0, 70.0, 0.0, 0.0)})
    with pytest.raises(TaskError, match='proximal_chamber'):
        plan_stages(rig, rig.model(), task.model_copy(update={'steps': (step,)}), limits)
