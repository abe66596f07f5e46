"""Every wrong rig file is refused with field, value, line and what was expected."""

import copy
from pathlib import Path

import pytest
from pydantic.fields import FieldInfo

from softarm_ros.plant.config import AS_STATED, MocapConfig
from softarm_ros.rigs.devices import Devices
from softarm_ros.rigs.loader import RigError, list_rigs, load_rig, validate_rig
from softarm_ros.rigs.part_choice import chosen_part
from softarm_ros.rigs.sensors import Sensors
from softarm_ros.rigs.yaml_document import YamlDocument, read_yaml

SHIPPED = Path(__file__).parents[2] / 'config' / 'rigs' / 'cable_arm.yaml'
TEXT = (Path(__file__).parent / 'two_sections.yaml').read_text(encoding='utf-8')


def problems_of(text, tmp_path):
    """Return (line, rest) of each problem of a rig file with this text."""
    path = tmp_path / 'rig.yaml'
    path.write_text(text, encoding='utf-8')
    with pytest.raises(RigError) as error:
        load_rig(path)
    lines = str(error.value).splitlines()
    assert len(lines) == len(error.value.problems)
    found = []
    for line in lines:
        assert line.startswith(f'{path}:'), line
        number, _, rest = line[len(str(path)) + 1 :].partition(': ')
        found.append((int(number), rest) if number.isdigit() else (None, f'{number}: {rest}'))
    return found


def line_of(text, part):
    """Return the 1-based line of the first occurrence of `part`."""
    return text[: text.index(part)].count('\n') + 1


def edited(old, new):
    assert old in TEXT, old
    return TEXT.replace(old, new, 1)


