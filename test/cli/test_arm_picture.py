"""Pictures of arms in motion."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from softarm_ros.cli.arm_picture import SNAPSHOTS, film, render
from softarm_ros.cli.cli_errors import UsageError
from softarm_ros.rigs.loader import load_rig


def test_the_film_shows_the_body_where_it_was_and_the_tip_on_the_path():
    motion = film(load_rig('cable_arm'), 'line_small', seed=0)
    assert len(motion.bodies) == len(motion.joints) == SNAPSHOTS
    np.testing.assert_allclose(motion.bodies[:, 0], 0.0, atol=1e-3)
    np.testing.assert_allclose(motion.bodies[:, -1], motion.joints[:, -1], atol=1e-3)
    off = np.min(np.linalg.norm(motion.path[:, None] - motion.tips[None], axis=2), axis=1)
    assert np.max(off) < 5e-3


def test_a_picture_is_written_or_refused_by_name(tmp_path):
    rig = load_rig('cable_arm_single')
    file = render(rig, 'circle_small', tmp_path / 'arm.png')
    pixels = plt.imread(file)[..., :3]
    drawn = np.any(np.abs(pixels - pixels[0, 0]) > 0.1, axis=2)  # against the background
    assert 0.01 < np.mean(drawn) < 0.5
    with pytest.raises(UsageError, match='cannot be written'):
        render(rig, 'circle_small', tmp_path / 'missing' / 'arm.png')
