"""Which image files belong together."""

from pathlib import Path

import pytest

from softarm_ros.perception.stereo.camera import CameraError
from softarm_ros.perception.stereo.collect import matched_files


def matched(folder, left, right):
    """Return name and file names of each pair that such files of two cameras make."""
    for side, names in (('left', left), ('right', right)):
        (folder / side).mkdir()
        for name in names:
            (folder / side / f'{name}.png').touch()
    pairs = matched_files([str(folder / 'left'), str(folder / 'right')])
    return [(name, *(path.stem for path in paths)) for name, paths in pairs]


def test_files_of_two_cameras_match_by_the_number_at_the_end(tmp_path):
    left, right = ['l_9', 'l_10', 'l_1000'], ['r_0010', 'r_1000', 'r_9', 'r_4']
    assert matched(tmp_path, left, right) == [
        ('009', 'l_9', 'r_9'),
        ('010', 'l_10', 'r_0010'),
        ('1000', 'l_1000', 'r_1000'),
    ]


def test_files_without_numbers_match_by_name(tmp_path):
    assert matched(tmp_path, ['a', 'b', 'd'], ['b', 'c', 'd']) == [
        ('b', 'b', 'b'),
        ('d', 'd', 'd'),
    ]


def test_files_of_other_names_match_in_order_and_the_pair_is_named_after_both(tmp_path):
    assert matched(tmp_path, ['l_near', 'l_far'], ['r_near', 'r_far']) == [
        ('l_far with r_far', 'l_far', 'r_far'),
        ('l_near with r_near', 'l_near', 'r_near'),
    ]


def test_other_names_and_counts_do_not_match(tmp_path):
    with pytest.raises(CameraError, match='no files of the same name, and not all names end in'):
        matched(tmp_path, ['l_near', 'l_mid', 'l_far'], ['r_near', 'r_far'])


def test_images_of_two_folders_with_the_same_name_are_told_apart(tmp_path):
    for folder in ('monday', 'tuesday'):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / 'board_01.png').touch()
    names = [name for name, _ in matched_files([str(tmp_path / '*' / '*.png')])]
    assert names == [str(Path(day, 'board_01.png')) for day in ('monday', 'tuesday')]
