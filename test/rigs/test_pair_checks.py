"""Refused values of rigs with pairs of cables and recordings, with field and line."""

import re
from pathlib import Path

import pytest

from softarm_ros.rigs.errors import RigError
from softarm_ros.rigs.loader import load_rig

RIGS = Path(__file__).parents[2] / 'config' / 'rigs'
TRUNK = (RIGS / 'trunk.yaml').read_text(encoding='utf-8')
CABLE_ARM = (RIGS / 'cable_arm.yaml').read_text(encoding='utf-8')


def problems_of(folder, text):
    path = folder / 'rig.yaml'
    path.write_text(text, encoding='utf-8')
    with pytest.raises(RigError) as error:
        load_rig(path)
    return str(error.value)


def changed(text, pattern, replacement):
    """Replace the first match of a pattern, which must exist."""
    found, count = re.subn(pattern, replacement, text, count=1, flags=re.MULTILINE)
    assert count == 1, pattern
    return found


@pytest.mark.parametrize(
    ('pattern', 'replacement', 'message'),
    [
        (r'name: tip_2\n', 'name: tip_2\n      pair: false\n', r'arm.actuators\[5\].pair = false'),
        (
            r'^model: constant_curvature',
            'model: cable_statics',
            "expected one of 'constant_curvature', 'cosserat': 'cable_statics' is built on "
            "'cables', and this arm",
        ),
        (r'section: tip, gain_rad_m', 'section: top, gain_rad_m', 'no such section .did you mean'),
        (
            r'section: middle, gain_rad_m',
            'section: base, gain_rad_m',
            'expected every section at most once',
        ),
        (r'angle_deg: 90.0 ', 'angle_deg: 180.0 ', 'cables'),
        (
            r'  damping: 1.0e-3',
            '  damping: 1.0e-3\n  pretension_m: 0.001',
            'controller.pretension_m',
        ),
        (r'    backlash_m: 3.0e-4', '    backlash_m: 3.0e-4\n    slack_m: 0.001', 'slack_m'),
        (
            r'feedback_gain_1_s: 3.0 .*',
            'feedback_gain_1_s: 8.0',
            'expected less than 6.83: motors',
        ),
        (
            r'zero_offset_m: \[-2.3e-3, ',
            'zero_offset_m: [',
            'expected one for each actuator, or none: 6',
        ),
        (r'passing_radius_m: 0.015', 'passing_radius_m: 0.035', 'expected less than outer_radius'),
        (r'    base_1: u3_cmd_deg\n', '', 'recording.commands: missing: base_1'),
        (r'    tip: \[x3', '    tpi: [x3', 'no such section .did you mean'),
        (r'      pulley_radius_m: 0.010 .*\n', '', "command_unit is 'deg'"),
        (r'x_axis: \[[^]]*\]', 'x_axis: [0.0, -1.0, 0.0]', 'nearly. parallel'),
        (r'z_axis: \[[^]]*\]', 'z_axis: [0.0, 0.0, 0.0]', 'expected a vector that is not zero'),
    ],
)
def test_mistake_in_an_arm_of_cable_pairs_is_refused(tmp_path, pattern, replacement, message):
    text = problems_of(tmp_path, changed(TRUNK, pattern, replacement))
    assert re.search(message, text), text


@pytest.mark.parametrize(
    ('pattern', 'replacement', 'message'),
    [
        (
            r'      cable_radius_m: 0.0125 .*',
            '      cable_radius_m: 0.0125\n      passing_radius_m: 0.005',
            r'arm.sections\[0\].passing_radius_m = 0.005',
        ),
        (
            r'      cable_radius_m: 0.0125 .*',
            '      cable_radius_m: 0.0125\n      rest_bend_deg: [1.0, 0.0]',
            r'arm.sections\[0\].rest_bend_deg = \[1, 0\]',
        ),
        (
            r'      angle_deg: 0\.0$',
            '      angle_deg: 0.0\n'
            '      bends: [{section: proximal, gain_rad_m: 80.0, angle_deg: 0.0}]',
            'only pairs have them',
        ),
        (r'plant:\n', 'plant:\n  pair_pretension_m: 0.001\n', 'no actuator is a pair'),
        (
            r'  pretension_m: 2.0e-3 .*',
            '  pretension_m: 0.2',
            r'controller.pretension_m = 0.2: expected 0 to below the range of distal_1, 0.1 m',
        ),
        (
            r'      outer_radius_m: 0.016 .*',
            '      outer_radius_m: 0.016\n      passing_radius_m: 0.005',
            r'plant.sections\[0\].passing_radius_m = 0.005',
        ),
    ],
)
def test_mistake_in_an_arm_of_single_cables_is_refused(tmp_path, pattern, replacement, message):
    text = problems_of(tmp_path, changed(CABLE_ARM, pattern, replacement))
    assert re.search(message, text), text


def test_bends_for_only_some_pairs_are_refused(tmp_path):
    text = changed(TRUNK, r'      bends:\n(        - .*\n){3}', '')
    assert 'expected for all actuators or none' in problems_of(tmp_path, text)


def test_gains_that_leave_out_a_bending_direction_are_refused(tmp_path):
    # The second motor of the base does the same as the first.
    first = re.search(r'      bends:\n((?:        - .*\n){3})', TRUNK).group(1)
    blocks = re.findall(r'(?:        - \{section.*\n){3}', TRUNK)
    text = TRUNK.replace(blocks[1], first)
    assert 'make only 5 of 6 bends' in problems_of(tmp_path, text)


def test_rig_offers_only_the_models_of_its_arm():
    trunk = load_rig('trunk')
    assert trunk.model_names == ('constant_curvature', 'cosserat')
    with pytest.raises(RigError, match="model 'cable_statics': expected one of 'constant_curv"):
        trunk.model('cable_statics')
    assert load_rig('cable_arm').model_names == (
        'cable_statics',
        'constant_curvature',
        'cosserat',
        'heavy_cable_statics',
    )