# (what, text to replace, replacement, text whose line is reported, message)
SINGLE = [
    (
        'misspelt field',
        'length_m: 0.093 ',
        'lenght_m: 0.093 ',
        'lenght_m',
        "arm.sections[0].lenght_m = 0.093: unknown field 'lenght_m' (did you mean 'length_m'?)",
    ),
    (
        'negative length',
        'length_m: 0.093 ',
        'length_m: -0.093 ',
        'length_m: -0.093',
        'arm.sections[0].length_m = -0.093: expected a number > 0',
    ),
    (
        'NaN',
        'cable_radius_m: 0.0125',
        'cable_radius_m: .nan',
        'cable_radius_m: .nan',
        'arm.sections[0].cable_radius_m = nan: expected a number > 0',
    ),
    (
        'infinity',
        'position_max_m: 0.055',
        'position_max_m: .inf',
        'position_max_m: .inf',
        'arm.actuators[0].position_max_m = inf: expected a number',
    ),
    (
        'text for a number',
        'damping_time_s: 0.03 ',
        'damping_time_s: "0.03" ',
        'damping_time_s: "0.03"',
        "plant.sections[0].damping_time_s = '0.03': expected a number > 0",
    ),
    (
        'decimal comma',
        'settle_timeout_s: 3.0',
        'settle_timeout_s: 3,5',
        'settle_timeout_s: 3,5',
        "controller.settle_timeout_s = '3,5': expected a number >= 0",
    ),
    (
        'number for text',
        'name: cable_arm',
        'name: 7',
        'name: 7',
        'name = 7: expected a name: lowercase letters, digits and _, starting with a letter',
    ),
    (
        'name that ROS refuses',
        'name: proximal_2',
        'name: Proximal-2',
        'name: Proximal-2',
        "arm.actuators[1].name = 'Proximal-2': expected a name: lowercase letters, digits and _, "
        'starting with a letter',
    ),
    (
        'truth value for a number',
        'hold_timeout_s: 5.0',
        'hold_timeout_s: true',
        'hold_timeout_s: true',
        'supervisor.hold_timeout_s = true: expected a number > 0',
    ),
    (
        'fraction for a whole number',
        'segments_per_section: 10',
        'segments_per_section: 10.5',
        'segments_per_section: 10.5',
        'plant.segments_per_section = 10.5: expected a whole number >= 2 and <= 64',
    ),
    (
        'nothing after the colon',
        'damping: 1.0e-4',
        'damping:',
        'damping:  ',
        'controller.damping = null: expected a number > 0',
    ),
    (
        'vector too short',
        '[0.0, 0.0, 9.81]',
        '[0.0, 9.81]',
        'gravity_m_s2',
        'gravity_m_s2 = [0.0, 9.81]: expected a list of 3: each a number',
    ),
    (
        'vector too long',
        '[0.0, 0.0, 9.81]',
        '[0.0, 0.0, 9.81, 0.0]',
        'gravity_m_s2',
        'gravity_m_s2 = [0.0, 0.0, 9.81, 0.0]: expected a list of 3: each a number',
    ),
    (
        'gravity in g',
        '[0.0, 0.0, 9.81]',
        '[0.0, 0.0, 981]',
        'gravity_m_s2',
        'gravity_m_s2 = [0, 0, 981]: magnitude 981 m/s^2; expected 0, or 0.1 to 30 '
        '(9.81 on Earth)',
    ),
    (
        'unknown model',
        'model: cable_statics',
        'model: cable_static',
        'model:',
        "model.kind = 'cable_static': expected one of 'cable_statics', 'constant_curvature', "
        "'heavy_cable_statics' "
        "(did you mean 'cable_statics'?)",
    ),
    (
        'wrong unit',
        'unit: m ',
        'unit: mm ',
        'unit: mm',
        "arm.actuators[0].unit = 'mm': expected 'm'",
    ),
    (
        'missing field',
        'rate_hz: 100.0                      # [A]',
        'delay_s: 0.01 # ',
        'pose_topic:',
        'sensors.pose_topic.rate_hz: missing; expected a number > 0 (how often poses arrive)',
    ),
    (
        'actuator of no section',
        'name: distal_1, section: distal}',
        'name: distal_1, section: distall}',
        'distal_1',
        "arm.actuators[3].section = 'distall': no such section (did you mean 'distal'?); "
        "known: 'proximal', 'distal'",
    ),
    (
        'two actuators of one name',
        'name: proximal_3',
        'name: proximal_2',
        'angle_deg: 240.0}',
        "arm.actuators[2].name = 'proximal_2': same name as arm.actuators[1]; expected unique "
        'names',
    ),
    (
        'range without zero, below',
        'position_min_m: -0.045',
        'position_min_m: 0.001',
        'position_min_m: 0.001',
        'arm.actuators[0].position_min_m = 0.001: expected a number < 0: the cable must pay out '
        'when '
        'the arm bends away from it',
    ),
    (
        'range without zero, above',
        'position_max_m: 0.055',
        'position_max_m: -0.001',
        'position_max_m: -0.001',
        'arm.actuators[0].position_max_m = -0.001: expected a number > 0: the cable must pull in '
        'to '
        'bend the arm',
    ),
    (
        'two cables in the same place',
        'name: proximal_2, angle_deg: 120.0',
        'name: proximal_2, angle_deg: 360.0',
        'name: proximal_2',
        'arm.actuators[1].angle_deg = 360: expected at least 1 deg between cables of a section; '
        "'proximal_1' is 0 deg away",
    ),
    (
        'length in millimetres',
        'endcap_length_m: 0.015 ',
        'endcap_length_m: 15 ',
        'endcap_length_m: 15',
        'arm.sections[0].endcap_length_m = 15: expected at most 1 m (was it given in '
        'millimetres?)',
    ),
    (
        'plant with another number of sections',
        '    - *body\n',
        '',
        'sections:\n    - &body',
        'plant.sections = 1 section: expected as many as sections of the arm: 2',
    ),
    (
        'plant of another size',
        'length_m: 0.0935',
        'length_m: 0.935',
        'length_m: 0.935',
        "plant.sections[0].length_m = 0.935: expected within a factor 2 of the controller's 0.093 "
        '(the plant is the same arm, with stated errors)',
    ),
    (
        'body thinner than the cables are apart',
        'outer_radius_m: 0.016',
        'outer_radius_m: 0.012',
        'cable_radius_m: 0.0123',
        'plant.sections[0].cable_radius_m = 0.0123: expected less than outer_radius_m = 0.012 '
        '(cables run inside the body)',
    ),
    (
        'feedback much slower than control',
        'rate_hz: 100.0                      # [A]',
        'rate_hz: 19 # ',
        'rate_hz: 19',
        'sensors.pose_topic.rate_hz = 19: expected 20 to 1000: a fifth of, up to ten times '
        'controller.rate_hz = 100',
    ),
    (
        'feedback time-out below the feedback period',
        'feedback_timeout_s: 0.12',
        'feedback_timeout_s: 0.008',
        'feedback_timeout_s: 0.008',
        'supervisor.feedback_timeout_s = 0.008: expected more than 0.02: two periods of '
        'sensors.pose_topic.rate_hz = 100, else one lost pose stops the arm',
    ),
    (
        'feedback time-out below simulated delay',
        'delay_s: 0.01 ',
        'delay_s: 0.2 ',
        'feedback_timeout_s',
        'supervisor.feedback_timeout_s = 0.12: expected more than 0.22: '
        'plant.pose_sensor.delay_s and '
        'two periods of plant.pose_sensor.rate_hz',
    ),
    (
        'drop-outs longer than the time-out',
        'dropout_duration_s: 0.015',
        'dropout_duration_s: 0.1',
        'feedback_timeout_s',
        'supervisor.feedback_timeout_s = 0.12: expected more than 0.5: five times '
        'plant.pose_sensor.dropout_duration_s, else ordinary drop-outs stop the arm',
    ),
    (
        'oldest pose younger than the delay',
        'max_pose_jump_m: 0.05',
        'max_pose_jump_m: 0.05\n  feedback_watch:\n    max_age_s: 0.025',
        'max_age_s',
        'supervisor.feedback_watch.max_age_s = 0.025: expected more than 0.03: '
        'sensors.pose_topic.delay_s = 0.01 and two periods of sensors.pose_topic.rate_hz = 100',
    ),
    (
        'repetition within the noise',
        'max_pose_jump_m: 0.05',
        'max_pose_jump_m: 0.05\n  feedback_watch:\n    frozen_resolution_m: 2.0e-4',
        'frozen_resolution_m',
        'supervisor.feedback_watch.frozen_resolution_m = 0.0002: expected less than 2e-05: a '
        'tenth of sensors.pose_topic.position_noise_m, else a sound sensor seems frozen',
    ),
    (
        'command time-out below the control period',
        'command_timeout_s: 0.1',
        'command_timeout_s: 0.01',
        'command_timeout_s: 0.01',
        'supervisor.command_timeout_s = 0.01: expected more than 0.02: two periods of '
        'controller.rate_hz = 100, else one late cycle stops the arm',
    ),
    (
        'heartbeat time-out below the heartbeat',
        'heartbeat_timeout_s: 1.0',
        'heartbeat_timeout_s: 0.1',
        'heartbeat_timeout_s: 0.1',
        'supervisor.heartbeat_timeout_s = 0.1: expected more than 0.2: two heartbeats, which '
        'nodes send at 10 Hz',
    ),
    (
        'pose jump within the noise',
        'max_pose_jump_m: 0.05',
        'max_pose_jump_m: 0.0015',
        'max_pose_jump_m: 0.0015',
        'supervisor.max_pose_jump_m = 0.0015: expected more than 0.002: ten times '
        'sensors.pose_topic.position_noise_m = 0.0002, else noise stops the arm',
    ),
    (
        'feedback gain that cannot be stable',
        'feedback_gain_1_s: 3.0',
        'feedback_gain_1_s: 80',
        'feedback_gain_1_s: 80',
        'controller.feedback_gain_1_s = 80: expected less than 52.4: with 30 ms from pose to '
        'command '
        '(both periods and sensors.pose_topic.delay_s) the loop oscillates',
    ),
    (
        'unknown default trajectory',
        'default_trajectory: circle',
        'default_trajectory: circel',
        'default_trajectory',
        "default_trajectory = 'circel': no such trajectory (did you mean 'circle'?); "
        "known: 'circle', 'circle_small', 'line'",
    ),
    (
        'unknown kind of trajectory',
        'type: line',
        'type: lines',
        'type: lines',
        "trajectories.line.type = 'lines': expected one of 'cardioid', 'circle', 'line', "
        "'square', 'waypoints' (did you mean 'line'?)",
    ),
    (
        'trajectory without a kind',
        '    type: line\n',
        '',
        '  line:',
        "trajectories.line.type: missing; expected one of 'cardioid', 'circle', 'line', "
        "'square', 'waypoints'",
    ),
    (
        'NaN in a trajectory',
        'end: [0.11, 0.08, 0.18]',
        'end: [0.11, .nan, 0.18]',
        'end: [0.11',
        'trajectories.line.end[1] = nan: expected a number',
    ),
    (
        'line of no length',
        'end: [0.11, 0.08, 0.18]',
        'end: [0.11, -0.08, 0.18]',
        '  line:',
        'trajectories.line: start and end are the same point [0.11, -0.08, 0.18]',
    ),
    (
        'trajectory faster than the jump limit',
        'radius: 0.1363\n    speed: 0.03',
        'radius: 0.1363\n    speed: 6',
        'speed: 6',
        'trajectories.circle.speed = 6: expected less than 5: supervisor.max_pose_jump_m times '
        'sensors.pose_topic.rate_hz, else the motion itself is taken for a jump',
    ),
    (
        'pressures of an arm that has none',
        'supervisor:\n',
        'supervisor:\n  pressure_watch: {response_s: 0.1, max_error_Pa: 5000}\n',
        'pressure_watch',
        'supervisor.pressure_watch: belongs to arms whose actuators are set by pressure',
    ),
    (
        'name of a trajectory that is not one',
        '  line:',
        '  a/b:',
        '  a/b:',
        "trajectories.a/b: name 'a/b': expected text of lowercase letters, digits and _, "
        'starting with a letter',
    ),
    (
        'duplicate key',
        'model: cable_statics',
        'model: cable_statics\nmodel: constant_curvature',
        'model: constant_curvature',
        "model: duplicate key 'model'; first on line 43",
    ),
    (
        'field that does not exist at all',
        'model: cable_statics',
        'model: cable_statics\nxyzzy: 1',
        'xyzzy',
        "xyzzy = 1: unknown field 'xyzzy'; known: 'name', 'description', 'gravity_m_s2', "
        "'medium', 'tip_load_kg', 'arm', 'model', 'residual', 'drives', 'gripper', 'sensors', "
        "'estimator', 'controller', 'supervisor', 'trajectories', 'default_trajectory', "
        "'recording', 'plant'",
    ),
]


