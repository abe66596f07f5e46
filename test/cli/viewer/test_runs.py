"""Runs started from the browser's controls, without a browser: which command, and when."""

from types import SimpleNamespace

import pytest

viser = pytest.importorskip('viser', reason='needs viser')

from softarm_ros.cli.viewer import runs
from softarm_ros.rigs.loader import load_rig


@pytest.fixture
def controls():
    server = viser.ViserServer(host='127.0.0.1', port=8270, verbose=False)
    said = []
    made = runs.RunControls(server.gui, load_rig('cable_arm'), said.append)
    yield SimpleNamespace(made=made, said=said)
    made.close()
    server.stop()


def test_run_command_has_the_options_of_softarm_run():
    rig = load_rig('cable_arm', ['tip_load_kg=0.01'])
    words = runs.run_command(rig, 'circle', 'damped_inverse', 'constant_curvature')[3:]
    assert words[0] == 'run'
    assert words[2:] == [
        '--backend', 'sim', '--trajectory', 'circle', '--controller', 'damped_inverse',
        '--model', 'constant_curvature', '--set', 'tip_load_kg=0.01',
    ]  # fmt: skip
    assert '--goals' in runs.run_command(rig, runs.GOALS, "the rig's", "the rig's")


def test_no_run_is_started_while_a_graph_is_running(controls):
    controls.made.update(heard=True)
    assert not controls.made._folder.visible
    controls.made._asked.put('run')
    controls.made.update(heard=True)
    assert controls.said == ['a run is under way; end it first']
    controls.made.update(heard=False)
    assert controls.made._folder.visible
    controls.made._asked.put('end')
    controls.made.update(heard=False)
    assert controls.said[-1] == 'no run that was started here is under way'


def test_a_failed_run_is_reported_with_exit_status_and_reason(controls, monkeypatch, tmp_path):
    # A trajectory that the rig does not have: the command itself refuses it.
    real = runs.run_command
    monkeypatch.setattr(
        runs, 'run_command', lambda rig, t, c, m: real(rig, str(tmp_path / 'none.yaml'), c, m)
    )
    controls.made._asked.put('run')
    controls.made.update(heard=False)
    assert controls.said[-1].startswith('begun: softarm run')
    controls.made._process.wait(60.0)
    controls.made.update(heard=False)
    assert 'exit status' in controls.said[-1]
    assert 'none.yaml' in controls.said[-1]
