"""Which image files belong together, and what is left out."""

from pathlib import Path

import numpy as np
import pytest
from board_cases import CHESSBOARD, pairs_of_images

from softarm_ros.perception.stereo.camera import CameraError
from softarm_ros.perception.stereo.collect import (
    collect,
    files_alone,
    from_files,
    image_files,
    matched_files,
)


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


def test_files_are_in_the_order_of_their_numbers(tmp_path):
    """Names without leading zeros gave an arm that jumps between its 1st, 10th and 2nd image."""
    for n in (10, 1, 2, 100):
        (tmp_path / f'left_{n}.png').touch()
    for where in (str(tmp_path), str(tmp_path / 'left_*.png')):
        assert [path.stem for path in image_files(where)] == [f'left_{n}' for n in (1, 2, 10, 100)]


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


def test_files_without_a_partner_and_hidden_files_are_left_out(tmp_path):
    """MacOS adds a file `._left_9.png` to each file of a disk that it does not know."""
    matched(tmp_path, ['l_9', 'l_10', '._l_9'], ['r_9', 'r_11', '._r_9'])
    alone = files_alone([str(tmp_path / 'left'), str(tmp_path / 'right')])
    assert [[path.stem for path in paths] for paths in alone] == [['l_10'], ['r_11']]


def test_a_file_whose_name_looks_like_a_pattern_is_found(tmp_path):
    path = tmp_path / 'run [1]' / 'left_*.png'
    path.parent.mkdir()
    path.touch()
    assert image_files(str(path)) == [path]


def test_images_without_a_board_are_told_by_camera():
    pairs = pairs_of_images(4)
    grey = np.full_like(pairs[0][0], 90)
    shown = [pairs[0], (grey, pairs[1][1]), (pairs[2][0], grey), (grey, grey)]
    found = collect(CHESSBOARD, zip('abcd', shown))
    assert found.without_board == (('b', 'd'), ('c', 'd'))
    assert [view[0].name for view in found.views] == ['a']


@pytest.mark.parametrize('bits', [10, 12])
def test_boards_in_the_lower_bits_of_16_are_refused(tmp_path, bits):
    """Their corners were found in 4 or 16 grey levels, with up to twice the error."""
    import cv2

    for k, pair in enumerate(pairs_of_images(2)):
        for side, image in zip(('left', 'right'), pair):
            stored = image.astype(np.uint16) << (bits - 8)
            cv2.imwrite(str(tmp_path / f'{side}_{k}.png'), stored)
    places = [str(tmp_path / f'{side}_*.png') for side in ('left', 'right')]
    with pytest.raises(CameraError, match=r'000: too dark: no pixel is brighter than \d+ of 255'):
        collect(CHESSBOARD, from_files(places))


def test_black_images_are_reported_as_such():
    black = np.full((48, 64), 3, dtype=np.uint8)
    found = collect(CHESSBOARD, [('a', (black,)), ('b', (black,))])
    assert found.dark[0].startswith('no pixel is brighter than 3 of 255')


def test_a_black_image_among_good_ones_is_left_out():
    """The lens cap was on."""
    good = pairs_of_images(1)[0][0]
    found = collect(CHESSBOARD, [('a', (np.zeros_like(good),)), ('b', (good,))])
    assert found.without_board == (('a',),)
    assert found.dark == ('',)
