"""Pictures of arms in motion."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from softarm_ros.cli.arm_picture import SNAPSHOTS, draw_motion, film, render
from softarm_ros.cli.cli_errors import UsageError
from softarm_ros.cli.report_plotting import PALETTE, new_figure
from softarm_ros.rigs.loader import load_rig


def test_the_film_shows_the_body_where_it_was_and_the_tip_on_the_path():
    motion = film(load_rig('cable_arm'), 'line_small', seed=0)
    assert len(motion.bodies) == len(motion.joints) == SNAPSHOTS
    np.testing.assert_allclose(motion.bodies[:, 0], 0.0, atol=1e-3)
    np.testing.assert_allclose(motion.bodies[:, -1], motion.joints[:, -1], atol=1e-3)
    off = np.min(np.linalg.norm(motion.path[:, None] - motion.tips[None], axis=2), axis=1)
    assert np.max(off) < 5e-3


def test_the_picture_has_path_tip_and_every_moment_within_its_axes(tmp_path):
    rig = load_rig('cable_arm')
    motion = film(rig, 'line_small', seed=0)
    figure = new_figure(4.0)
    draw_motion(figure, rig, motion)
    (ax,) = figure.axes
    shown = {line.get_label(): np.transpose(line.get_data_3d()) for line in ax.lines}
    np.testing.assert_allclose(shown['reference'], 1e3 * motion.path)
    np.testing.assert_allclose(shown['tip, closed loop'], 1e3 * motion.tips)
    earlier = len(motion.bodies) - 1
    assert len(ax.lines) == 2 + earlier * len(rig.section_names)
    for points in (1e3 * motion.bodies.reshape(-1, 3), 1e3 * motion.path):
        for values, ends in zip(points.T, (ax.get_xlim(), ax.get_ylim(), ax.get_zlim())):
            assert min(ends) < values.min() and values.max() < max(ends)


def test_a_picture_is_written_or_refused_by_name(tmp_path):
    rig = load_rig('cable_arm_single')
    blue = [int(PALETTE[0][i : i + 2], 16) for i in (1, 3, 5)]
    pixels = plt.imread(render(rig, 'circle_small', tmp_path / 'arm.png'))[..., :3]
    assert np.any(np.all(np.rint(255.0 * pixels) == blue, axis=2))  # the tip's path
    with pytest.raises(UsageError, match='cannot be written'):
        render(rig, 'circle_small', tmp_path / 'missing' / 'arm.png')
