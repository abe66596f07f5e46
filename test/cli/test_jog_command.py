"""`softarm jog`: accepted and refused arguments, confirmation and exit status."""

import pytest
from typer.testing import CliRunner

from softarm_ros.cli.cli_errors import UsageError
from softarm_ros.cli.jog_command import SLOW, JogOptions, describe, plan_move, report_end
from softarm_ros.cli.main import app
from softarm_ros.rigs.errors import RigError
from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.jog import JogMove, JogStep


@pytest.fixture(scope='module')
def rig():
    return load_rig('cable_arm')


def test_amount_and_speed_are_in_display_units(rig):
    move = plan_move(rig, JogOptions('distal_2', -3.0, speed=5.0, hold_s=2.0))
    assert move.actuator == rig.actuator_names.index('distal_2')
    assert (move.amount, move.speed, move.hold_s) == pytest.approx((-0.003, 0.005, 2.0))
    pressure = plan_move(load_rig('pneumatic_arm'), JogOptions('distal_chamber_1', 10.0))
    assert pressure.amount == pytest.approx(1e4)


def test_the_default_speed_is_slow(rig):
    move = plan_move(rig, JogOptions('proximal_1', 1.0))
    assert move.speed == pytest.approx(SLOW * rig.actuators[0].max_speed_m_s)


def test_describe_states_the_planned_move(rig):
    options = JogOptions('proximal_1', 2.0, home=True)
    assert describe(rig, plan_move(rig, options), options) == (
        'cable_arm (hardware): homes all actuators, then moves proximal_1 by +2 mm at 2 mm/s'
    )


@pytest.mark.parametrize(
    ('changes', 'said'),
    [
        ({'actuator': 'proximal_9'}, r"no actuator 'proximal_9'.*proximal_1"),
        ({'backend': 'sim'}, r"--backend 'sim': expected hardware or emulated"),
        ({'amount': 0.0}, r'AMOUNT 0: expected up to 100 mm'),
        ({'amount': 101.0}, r'AMOUNT 101: expected up to 100 mm'),
        ({'amount': float('nan')}, r'AMOUNT nan'),
        ({'speed': 0.0}, r'--speed 0: expected above 0, at most 20 mm/s'),
        ({'speed': 20.1}, r'--speed 20\.1'),
        ({'speed': float('nan')}, r'--speed nan'),
        ({'hold_s': -1.0}, r'--hold-s -1'),
    ],
)
def test_invalid_options_are_refused_with_their_limit(rig, changes, said):
    options = JogOptions(**({'actuator': 'proximal_1', 'amount': 1.0} | changes))
    with pytest.raises(UsageError, match=said):
        plan_move(rig, options)


def test_a_rig_without_devices_is_refused(rig):
    bare = rig.model_copy(update={'devices': None})
    with pytest.raises(RigError, match="declares no devices for backend 'hardware'"):
        plan_move(bare, JogOptions('proximal_1', 1.0))


def test_no_driver_is_built_without_confirmation(monkeypatch):
    from softarm_ros.cli import jog_command

    monkeypatch.setattr(
        jog_command, 'build_actuator_driver', lambda *_: pytest.fail('a driver was built')
    )
    answered = CliRunner().invoke(app, ['jog', 'cable_arm', 'proximal_1', '-2'], input='n\n')
    assert answered.exit_code == 1
    assert 'moves proximal_1 by -2 mm' in answered.stdout
    assert 'Move?' in answered.stdout


@pytest.mark.parametrize(('measured_mm', 'status'), [(1.9, 0), (1.2, 0), (0.1, 1), (-2.0, 1)])
def test_a_move_that_ends_away_from_its_target_is_reported_as_a_failure(rig, measured_mm, status):
    said = []
    end = JogStep(2.0, 2e-3, 1e-3 * measured_mm)
    assert report_end(rig.actuator_limits(), JogMove(0, 2e-3, 2e-3), end, said.append) == status
    assert said[0].startswith('proximal_1: commanded 2.000 mm, measured')
    assert ('not where it was sent' in said[-1]) == bool(status)