@pytest.mark.parametrize(
    ('old', 'new', 'place', 'message'),
    [case[1:] for case in SINGLE],
    ids=[case[0] for case in SINGLE],
)
def test_one_mistake_is_one_message(old, new, place, message, tmp_path):
    text = edited(old, new)
    assert problems_of(text, tmp_path) == [(line_of(text, place), message)]


@pytest.mark.parametrize('step', [0.002, 0.0101])
def test_plant_step_beyond_its_own_bound_or_the_control_period(step, tmp_path):
    text = edited('time_step_s: 0.002', f'time_step_s: {step}').replace(
        'controller:\n  rate_hz: 100.0', 'controller:\n  rate_hz: 800.0'
    )
    text = text.replace('rate_hz: 100.0                      # [A]', 'rate_hz: 800.0 #')
    if step == 0.002:
        assert [m for _, m in problems_of(text, tmp_path)] == [
            'plant.time_step_s = 0.002: expected at most the control period 0.00125 s '
            '(controller.rate_hz = 800)'
        ]
    else:
        assert [m for _, m in problems_of(text, tmp_path)] == [
            'plant.time_step_s = 0.0101: expected a number > 0 and <= 0.01'
        ]


def test_block_of_the_wrong_kind(tmp_path):
    text = edited('pose_topic:  ', 'pose_topic: [1, 2]\n  pose_topci:  ')
    assert [m for _, m in problems_of(text, tmp_path)] == [
        'sensors.pose_topic = [1, 2]: expected a mapping of the fields rate_hz, delay_s, '
        'position_noise_m, topic',
        "sensors.pose_topci = {rate_hz: 100.0}: unknown field 'pose_topci' (did you mean "
        "'pose_topic'?)",
    ]


