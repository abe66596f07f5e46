"""Hysteresis of actuators, identified from a recording and written into a rig file."""

from itertools import pairwise

import numpy as np
import pytest

from softarm_ros.cli.identification.command import Asked, run
from softarm_ros.cli.identification.common import all_parameters, spelled_out
from softarm_ros.cli.identification.fit import chosen, fit
from softarm_ros.cli.identification.recordings import read_recordings
from softarm_ros.cli.measured_excitation import write_excitation
from softarm_ros.control.excited_rows import ExcitedRows
from softarm_ros.rigs.errors import RigError
from softarm_ros.rigs.hysteresis_config import hysteresis_of, without_hysteresis
from softarm_ros.rigs.loader import load_rig

WEIGHTS, SHARE = (0.0, 0.1, 0.2, 0.0), 0.15
NOISE_M = 2e-4


@pytest.fixture(scope='module')
def recording(tmp_path_factory):
    """Return rig and file: steps between places, of an arm with known hysteresis and noise."""
    rig, rng = load_rig('pneumatic_arm'), np.random.default_rng(2)
    known = without_hysteresis(rig)
    count = len(known.weights)
    config = known.model_copy(
        update={'weights': (WEIGHTS,) * count, 'lag_shares': (SHARE,) * count}
    )
    model, limits = rig.physics(), rig.actuator_limits()
    low, high = limits.position_min, limits.position_max
    places = low + rng.uniform(0.0, 0.6, (25, len(low))) * (high - low)
    places[0] = 0.0
    commands = np.concatenate(
        [a + np.clip(np.linspace(0, 2, 20), 0, 1)[:, None] * (b - a)
         for a, b in pairwise(places)]
    )  # fmt: skip
    time = 0.1 * np.arange(len(commands))
    h = hysteresis_of(rig, config)
    done = commands - h.lacking(h.remembered(commands, time))
    tips = np.array([model.forward(one).section_tips for one in done])
    tips[..., :3, 3] += rng.normal(0.0, NOISE_M, tips[..., :3, 3].shape)
    path = tmp_path_factory.mktemp('hysteresis') / 'steps.csv'
    write_excitation(rig, ExcitedRows(time, commands, tips), path)
    return rig, path


def test_hysteresis_weights_and_lag_share_are_identified(recording):
    rig, path = recording
    known = spelled_out(rig)
    recorded = read_recordings(known, [path], 'nothing')
    parameters = chosen(all_parameters(known), ('hysteresis',))
    found = fit(known, recorded, parameters, 300).rig(known).hysteresis
    # The effects of the two narrowest plays differ by less than the noise of the tips.
    np.testing.assert_allclose(found.weights[0], WEIGHTS, atol=0.04)
    np.testing.assert_allclose(sum(found.weights[0]), sum(WEIGHTS), atol=0.02)
    assert found.lag_shares[0] == pytest.approx(SHARE, abs=0.02)


def test_written_hysteresis_loads_as_a_memory_and_a_wrong_one_is_refused(recording, tmp_path):
    rig, path = recording
    output = tmp_path / 'new.yaml'
    lines = list(run(rig, Asked((path,), ('hysteresis',), 'blocks', output=output)))
    assert any('play 0.1' in line for line in lines)
    new = load_rig(str(output))
    assert new.hysteresis is not None
    assert new.memory() is not None
    assert rig.memory() is None
    text = output.read_text().replace('lag_shares: [', 'lag_shares: [0.1, ')
    output.write_text(text)
    with pytest.raises(RigError, match='lag_shares'):
        load_rig(str(output))


def test_stood_s_leaves_out_rows_soon_after_a_command_change(recording):
    rig, path = recording
    (every,) = read_recordings(rig, [path], 'nothing')
    (stood,) = read_recordings(rig, [path], 'nothing', stood_s=0.5)
    commands, time = every.whole.commands, every.whole.time_s
    for row in stood.train:
        before = commands[(time > time[row] - 0.45) & (time <= time[row])]
        assert np.all(before == commands[row])
    assert 0.15 * len(every.train) < len(stood.train) < 0.5 * len(every.train)
    gone = len(every.train) - len(stood.train)
    assert stood.whole.notes[-1].startswith(f'left out: {gone} of {len(every.train)} rows, whose')
    assert every.whole.notes == stood.whole.notes[:-1]
