"""Settings that replace or add values of a rig file."""

import pytest

from softarm_ros.rigs.errors import RigError
from softarm_ros.rigs.loader import load_rig
from softarm_ros.rigs.rig_files import find_rig


def test_settings_replace_and_add_values_and_are_kept_in_the_rig():
    settings = [
        'tip_load_kg=0.005',
        'plant.pose_sensor.delay_s = 0.02',
        'arm.sections[1].length_m=0.09',
        'gravity_m_s2=[0.0, 9.81, 0.0]',
    ]
    rig = load_rig('cable_arm', settings)
    assert rig.tip_load_kg == 0.005
    assert rig.plant.mocap.delay_s == 0.02
    assert [s.length_m for s in rig.arm.sections] == [0.093, 0.09]
    assert rig.gravity_m_s2 == (0.0, 9.81, 0.0)
    assert rig.settings == tuple(settings)
    assert load_rig('cable_arm').tip_load_kg == 0.0


def test_settings_add_a_block_that_the_file_leaves_out():
    assert load_rig('pneumatic_arm').devices.daq.host is None
    settings = ['drives.daq.host.host=192.168.1.10', 'drives.daq.host.port=31000']
    host = load_rig('pneumatic_arm', settings).devices.daq.host
    assert (host.host, host.port) == ('192.168.1.10', 31000)
    with pytest.raises(RigError, match=r'drives\.daq\.host\.host: missing'):
        load_rig('pneumatic_arm', settings[1:])


def test_known_sections_of_an_arm_with_a_section_named_base_are_listed_once():
    with pytest.raises(RigError, match=r"known: 'base', 'middle', 'tip'; from the setting"):
        load_rig('trunk', ['sensors.natnet.bodies[3].section=tpi'])


@pytest.mark.parametrize(
    ('setting', 'message'),
    [
        ('medium', 'expected field=value'),
        ('=1', 'expected field=value'),
        ('arm.sections[-1].length_m=0.1', r'as medium=water or arm.sections\[0\].length_m=0.1'),
        ('a-b=1', 'expected field=value'),
        ('plant.pose_sensor.dely_s=0.02', "did you mean 'delay_s'"),
        ('plnt.mocap.delay_s=0.02', r"unknown field 'plnt' \(did you mean 'plant'\?\)"),
        ('drives.steppers.moters.motor=1', "unknown field 'moters' .did you mean"),
        ('drives.daq.inputs[0].high=1', r'the file has no drives.daq.inputs\[0\]'),
        ('arm.sections.length_m=0.1', 'the file has no arm.sections.length_m'),
        ('arm.sections[2].length_m=0.1', r'the file has no arm.sections\[2\]'),
        ('sections[1].length_m=0.1', 'sections is no longer a field; write arm.sections'),
        ('tracker.rate_hz=50', 'tracker is no longer a field; write controller'),
        ('tip_load_kg=heavy', "tip_load_kg = 'heavy': expected a number"),
        ('tip_load_kg=[', 'is not a YAML value'),
        ('medium=water', "medium = 'water': expected 'air'"),
        ('controller.feedback_gain_1_s=.nan', 'feedback_gain_1_s'),
    ],
)
def test_invalid_settings_are_refused(setting, message):
    with pytest.raises(RigError, match=message):
        load_rig('cable_arm', [setting])


def test_one_setting_that_is_not_in_a_list_is_refused_whole():
    with pytest.raises(RigError, match=r"settings = 'medium=water': expected a list"):
        load_rig('pneumatic_arm', 'medium=water')


def test_problem_of_a_setting_names_it_instead_of_a_line_with_another_value(tmp_path):
    path = tmp_path / 'rig.yaml'
    text = find_rig('cable_arm').read_text(encoding='utf-8')
    path.write_text(text.replace('damping:', 'damping: -1.0 #'), encoding='utf-8')
    wrong = ['controller.feedback_gain_1_s=-2', 'arm.sections[1].length_m=0', 'tip_load_kg=x']
    with pytest.raises(RigError) as told:
        load_rig(path, wrong)
    by_field = {'.'.join(map(str, p.path)): p for p in told.value.problems}
    assert by_field['controller.damping'].line is not None
    for field, setting in zip(
        ('controller.feedback_gain_1_s', 'arm.sections.1.length_m', 'tip_load_kg'), wrong
    ):
        assert by_field[field].line is None
        assert by_field[field].message.endswith(f'; from the setting {setting!r}')
