"""Every wrong rig file is refused with field, value, line and expected value."""

import pytest
from rig_mistakes import SINGLE, TEXT, edited, line_of, problems_of

from softarm_ros.rigs.loader import RigError, load_rig


@pytest.mark.parametrize(
    ('old', 'new', 'place', 'message'),
    [case[1:] for case in SINGLE],
    ids=[case[0] for case in SINGLE],
)
def test_single_mistake_gives_one_message_with_its_line(old, new, place, message, tmp_path):
    text = edited(old, new)
    assert problems_of(text, tmp_path) == [(line_of(text, place), message)]


@pytest.mark.parametrize('step', [0.002, 0.0101, 1e-09])
def test_plant_time_step_beyond_its_bound_or_the_control_period_is_refused(step, tmp_path):
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
            f'plant.time_step_s = {step}: expected a number >= 1e-06 and <= 0.01'
        ]


def test_list_for_a_block_is_refused_with_the_fields_of_the_block(tmp_path):
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
def test_cables_all_on_one_side_are_refused(angles, missing, tmp_path):
    text = TEXT
    for old, new in zip((0.0, 120.0, 240.0), angles):
        text = text.replace(f'angle_deg: {old}', f'angle_deg: {new} ', 1)
    found = [m for _, m in problems_of(text, tmp_path)]
    ordered = ', '.join(f'{a:g}' for a in sorted(angles))
    assert found[0] == (
        f"arm.sections[0].name = 'proximal': cables at {ordered} deg leave no way to bend towards "
        f'{missing} deg; expected gaps below 180 deg'
    )


def test_section_with_too_few_cables_is_refused(tmp_path):
    text = edited('    - {<<: *cable, name: distal_3, section: distal, angle_deg: 240.0}\n', '')
    assert problems_of(text, tmp_path) == [
        (
            line_of(text, 'name: distal\n'),
            "arm.sections[1].name = 'distal': has 2 cables (at 0, 120 deg) in actuators; "
            'expected at '
            'least 3, not all on one side',
        )
    ]


@pytest.mark.parametrize(
    ('rig', 'field'),
    [
        ('pneumatic_arm', 'drives.daq.command_timeout_s'),
        ('hydraulic_arm', 'drives.servo.command_timeout_s'),
    ],
)
def test_driver_timeout_in_milliseconds_is_refused(rig, field):
    with pytest.raises(RigError, match=rf'{field} = 200: expected a number > 0 and <= 60'):
        load_rig(rig, [f'{field}=200'])


def test_section_without_cables_is_refused(tmp_path):
    text = edited('{<<: *cable, name: distal_1, section: distal}', '{<<: *cable, name: distal_1}')
    for k in (2, 3):
        text = text.replace(f'name: distal_{k}, section: distal', f'name: distal_{k}')
    messages = [message for _, message in problems_of(text, tmp_path)]
    assert (
        "arm.sections[1].name = 'distal': has no cables in actuators; expected at least 3, not "
        'all on one side'
    ) in messages


def test_cable_radius_too_large_for_the_bending_angle_is_refused(tmp_path):
    text = edited('cable_radius_m: 0.0125', 'cable_radius_m: 0.06')
    assert problems_of(text, tmp_path)[0] == (
        line_of(text, 'cable_radius_m: 0.06'),
        'arm.sections[0].cable_radius_m = 0.06: expected less than 0.04099 m (length_m / bending '
        'angle), else the inner cable has no length left when fully bent',
    )


def test_all_problems_are_reported_in_the_order_of_the_file(tmp_path):
    """Wrong fields hide neither each other nor contradictions between valid blocks."""
    text = TEXT
    for old, new in (
        ('9.81', '98.1'),
        ('model: cable_statics', 'model: hydraulic_statics'),
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


def test_mistakes_cause_no_further_message_in_a_file_without_default_trajectory(tmp_path):
    text = edited('default_trajectory: circle\n', '').replace('9.81', '98.1')
    text = text.replace('settle_timeout_s: 3.0', 'settle_timeout_s: -1')
    found = [m.split(' = ')[0] for _, m in problems_of(text, tmp_path)]
    assert found == ['gravity_m_s2', 'controller.settle_timeout_s']


def test_mistake_in_a_yaml_anchor_is_reported_once(tmp_path):
    text = edited('max_speed_m_s: 0.02 ', 'max_speed_m_s: 0 ')
    assert problems_of(text, tmp_path) == [
        (
            line_of(text, 'max_speed_m_s: 0 '),
            'arm.actuators[0].max_speed_m_s = 0: expected a number > 0',
        )
    ]