@pytest.mark.parametrize(
    ('angles', 'missing'),
    [((0.0, 60.0, 120.0), '120 to 360'), ((0.0, 180.0, 90.0), '180 to 360')],
)
def test_cables_all_on_one_side(angles, missing, tmp_path):
    text = TEXT
    for old, new in zip((0.0, 120.0, 240.0), angles):
        text = text.replace(f'angle_deg: {old}', f'angle_deg: {new} ', 1)
    found = [m for _, m in problems_of(text, tmp_path)]
    ordered = ', '.join(f'{a:g}' for a in sorted(angles))
    assert found[0] == (
        f"arm.sections[0].name = 'proximal': cables at {ordered} deg leave no way to bend towards "
        f'{missing} deg; expected gaps below 180 deg'
    )


def test_section_with_too_few_cables(tmp_path):
    text = edited('    - {<<: *cable, name: distal_3, section: distal, angle_deg: 240.0}\n', '')
    assert problems_of(text, tmp_path) == [
        (
            line_of(text, 'name: distal\n'),
            "arm.sections[1].name = 'distal': has 2 cables (at 0, 120 deg) in actuators; "
            'expected at '
            'least 3, not all on one side',
        )
    ]


def test_cable_radius_in_the_way_of_bending(tmp_path):
    text = edited('cable_radius_m: 0.0125', 'cable_radius_m: 0.06')
    assert problems_of(text, tmp_path)[0] == (
        line_of(text, 'cable_radius_m: 0.06'),
        'arm.sections[0].cable_radius_m = 0.06: expected less than 0.04099 m (length_m / bending '
        'angle), else the inner cable has no length left when fully bent',
    )


