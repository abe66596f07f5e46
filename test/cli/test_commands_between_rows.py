"""Commands of rows that are left out still count for the delay, memory and zero of the others."""

import csv

import numpy as np
import pytest

from softarm_ros.cli.identification.recordings import read_recordings
from softarm_ros.cli.read_run import read_run
from softarm_ros.rigs.hysteresis_config import without_hysteresis
from softarm_ros.rigs.loader import load_rig
from softarm_ros.rigs.recording import RecordingConfig

PERIOD_S, DELAY_S = 0.02, 0.15
HELD = 25  # rows of a command
MOUNT = {'position_m': (0.0, 0.0, 0.0), 'z_axis': (0.0, 0.0, 1.0), 'x_axis': (1.0, 0.0, 0.0)}


def rig_of(**fields):
    """Return an arm with hysteresis, delayed actuators and a recording of its tip."""
    rig = load_rig('cable_arm')
    recording = RecordingConfig(
        time='t',
        commands={name: f'c_{name}' for name in rig.actuator_names},
        section_tips={'distal': ('x', 'y', 'z')},
        mount=MOUNT,
        **{'delay_s': DELAY_S, **fields},
    )
    still = without_hysteresis(rig)
    count = len(still.weights)
    hysteresis = still.model_copy(
        update={'weights': ((0.0, 0.0, 0.2, 0.0),) * count, 'lag_shares': (0.1,) * count}
    )
    return rig.model_copy(update={'recording': recording, 'hysteresis': hysteresis})


def write(rig, path, seen=None):
    """Write commands that are constant and then jump; the cells of an unseen tip are empty."""
    rng = np.random.default_rng(3)
    places = rng.uniform(-0.01, 0.01, (12, len(rig.actuator_names)))
    commands = np.repeat(places, HELD, axis=0)
    seen = np.ones(len(commands), dtype=bool) if seen is None else seen
    with path.open('w', newline='') as file:
        writer = csv.writer(file)
        writer.writerow(['t', *(f'c_{name}' for name in rig.actuator_names), 'x', 'y', 'z'])
        for i, command in enumerate(commands.tolist()):
            tip = [0.0, 0.0, 0.2] if seen[i] else ['', '', '']
            writer.writerow([round(i * PERIOD_S, 3), *command, *tip])
    return path


@pytest.mark.parametrize('zero', ['as_recorded', 'first_row'])
@pytest.mark.parametrize('settled_s', [0.0, 0.2])
def test_commands_of_rows_with_a_hidden_marker_still_count(zero, settled_s, tmp_path):
    """The marker is hidden in the first rows, and around jumps of the commands."""
    rig = rig_of(command_zero=zero, settled_s=settled_s)
    row = np.arange(12 * HELD)
    seen = (row > 2 * HELD) & ~((row % (3 * HELD) > HELD - 9) & (row % (3 * HELD) < HELD + 3))
    whole = read_run(rig, write(rig, tmp_path / 'whole.csv'))
    parts = read_run(rig, write(rig, tmp_path / 'parts.csv', seen))
    rows = np.flatnonzero(seen[np.round(whole.time_s / PERIOD_S).astype(int)])
    assert len(rows) < len(whole)
    np.testing.assert_array_equal(parts.time_s, whole.time_s[rows])
    np.testing.assert_array_equal(parts.commands, whole.commands[rows])
    np.testing.assert_array_equal(parts.lagging, whole.lagging[rows])
    assert parts.notes[0] == f'left out: {np.sum(~seen)} incomplete rows'


def test_rows_at_a_command_jump_are_not_settled(tmp_path):
    """The rows are further apart (20 ms) than the settling time (15 ms)."""
    rig = rig_of(settled_s=0.015, settled_within=0.0)
    path = write(rig, tmp_path / 'a.csv')
    run = read_run(rig, path)
    jumped = np.isin(np.round(run.time_s / PERIOD_S).astype(int) % HELD, [0])
    assert not jumped.any()


@pytest.mark.parametrize('settled_s', [0.0, 0.3])
def test_identification_and_score_read_the_same_rows_and_commands(settled_s, tmp_path):
    """The same delay and the same memory of commands, although some rows are left out."""
    rig = rig_of(settled_s=settled_s, reached={'proximal_1': 0.9})
    path = write(rig, tmp_path / 'a.csv')
    scored = read_run(rig, path)
    (recorded,) = read_recordings(rig, [path], 'nothing')
    seen = recorded.seen_by(rig, recorded.train)
    np.testing.assert_array_equal(seen.time_s, scored.time_s)
    np.testing.assert_array_equal(seen.commands, scored.commands)
    np.testing.assert_array_equal(seen.lagging, scored.lagging)
    later = rig.model_copy(
        update={'recording': rig.recording.model_copy(update={'delay_s': 2.0 * DELAY_S})}
    )
    again = recorded.seen_by(later, recorded.train)
    np.testing.assert_array_equal(again.lagging, read_run(later, path).lagging)
