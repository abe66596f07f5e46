"""`softarm identify`: the delay of an arm behind its commands."""

import csv

import numpy as np
import pytest

from softarm_ros.cli.identification.common import all_parameters
from softarm_ros.cli.identification.fit import chosen, fit, untold
from softarm_ros.cli.identification.intervals import intervals
from softarm_ros.cli.identification.jumping_commands import jump_period_s, spread_rows
from softarm_ros.cli.identification.recordings import read_recordings
from softarm_ros.cli.measured_run import mount_of
from softarm_ros.rigs.field_values import values_of
from softarm_ros.rigs.loader import load_rig

ROWS, PERIOD_S = 1000, 0.01


@pytest.fixture(scope='module')
def trunk():
    return load_rig('trunk', ['recording.delay_s=0.2'])


def record(rig, path, commanded, followed):
    """Write commands (n, m) [m], and the tips of the rig's own model for those followed."""
    config, mount = rig.recording, mount_of(rig.recording)
    tips = rig.physics().section_tips_of(followed)[:, :, :3, 3]
    tips = tips + np.random.default_rng(11).normal(0.0, 2e-4, tips.shape)
    seen = mount.position + tips @ mount.rotation.T
    heading = [config.time, *(config.commands[n] for n in rig.actuator_names)]
    heading += [c for n in rig.section_names for c in config.section_tips[n]]
    time = PERIOD_S * np.arange(len(commanded))
    rows = np.column_stack([time, np.degrees(commanded / 0.010), seen.reshape(len(time), -1)])
    with path.open('w', newline='') as file:
        csv.writer(file).writerows([heading, *rows.tolist()])
    return path


def jumping(rig, time_s, hold_s):
    """Return commands (n, m) [m] that are constant for `hold_s` and then jump."""
    places = np.random.default_rng(5).uniform(-0.5, 0.5, (100, len(rig.actuator_names)))
    step = np.floor(time_s / hold_s + 1e-9).astype(int) + 10
    return places[step] * rig.actuator_limits().position_max


@pytest.mark.parametrize('groups', [('delay',), ('delay', 'lengths', 'mount')])
@pytest.mark.parametrize(
    ('delay_s', 'hold_s'), [(0.03, 0.5), (0.15, 0.5), (0.237, 1.0), (0.4, 0.5)]
)
def test_the_delay_behind_jumping_commands_is_identified(trunk, tmp_path, groups, delay_s, hold_s):
    time = PERIOD_S * np.arange(ROWS)
    commands = jumping(trunk, time, hold_s)
    path = record(trunk, tmp_path / 'a.csv', commands, jumping(trunk, time - delay_s, hold_s))
    recorded = read_recordings(trunk, [path], 'nothing')
    # Every fifth row; with even steps there would be few different times after a jump.
    found = fit(trunk, recorded, chosen(all_parameters(trunk), groups), 200)
    k = [p.name for p in found.parameters].index('delay')
    assert abs(found.values['recording.delay_s'] - delay_s) <= PERIOD_S
    low, high = found.parameters[k].interval(
        found.values['recording.delay_s'], *(intervals(found)[k] - found.x[k])
    )
    assert low <= delay_s <= high
    assert high - low < 0.1
    assert not any(name == 'delay' for one in untold(found) for name, _ in one.shares)
    truth = values_of(trunk, [field for field in found.values if 'length' in field])
    assert all(abs(found.values[field] - value) < 1e-3 for field, value in truth.items())


def test_a_delay_that_the_rows_do_not_determine_has_a_wide_interval(trunk, tmp_path):
    """One jump, and rows only before it and long after it."""
    time = PERIOD_S * np.arange(ROWS)
    commands = jumping(trunk, time, 5.0)
    path = record(trunk, tmp_path / 'b.csv', commands, jumping(trunk, time - 0.1, 5.0))
    table = path.read_text().splitlines()
    path.write_text('\n'.join([*table[:502], *table[551:]]) + '\n')
    recorded = read_recordings(trunk, [path], 'nothing')
    found = fit(trunk, recorded, chosen(all_parameters(trunk), ['delay']), ROWS)
    ((low, high),) = intervals(found)
    # From 0 to half a second, after which there are rows again.
    assert 0.2 + 0.2 * low < 0.02
    assert 0.2 + 0.2 * high > 0.45


def test_the_delay_behind_moving_commands_is_identified_by_the_search(trunk, tmp_path):
    time = PERIOD_S * np.arange(ROWS)
    speeds = np.random.default_rng(1).uniform(0.5, 2.0, 6)

    def swept(t):
        return 0.002 * np.sin(np.outer(t, speeds))

    path = record(trunk, tmp_path / 'c.csv', swept(time), swept(time - 0.31))
    recorded = read_recordings(trunk, [path], 'nothing')
    assert jump_period_s(recorded) is None
    found = fit(trunk, recorded, chosen(all_parameters(trunk), ['delay']), 200)
    assert found.tried is None
    assert abs(found.values['recording.delay_s'] - 0.31) < 0.005


def test_rows_are_spread_over_all_times_after_a_jump():
    rows = spread_rows(np.arange(1000), 5)
    assert len(rows) == 200
    assert np.all(np.diff(rows) > 0)
    assert rows[-1] < 1000
    assert len(np.unique(rows % 50)) > 45
    assert list(spread_rows(np.arange(7), 1)) == list(range(7))