def test_all_problems_at_once_in_the_order_of_the_file(tmp_path):
    """Wrong fields hide neither each other nor what is wrong between the valid blocks."""
    text = TEXT
    for old, new in (
        ('9.81', '98.1'),
        ('model: cable_statics', 'model: cosserat'),
        ('name: proximal_3', 'name: proximal_2'),
        ('position_noise_m: 2.0e-4', 'position_noise_m: -1'),
        ('command_timeout_s: 0.1', 'command_timeout_s: 0.001'),
        ('default_trajectory: circle', 'default_trajectory: cirle'),
    ):
        assert old in text
        text = text.replace(old, new)
    found = problems_of(text, tmp_path)
    assert [m.split(' = ')[0] for _, m in found] == [
        'gravity_m_s2',
        'arm.actuators[2].name',
        'model.kind',
        'supervisor.command_timeout_s',
        'plant.pose_sensor.position_noise_m',
        'default_trajectory',
    ]
    assert [line for line, _ in found] == sorted(line for line, _ in found)


def test_a_mistake_brings_no_other_with_it_in_a_file_that_names_no_default_trajectory(tmp_path):
    text = edited('default_trajectory: circle\n', '').replace('9.81', '98.1')
    text = text.replace('settle_timeout_s: 3.0', 'settle_timeout_s: -1')
    found = [m.split(' = ')[0] for _, m in problems_of(text, tmp_path)]
    assert found == ['gravity_m_s2', 'controller.settle_timeout_s']


def test_mistake_behind_an_anchor_is_told_once(tmp_path):
    text = edited('max_speed_m_s: 0.02 ', 'max_speed_m_s: 0 ')
    assert problems_of(text, tmp_path) == [
        (
            line_of(text, 'max_speed_m_s: 0 '),
            'arm.actuators[0].max_speed_m_s = 0: expected a number > 0',
        )
    ]


# -- files that are no rig at all -------------------------------------------------------------


@pytest.mark.parametrize(
    ('content', 'message'),
    [
        ('', 'the file is empty; expected a mapping of fields'),
        ('# only a comment\n', 'the file is empty; expected a mapping of fields'),
        ('- a\n- b\n', '1: expected a mapping of fields, found a list'),
        ('hello\n', "1: expected a mapping of fields, found the single value 'hello'"),
        ('a: [1, 2\nb: 3\n', '2: not valid YAML: '),
        ('a: 1\n\tb: 2\n', '2: not valid YAML: '),
        ('a: 1\n--- \nb: 2\n', '2: not valid YAML: '),
        ('a: *nothing\n', '1: not valid YAML: '),
        ('a: !!python/object:os.system x\n', 'not valid YAML'),
        ('a: \x00\n', 'not valid YAML: '),
    ],
)
def test_text_that_is_no_rig(content, message, tmp_path):
    path = tmp_path / 'rig.yaml'
    path.write_text(content)
    with pytest.raises(RigError) as error:
        load_rig(path)
    assert str(error.value).startswith(f'{path}:')
    assert message in str(error.value)
    assert len(str(error.value).splitlines()) == 1


def test_alias_that_contains_itself(tmp_path):
    path = tmp_path / 'rig.yaml'
    path.write_text('name: x\nplant: &p\n  sections: *p\n')
    with pytest.raises(RigError, match='contains itself by an alias'):
        load_rig(path)


def test_missing_file_folder_and_bytes(tmp_path):
    with pytest.raises(RigError, match=r'nowhere\.yaml: no such file'):
        load_rig(tmp_path / 'nowhere.yaml')
    with pytest.raises(RigError, match='is a folder; expected a YAML file'):
        load_rig(tmp_path)
    (tmp_path / 'bytes.yaml').write_bytes(b'\xff\xfe\x00\x01name')
    with pytest.raises(RigError, match='is not text in UTF-8'):
        load_rig(tmp_path / 'bytes.yaml')


def test_unknown_builtin_name(tmp_path, monkeypatch):
    with pytest.raises(RigError) as error:
        load_rig('cabel_arm')
    known = ', '.join(repr(info.name) for info in list_rigs())
    assert str(error.value) == (
        f"unknown rig 'cabel_arm' (did you mean 'cable_arm'?); known: {known}, or a .yaml file"
    )
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'results').mkdir()
    with pytest.raises(RigError, match=r'results: is a folder; expected a rig file'):
        load_rig('results')


