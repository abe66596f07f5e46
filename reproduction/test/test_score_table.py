"""Arms of other laboratories by the rig files here, on rows not used to identify them."""

import os
from pathlib import Path

import numpy as np
import pytest

from softarm_reproduction.score_table import CASES, RIGS, rows_of, run_case
from softarm_ros.cli.baselines import MEAN, STRAIGHT
from softarm_ros.cli.prediction import loaded
from softarm_ros.models.arm_model import ModelError
from softarm_ros.rigs.loader import load_rig

REPOSITORY = Path(__file__).parents[2]
FOLDERS = [REPOSITORY.parent / 'shared' / 'data', Path(os.environ.get('SOFTARM_DATA', '/none'))]
DATA = next((folder for folder in FOLDERS if folder.is_dir()), None)
needs_data = pytest.mark.skipif(DATA is None, reason='no ../shared/data and no SOFTARM_DATA')

# RMS with these files [mm]; a deviation of more than a tenth fails.
SEEN = {
    ('tendon_tentacle', 'static_means'): (3.54, 10.21, 8.84, 23.20),
    ('asl_trunk', 'servo_controlled_1_0g'): (2.17, 5.22, 11.15),
    ('asl_trunk', 'servo_controlled_1_100g'): (2.33, 6.73, 15.03),
    ('stiffflop_pneumatic', 'noload'): (0.49,),
    ('stiffflop_pneumatic', 'load1'): (2.80,),
}


@pytest.mark.parametrize('path', sorted(RIGS.glob('*.yaml')), ids=lambda path: path.stem)
def test_every_rig_states_how_its_recordings_are_read(path):
    rig = load_rig(path)
    assert rig.name == path.stem
    assert rig.recording is not None
    assert any(case.rig == rig.name for case in CASES)


def test_force_on_the_tip_turns_with_the_tip():
    model = load_rig(RIGS / 'stiffflop_pneumatic.yaml').model()
    command, force = np.array([6e4, 1e4, 0.0]), np.array([0.1, 0.05, -0.2])
    shape = loaded(model, command, force)
    turn = shape.tip[:3, :3]
    again = model.forward(command, turn @ force).tip
    np.testing.assert_allclose(again, shape.tip, atol=1e-4)
    assert np.linalg.norm(shape.tip[:3, 3] - model.forward(command).tip[:3, 3]) > 1e-3
    with pytest.raises(ModelError):
        loaded(model, command, 1e3 * force)


@needs_data
@pytest.mark.parametrize('case', CASES, ids=lambda case: f'{case.rig}-{Path(case.file).stem}')
def test_scores_match_the_stated_values_and_beat_the_mean_pose(case):
    if not (DATA / case.file).is_file():
        pytest.skip(f'no {case.file}')
    scores = run_case(case, DATA)
    assert [s.by for s in scores[:2]] == [STRAIGHT, MEAN]
    assert len(rows_of(case, scores)) == sum(len(s.errors) for s in scores)
    found = [e.rms for e in scores[2].errors]
    seen = SEEN.get((case.rig, Path(case.file).stem))
    if seen is None:
        return  # asu: statics explain little of it (docs/recording.md)
    assert found == pytest.approx(seen, rel=0.1)
    assert all(e.rms < b.rms for e, b in zip(scores[2].errors, scores[1].errors))
