"""The bars of the rendered stereo study, with fewer shapes than its command uses."""

import numpy as np
import pytest

pytest.importorskip('cv2', reason='opencv-python-headless is not installed')

from softarm_reproduction.stereo_study import CASES, report, run

SHAPES = 10


@pytest.mark.parametrize('case', CASES, ids=lambda case: case.name.strip())
def test_tip_error_is_below_the_bar_and_no_marker_is_wrong(case):
    out = run(case, SHAPES, seed=3)
    rms = np.sqrt((out.tip_mm**2).mean())
    assert len(out.tip_mm) >= (SHAPES // 2 if case.hidden else SHAPES)
    if case.bar_mm is None:
        assert rms > 10.0  # the reason for the refraction model
    else:
        assert rms < case.bar_mm
        assert out.wrong == 0
        # 3 numbers per point, 40 points: standard error of NEES / 3 is 0.13.
        assert 0.5 < out.nees < 1.6
    assert len(report([out])) == 3