# -- every key and value of the shipped file --------------------------------------------------


def plain(value):
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return [plain(v) for v in value] if isinstance(value, tuple) else value


def places(value, path=()):
    """Yield the path of every key of every mapping."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, child in items:
        if isinstance(value, dict):
            yield (*path, key)
        if isinstance(child, (dict, list)):
            yield from places(child, (*path, key))


DATA = plain(read_yaml(SHIPPED).data)
PLACES = list(places(DATA))


def shown(path):
    return ''.join(f'[{p}]' if isinstance(p, int) else f'.{p}' for p in path)[1:]


def tuples(value):
    if isinstance(value, dict):
        return {k: tuples(v) for k, v in value.items()}
    return tuple(tuples(v) for v in value) if isinstance(value, list) else value


def load_data(data):
    document = YamlDocument('rig.yaml', tuples(data))
    return validate_rig(document)


def changed(path, change):
    data = copy.deepcopy(DATA)
    block = data
    for part in path[:-1]:
        block = block[part]
    change(block, path[-1])
    return data


def _fields(block):
    """Return the fields of a block by the names that a file has for them."""
    # A device or sensor is needed where the block is given.
    if isinstance(block, Devices | Sensors):
        return dict.fromkeys(block.model_extra, FieldInfo())
    fields = {field.alias or name: field for name, field in type(block).model_fields.items()}
    if isinstance(block, MocapConfig):
        fields |= {name: FieldInfo(default=None) for name in AS_STATED}
    return fields


def _member(block, name):
    if isinstance(name, int) or isinstance(block, dict):
        return block[name]
    names = {field.alias: own for own, field in type(block).model_fields.items()}
    return getattr(block, names.get(name, name))


def optional_keys():
    """Return the paths whose removal leaves a valid rig, by the schema."""
    rig = load_rig(SHIPPED)
    controller = chosen_part('controller', rig.tracker)[0].config.model_fields
    found = set()
    for path in PLACES:
        block = rig
        for part in path[:-1]:
            block = _member(block, part)
        if isinstance(block, dict | Sensors):
            found.add(path)  # one of several: no default among trajectories, a rate in each sensor
        elif not (_fields(block) | controller)[path[-1]].is_required():
            found.add(path)
    return found


OPTIONAL = optional_keys()


def test_the_walk_covers_the_file():
    assert len(PLACES) > 120
    assert 10 < len(OPTIONAL) < len(PLACES) / 2


def test_every_key_is_needed_or_optional_by_the_schema():
    for path in PLACES:
        data = changed(path, lambda block, key: block.pop(key))
        if path in OPTIONAL:
            try:
                load_data(data)
            except RigError as error:
                # The default is a valid value; it may contradict another field of this rig.
                assert 'missing' not in str(error) and path[-1] in str(error), shown(path)
            continue
        with pytest.raises(RigError) as error:
            load_data(data)
        assert path[-1] in str(error.value), (shown(path), str(error.value))


def test_every_misspelt_key_is_named_with_its_path():
    for path in PLACES:
        if path[0] == 'trajectories' and len(path) == 2:
            continue  # names of trajectories are free

        def misspell(block, key):
            block[f'{key[:-1]}x{key[-1]}'] = block.pop(key)

        with pytest.raises(RigError) as error:
            load_data(changed(path, misspell))
        wrong = (*path[:-1], f'{path[-1][:-1]}x{path[-1][-1]}')
        named = [p for p in error.value.problems if p.path == wrong]
        # What other fields may be there depends on these.
        discriminator = path == ('arm', 'kind') or (
            path[0] == 'trajectories' and path[-1] == 'type'
        )
        if discriminator:
            assert shown(path) in str(error.value)
            continue
        assert len(named) == 1, (shown(path), str(error.value))
        assert f"did you mean '{path[-1]}'" in named[0].message


def test_every_value_of_the_wrong_kind_is_named_with_its_path():
    for path in PLACES:

        def spoil(block, key):
            block[key] = {'nonsense': 1} if isinstance(block[key], list) else ['nonsense']

        with pytest.raises(RigError) as error:
            load_data(changed(path, spoil))
        assert any(p.path == path for p in error.value.problems), (shown(path), str(error.value))
        message = next(p for p in error.value.problems if p.path == path)
        assert 'expected' in message.message and 'another value' not in message.message
        assert 'nonsense' in (message.value or '')
