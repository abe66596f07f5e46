"""Rows of an excitation: which poses become rows, and with which command."""

import numpy as np

from softarm_ros.control.excited_rows import RowCollector


def frames(x=0.0, turn=0.0):
    """Return a pose of one section, turned by `turn` about z [rad]."""
    pose = np.eye(4)
    pose[:2, :2] = [[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]]
    pose[0, 3] = x
    return pose[None]


def follow(collected, times):
    for time_s in times:
        if collected.due(time_s):
            collected.on_the_way(time_s, frames(time_s))


def test_row_collector_keeps_ten_rows_per_second_of_faster_poses():
    collected = RowCollector()
    collected.command(0.0, np.zeros(2))
    follow(collected, 0.004 * np.arange(500))
    rows = collected.rows
    assert len(rows.time_s) == 20
    assert np.diff(rows.time_s).min() >= 0.1 - 1e-9
    np.testing.assert_array_equal(rows.section_tips[:, 0, 0, 3], rows.time_s)


def test_row_has_the_newest_command_not_later_than_its_pose():
    collected = RowCollector()
    for k in range(50):
        collected.command(0.02 * k, np.array([float(k)]))
    follow(collected, (0.0, 0.1, 0.2399, 0.46, 5.0))
    np.testing.assert_array_equal(collected.rows.commands[:, 0], [0, 5, 11, 23, 49])


def test_poses_before_the_first_command_make_no_rows():
    collected = RowCollector()
    follow(collected, (0.0, 0.5))
    assert collected.rows is None and collected.newest_command is None
    collected.command(1.0, np.ones(2))
    follow(collected, (0.9, 1.0))
    np.testing.assert_array_equal(collected.rows.time_s, [1.0])


def test_mean_pose_at_rest_averages_position_and_rotation():
    collected = RowCollector()
    turns = np.linspace(-0.3, 0.5, 9)
    collected.at_rest(np.array([0.01]), [frames(0.1 + t, t) for t in turns])
    rows = collected.rows
    assert np.isnan(rows.time_s).all() and rows.commands.tolist() == [[0.01]]
    np.testing.assert_allclose(rows.section_tips[0], frames(0.2, 0.1), atol=1e-12)


def test_rows_keep_all_sections_or_the_tip_alone_whichever_most_rows_have():
    def rows(*widths):
        collected = RowCollector()
        for k, width in enumerate(widths):
            collected.at_rest(np.full(3, float(k)), [np.tile(np.eye(4), (width, 1, 1))])
        return collected.rows

    mostly = rows(2, 1, 2, 2)  # the first section was hidden at one place
    assert mostly.section_tips.shape == (3, 2, 4, 4)
    assert mostly.commands[:, 0].tolist() == [0.0, 2.0, 3.0]
    assert rows(1, 1, 2).section_tips.shape == (3, 1, 4, 4)
