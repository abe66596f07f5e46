"""Flips of real motion capture are rejected; bends from positions match those of arcs."""

import os
from pathlib import Path

import numpy as np
import pytest

from softarm_reproduction import mocap_study

SHARED = Path(__file__).parents[2].parent / 'shared' / 'data'
DATA = Path(os.environ.get('SOFTARM_DATA', SHARED)) / 'asu_pneumatic'


def test_bends_from_positions_match_those_of_arcs():
    bend, heading = np.array([-1.0, -1e-6, 0.3, 1.2]), np.array([0.2, 0.0, -0.5, 0.7])
    length, (before, behind) = 0.15, mocap_study.PIECES[0]
    chord = length * np.sinc(bend / 2 / np.pi)
    middle = heading + bend / 2

    def along(angle):
        return np.stack([np.sin(angle), np.cos(angle)], axis=1)

    end = before * along(heading) + chord[:, None] * along(middle) + behind * along(heading + bend)
    start = np.full((4, 2), 0.3)
    found = mocap_study.bend_from_positions(start, heading, start + end, mocap_study.PIECES[0])
    np.testing.assert_allclose(found, bend, atol=1e-9)


@pytest.mark.parametrize('path', sorted(DATA.glob('*.csv')), ids=lambda path: path.stem)
def test_accepted_poses_turn_by_less_than_60_degrees_and_all_positions_are_kept(path):
    run = mocap_study.read(path)
    checked = mocap_study.check(run)
    assert max(c.across_deg for c in checked.values()) < 60.0
    assert all(c.position.all() for c in checked.values())


def test_data_folder_has_eight_recordings():
    if not DATA.is_dir():
        pytest.skip(f'no measurements at {DATA}; set SOFTARM_DATA to their folder')
    assert len(list(DATA.glob('*.csv'))) == 8
