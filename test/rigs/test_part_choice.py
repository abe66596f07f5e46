"""A rig names its controller; another controller uses the fields that both have."""

import pickle

import numpy as np
import pytest

from softarm_ros.rigs.errors import RigError
from softarm_ros.rigs.loader import list_rigs, load_rig
from softarm_ros.rigs.part_choice import chosen_part
from softarm_ros.rigs.part_registry import kinds_of
from softarm_ros.runtime.assembly import build_tracker
from softarm_ros.runtime.direct import run_direct

OTHER = 'controller.kind=damped_inverse'
STOP_S = 12.0  # simulated: approach, settling and part of the path


@pytest.mark.parametrize('name', [info.name for info in list_rigs()])
def test_every_rig_loads_with_every_controller(name):
    for kind in kinds_of('controller'):
        rig = load_rig(name, [f'controller.kind={kind}'])
        part, config = chosen_part('controller', rig.tracker)
        assert part.kind == kind
        assert config.feedback_gain_1_s == load_rig(name).tracker.of_part['feedback_gain_1_s']
        controller = build_tracker(rig, rig.model()).controller
        assert type(controller).__module__.endswith(f'controllers.{kind}')


def test_fields_of_the_replaced_controller_only_are_dropped():
    rig = load_rig('pam_arm', [OTHER])
    assert set(rig.tracker.of_part) == {
        *('feedback_gain_1_s', 'damping', 'max_correction_speed_m_s')
    }
    assert pickle.loads(pickle.dumps(rig)).tracker == rig.tracker


def test_setting_for_a_field_that_the_chosen_controller_lacks_is_refused():
    with pytest.raises(RigError, match=r'controller\.integral_gain_1_s2 = 9\.0: unknown field'):
        load_rig('pam_arm', [OTHER, 'controller.integral_gain_1_s2=9.0'])


@pytest.mark.parametrize(
    ('setting', 'message'),
    [
        (
            'controller.kind=resolved_rat',
            r"no such controller .did you mean 'resolved_rate'.*known:",
        ),
        ('controller.kind=3', r'controller\.kind = 3: expected text'),
        (
            'controller.feedback_gain_1_s=-1',
            r'controller\.feedback_gain_1_s = -1: expected a number >=',
        ),
        ('controller.feedback_gian_1_s=1', r"unknown field .*did you mean 'feedback_gain_1_s'"),
        ('controller.rate_hzz=1', r"unknown field .*did you mean 'rate_hz'"),
    ],
)
def test_mistakes_in_the_controller_block_are_named_with_field_and_setting(setting, message):
    expected = rf'cable_arm\.yaml: .*{message}.*; from the setting {setting!r}$'
    with pytest.raises(RigError, match=expected):
        load_rig('cable_arm', [setting])


def test_missing_controller_field_is_named_with_its_description():
    rig = load_rig('cable_arm')
    text = rig.source.read_text().replace('  damping: 1.0e-4 ', '  # ')
    with pytest.raises(
        RigError, match=r'controller\.damping: missing; expected a number > 0 and <= 1 .eps'
    ):
        _load_text(text)


def _load_text(text):
    from softarm_ros.rigs.loader import validate_rig
    from softarm_ros.rigs.yaml_document import parse_yaml

    return validate_rig(parse_yaml(text, 'rig.yaml'))


def test_damped_inverse_controller_tracks_within_all_actuator_limits():
    rig = load_rig('pneumatic_arm', [OTHER])
    now = 0.0

    def progress(output):
        nonlocal now
        now = output.stamp_s

    record = run_direct(
        rig, 'circle', laps=1, seed=0, progress=progress, should_stop=lambda: now > STOP_S
    )
    assert record.info.controller == 'damped_inverse'
    error = record.error()
    assert error.samples > 20
    assert 1e-4 < error.mean < 0.015 * record.info.arm_length_m
    limits, command = rig.actuator_limits(), record.samples.command
    assert np.all(command >= limits.position_min - limits.rounding)
    assert np.all(command <= limits.position_max + limits.rounding)
    speed = np.abs(np.diff(command, axis=0)) * rig.tracker.rate_hz
    assert np.all(speed <= limits.max_speed * (1.0 + 1e-6))
