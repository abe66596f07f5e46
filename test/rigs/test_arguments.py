"""Arguments that arrive as text."""

import pytest

from softarm_ros.rigs.arguments import number, settings_of, switch, whole
from softarm_ros.rigs.errors import RigError
from softarm_ros.rigs.loader import load_rig
from softarm_ros.rigs.rig_files import find_rig, rig_arguments


@pytest.mark.parametrize('text', ['true', 'True', 'TRUE', '1', 'yes', 'on', ' true '])
def test_switch_reads_words_for_true(text):
    assert switch('home', text) is True


@pytest.mark.parametrize('text', ['false', 'False', '0', 'no', 'off'])
def test_switch_reads_words_for_false(text):
    assert switch('home', text) is False


@pytest.mark.parametrize(
    'read, name, text, expected',
    [
        (switch, 'home', 'maybe', 'home:=maybe: expected true or false'),
        (switch, 'home', '', 'home:=: expected true or false'),
        (whole, 'laps', 'two', 'laps:=two: expected a whole number'),
        (whole, 'seed', '1.5', 'seed:=1.5: expected a whole number'),
        (number, 'rate', 'abc', 'rate:=abc: expected a number'),
        (number, 'rate', 'nan', 'rate:=nan: expected a finite number'),
    ],
)
def test_invalid_argument_is_refused_with_its_name_and_the_expected_value(
    read, name, text, expected
):
    with pytest.raises(RigError) as refused:
        read(name, text)
    assert str(refused.value) == expected


def test_number_and_whole_read_numbers():
    assert number('rate', '0.5') == 0.5
    assert whole('laps', '3') == 3


def test_settings_are_split_and_overridden_by_the_controller_argument():
    assert settings_of([]) == []
    assert settings_of(['a=1; b.c=[2, 3] ;', ' d=4']) == ['a=1', 'b.c=[2, 3]', 'd=4']
    assert settings_of([''], controller='') == []
    last = 'controller.kind=damped_inverse'
    found = settings_of(['controller.kind=resolved_rate'], controller='damped_inverse')
    assert found[-1] == last


def test_command_line_of_a_rig_has_its_name_or_file_and_its_settings_quoted(tmp_path):
    loaded = load_rig('cable_arm', ['tip_load_kg=0.01', 'gravity_m_s2=[0, 0, 0]'])
    assert rig_arguments(loaded.name, loaded.source, loaded.settings) == (
        "cable_arm --set tip_load_kg=0.01 --set 'gravity_m_s2=[0, 0, 0]'"
    )
    own = tmp_path / 'my arm.yaml'
    own.write_text(find_rig('cable_arm').read_text())
    mine = load_rig(own)
    assert rig_arguments(mine.name, mine.source, mine.settings) == f"'{own}'"
