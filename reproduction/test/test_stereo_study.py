"""The bars of the rendered stereo study, on fewer shapes than its command takes."""

import numpy as np
import pytest

pytest.importorskip('cv2', reason='opencv-python-headless is not installed')

from softarm_reproduction.stereo_study import CASES, report, run

SHAPES = 10


@pytest.mark.parametrize('case', CASES, ids=lambda case: case.name.strip())
def test_the_tip_is_seen_within_the_bar_and_no_marker_is_invented(case):
    out = run(case, SHAPES, seed=3)
    rms = np.sqrt((out.tip_mm**2).mean())
    assert len(out.tip_mm) >= (SHAPES // 2 if case.hidden else SHAPES)
    if case.bar_mm is None:
        assert rms > 10.0  # what the refraction model is for
    else:
        assert rms < case.bar_mm
        assert out.wrong == 0
        # 3 numbers a point, 40 points: standard error of NEES / 3 is 0.13.
        assert 0.5 < out.nees < 1.6
    assert len(report([out])) == 3
