"""Calibration from rendered images of a board, compared with the cameras that rendered them."""

import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

cv2 = pytest.importorskip('cv2', reason='opencv-python-headless is not installed')

from board_cases import (
    CHARUCO,
    CHESSBOARD,
    SMALL,
    WINDOW,
    board_pose,
    held,
    pairs_of_images,
    rays,
    small_pair,
)

from softarm_ros.emulation.board_images import board_image
from softarm_ros.geometry.poses import pose
from softarm_ros.geometry.rotations import exp_so3, log_so3
from softarm_ros.perception.stereo.boards import Board, BoardView
from softarm_ros.perception.stereo.calibrate_base import base_from_board, base_from_markers
from softarm_ros.perception.stereo.calibrate_camera import calibrate_camera
from softarm_ros.perception.stereo.calibrate_stereo import (
    board_misfit,
    calibrate_stereo,
    shared_corners,
)
from softarm_ros.perception.stereo.calibrate_window import calibrate_window
from softarm_ros.perception.stereo.camera import CameraError
from softarm_ros.perception.stereo.cameras import SIDES
from softarm_ros.perception.stereo.collect import collect, worth_keeping
from softarm_ros.perception.stereo.window import FlatWindow

COUNT = 10


def views_of(count=COUNT, board=CHESSBOARD, **case):
    images = pairs_of_images(count, board, **case)
    return collect(board, ((f'{n:02d}', pair) for n, pair in enumerate(images)))


@pytest.fixture(scope='module')
def views():
    return views_of()


@pytest.fixture(scope='module')
def stereo(views):
    return calibrate_stereo(CHESSBOARD, views.views, (SMALL, SMALL))


def exact_pairs(count, noise_px, seed=5, window=False, boards=None):
    """Yield pairs of views without images: projected corners, with noise."""
    rng = np.random.default_rng(seed)
    cameras, ids = small_pair(window), np.arange(CHESSBOARD.corners)
    for n, X in enumerate(held(count, seed) if boards is None else boards[:count]):
        corners = CHESSBOARD.points() @ X[:3, :3].T + X[:3, 3]
        yield tuple(
            BoardView(f'{n:02d}', ids, p + rng.normal(0.0, noise_px, p.shape))
            for p in (cameras.project(side, corners) for side in SIDES)
        )


@pytest.mark.parametrize('board', [CHESSBOARD, CHARUCO])
def test_corners_are_found_to_a_fraction_of_a_pixel(board):
    cameras, misses = small_pair(), []
    for X, shown in zip(held(4), pairs_of_images(4, board)):
        for side, image in zip(SIDES, shown):
            view = board.find(image, 'one')
            assert view is not None
            corners = board.points(view.ids) @ X[:3, :3].T + X[:3, 3]
            misses.append(view.pixels - cameras.project(side, corners))
    misses = np.concatenate(misses)
    assert np.sqrt((misses**2).mean()) < (0.08 if board is CHESSBOARD else 0.2)


def test_a_charuco_board_of_an_older_opencv_is_found_with_the_same_corners():
    """Boards with an even number of rows that were made before OpenCV 4.6 begin with white."""
    cv2 = pytest.importorskip('cv2')
    side = 60
    old = cv2.aruco.CharucoBoard(
        (CHARUCO.columns, CHARUCO.rows),
        CHARUCO.square_m,
        CHARUCO.marker_m,
        cv2.aruco.getPredefinedDictionary(cv2.aruco.DICT_4X4_50),
    )
    old.setLegacyPattern(True)
    size = (side * (CHARUCO.columns + 2), side * (CHARUCO.rows + 2))
    view = CHARUCO.find(old.generateImage(size, marginSize=side), 'old')
    assert view is not None
    assert len(view.ids) == CHARUCO.corners
    drawn = side * (CHARUCO.points()[:, :2] / CHARUCO.square_m + 2.0) - 0.5
    np.testing.assert_allclose(view.pixels, drawn, atol=0.05)


@pytest.mark.parametrize('square_m', [16e-6, 16.0, float('nan')])
def test_squares_in_another_unit_are_refused(square_m):
    with pytest.raises(CameraError, match=r'square = .* mm: expected 0\.1 to 1000 mm'):
        Board('chessboard', 9, 6, square_m)


def test_corners_keep_their_numbers_when_the_board_is_upside_down():
    rng = np.random.default_rng(0)
    turned = board_pose((0.075, 0.0, 0.5), (0.0, 0.0, np.pi - 0.1))
    view = CHESSBOARD.find(board_image(rays('left'), CHESSBOARD, turned, rng), 'turned')
    corners = CHESSBOARD.points() @ turned[:3, :3].T + turned[:3, 3]
    assert np.abs(view.pixels - small_pair().project('left', corners)).max() < 0.5


def test_camera_calibration_recovers_the_rendering_camera(views):
    fit = calibrate_camera(CHESSBOARD, [v[0] for v in views.views], SMALL, 'left')
    true = small_pair().left
    assert fit.rms_px < 0.12
    focal = np.diag(fit.camera.matrix)[:2] - np.diag(true.matrix)[:2]
    assert np.abs(focal).max() < 4.0 * fit.focal_sd_px.max()
    assert (
        np.abs(fit.camera.matrix[:2, 2] - true.matrix[:2, 2]).max() < 4.0 * fit.centre_sd_px.max()
    )
    assert fit.focal_sd_px.max() < 2.0
    assert not fit.outliers


def test_stereo_calibration_recovers_the_rendering_pair(stereo):
    true = small_pair()
    assert stereo.rms_px < 0.17  # of both coordinates
    assert stereo.cameras.baseline_m == pytest.approx(true.baseline_m, rel=2e-3)
    turn = stereo.cameras.X_RL[:3, :3] @ true.X_RL[:3, :3].T
    assert np.degrees(np.linalg.norm(log_so3(turn))) < 0.2
    assert stereo.flatness_m.max() < 3e-4


def test_mismatched_pair_is_named_with_the_cause_and_dropped_on_request():
    pairs = list(exact_pairs(COUNT, 0.05))
    pairs[4] = (pairs[4][0], BoardView('04', pairs[4][1].ids, pairs[7][1].pixels))
    fit = calibrate_stereo(CHESSBOARD, pairs, (SMALL, SMALL))
    assert '04' in fit.outliers
    assert any('pair 04' in text and 'moved between' in text for text in fit.warnings)
    kept = calibrate_stereo(CHESSBOARD, pairs, (SMALL, SMALL), drop_outliers=True)
    assert '04' in kept.dropped
    assert kept.rms_px < 0.1
    assert not kept.outliers


def mirrored(view):
    """Return the view of the mirror image: corners of each row are numbered the other way."""
    pixels = view.pixels.reshape(CHESSBOARD.rows, CHESSBOARD.columns, 2)[:, ::-1].reshape(-1, 2)
    return BoardView(view.name, view.ids, [SMALL[0] - 1, 0] + [-1, 1] * pixels)


def test_pairs_that_fit_no_two_cameras_are_refused_with_the_cause():
    good = list(exact_pairs(6, 0.05))
    one = [*good[:2], (good[2][0], mirrored(good[2][1])), *good[3:]]
    if int(cv2.__version__.split('.')[0]) >= 5:
        refusal = r'all pairs; pair 02: \d+ px from .* --drop-outliers'
        with pytest.raises(CameraError, match=refusal):
            calibrate_stereo(CHESSBOARD, one, (SMALL, SMALL))
    else:  # finds two cameras, with errors of many pixels
        fit = calibrate_stereo(CHESSBOARD, one, (SMALL, SMALL))
        assert fit.outliers == ('02',)
        assert re.search(r'pair 02: .* they are not one pair', '; '.join(fit.warnings))
    kept = calibrate_stereo(CHESSBOARD, one, (SMALL, SMALL), drop_outliers=True)
    assert kept.dropped == ('02',) and kept.rms_px < 0.1

    one_camera = [(left, mirrored(right)) for left, right in good]
    later = [(left, right) for (left, _), (_, right) in pairwise(good)]
    for pairs in (one_camera, later):
        with pytest.raises(CameraError, match=r'contradict one another by [\d.]+ px'):
            calibrate_stereo(CHESSBOARD, pairs, (SMALL, SMALL))
    with pytest.raises(CameraError, match='mm apart: expected two cameras'):
        calibrate_stereo(CHESSBOARD, [(left, left) for left, _ in good], (SMALL, SMALL))


def test_few_flat_images_in_the_middle_cause_warnings():
    X = [
        board_pose((0.075, 0.0, z), (0.07 * n, 0.03, 0.1 * n))
        for n, z in enumerate((0.5, 0.55, 0.6))
    ]
    ids, cameras = np.arange(CHESSBOARD.corners), small_pair()
    rng = np.random.default_rng(0)
    views = [
        BoardView(
            str(n),
            ids,
            cameras.project('left', CHESSBOARD.points() @ each[:3, :3].T + each[:3, 3])
            + rng.normal(0.0, 0.05, (54, 2)),
        )
        for n, each in enumerate(X)
    ]
    found = '\n'.join(calibrate_camera(CHESSBOARD, views, SMALL, 'left').warnings)
    assert 'left: 3 images: expected at least 10' in found
    assert 'cells of the image' in found
    assert 'tilt' in found


def test_board_that_looks_the_same_upside_down_is_refused_for_a_pair():
    with pytest.raises(CameraError, match='upside down'):
        calibrate_stereo(Board('chessboard', 9, 7, 0.02), [], (SMALL, SMALL))


def seen_apart(pair, left_rows, right_rows):
    """Return a pair of views of a ChArUco board with these rows of its corners (7 each)."""
    return tuple(
        BoardView(view.name, view.ids[kept], view.pixels[kept])
        for view, rows in zip(pair, (left_rows, right_rows))
        for kept in [np.isin(view.ids // 7, rows)]
    )


def test_pairs_whose_common_corners_are_on_one_line_are_left_out():
    """One such pair of a board that both cameras see well ended the whole calibration."""
    pairs = views_of(6, CHARUCO).views
    hidden = [seen_apart(pairs[0], (0, 1, 2), (2, 3, 4)), *pairs[1:]]
    assert len(np.intersect1d(hidden[0][0].ids, hidden[0][1].ids)) == 7
    fit = calibrate_stereo(CHARUCO, hidden, (SMALL, SMALL))
    assert fit.names == tuple(pair[0].name for pair in pairs[1:])
    assert fit.cameras.baseline_m == pytest.approx(0.15, abs=1e-3)
    assert shared_corners(CHARUCO, hidden[0]) is None
    assert shared_corners(CHARUCO, seen_apart(pairs[0], (0, 1, 2), (1, 2, 3))) is not None


def test_camera_calibration_refuses_two_images(views):
    with pytest.raises(CameraError, match='2 images: expected at least 3'):
        calibrate_camera(CHESSBOARD, [v[0] for v in views.views[:2]], SMALL, 'left')


def test_images_of_the_same_place_do_not_count_as_many(views):
    """Their noise averages out, and a focal length twice as large fits to 0.05 px."""
    rng = np.random.default_rng(0)
    first, second = (v[0] for v in views.views[:2])
    again = [
        BoardView(str(n), first.ids, first.pixels + rng.normal(0.0, 0.05, first.pixels.shape))
        for n in range(12)
    ]
    with pytest.raises(CameraError, match='left: the board lies at 2 places in 13 images'):
        calibrate_camera(CHESSBOARD, [*again, second], SMALL, 'left')


def test_base_pose_is_found_by_a_board_on_the_base(stereo):
    X_LO = board_pose((0.08, 0.01, 0.52), (0.2, -0.3, 0.1))
    X_BO = pose(exp_so3(np.array([0.0, 0.1, 0.4])), (0.02, 0.03, -0.004))
    rng = np.random.default_rng(9)
    shown = [tuple(board_image(rays(side), CHESSBOARD, X_LO, rng) for side in SIDES)]
    found = collect(CHESSBOARD, [('base', shown[0])])
    fit = base_from_board(small_pair(), CHESSBOARD, found.views, X_BO)
    true = X_LO @ np.linalg.inv(X_BO)
    assert np.linalg.norm(fit.X_LB[:3, 3] - true[:3, 3]) < 3e-4
    assert fit.rms_m < 3e-4


def of_base(*views):
    return base_from_board(small_pair(), CHESSBOARD, [views], np.eye(4))


def test_wrong_square_size_is_refused_with_the_measured_size():
    left, right = next(exact_pairs(1, 0.05))
    with pytest.raises(CameraError, match='101 x 6: expected at most 100 columns and rows'):
        Board('chessboard', 101, 6, 0.018)
    wrong = Board('chessboard', 9, 6, 0.018)
    with pytest.raises(CameraError, match=r'squares of 1[56]\.\d mm: 18 mm given'):
        base_from_board(small_pair(), wrong, [(left, right)], np.eye(4))
    assert of_base(left, right).rms_m < 5e-4


@pytest.mark.parametrize('way_m', [0.003, 0.15])
def test_board_that_moved_between_pairs_is_refused_with_pair_and_distance(way_m):
    X_LO, X_moved = (board_pose((x, 0.01, 0.52), (0.2, -0.3, 0.1)) for x in (0.0, way_m))
    pairs = list(exact_pairs(3, 0.05, boards=[X_LO, X_LO, X_moved]))
    said = r'lies (\d+\.\d) mm elsewhere in pair 02 than in pair 00 \(limit 1\.0 mm\)'
    with pytest.raises(CameraError, match=said) as refused:
        base_from_board(small_pair(), CHESSBOARD, pairs, np.eye(4))
    moved_mm = float(re.search(said, str(refused.value)).group(1))
    assert moved_mm == pytest.approx(1e3 * way_m, abs=0.5)
    fit = base_from_board(small_pair(), CHESSBOARD, pairs[:2], np.eye(4))
    assert np.linalg.norm(fit.X_LB[:3, 3] - X_LO[:3, 3]) < 1e-3


def test_base_by_exchanged_cameras_is_refused_with_the_cause():
    left, right = next(exact_pairs(1, 0.05))
    with pytest.raises(CameraError, match='left and right exchanged'):
        of_base(right, left)


@pytest.mark.parametrize('what', ['base', 'window'])
def test_board_that_looks_the_same_upside_down_is_refused_for_base_and_window(what):
    """It could turn the base by half a turn, and the arm would move the other way."""
    board = Board('chessboard', 9, 7, 0.02)
    with pytest.raises(CameraError, match='upside down'):
        if what == 'base':
            base_from_board(small_pair(), board, [], np.eye(4))
        else:
            calibrate_window(small_pair(), board, [], WINDOW)


MARKERS = {
    'a': (0.0, 0.0, 0.0),
    'b': (0.05, 0.0, 0.0),
    'c': (0.0, 0.08, 0.01),
    'd': (0.03, 0.03, 0.04),
}


def test_base_pose_is_found_by_markers_in_any_order():
    X = board_pose((0.0, 0.0, 0.5), (0.3, 0.2, 0.1))
    points = np.array(list(MARKERS.values())) @ X[:3, :3].T + X[:3, 3]
    noisy = points + np.random.default_rng(1).normal(0.0, 1e-4, points.shape)
    fit = base_from_markers(MARKERS, noisy[[2, 0, 3, 1]])
    assert np.linalg.norm(fit.X_LB[:3, 3] - X[:3, 3]) < 5e-4
    assert set(fit.errors_m) == set(MARKERS)


def test_symmetric_or_missing_base_markers_are_refused():
    square = dict(zip('abcd', ((0, 0, 0), (0.05, 0, 0), (0.05, 0.05, 0), (0, 0.05, 0))))
    points = np.array(list(square.values())) + np.random.default_rng(1).normal(0.0, 1e-4, (4, 3))
    with pytest.raises(CameraError, match='less symmetrically'):
        base_from_markers(square, points)
    with pytest.raises(CameraError, match=r'3 markers .* 4 are listed: check what hides'):
        base_from_markers(MARKERS, points[:3])
    with pytest.raises(CameraError, match=r'5 markers .* 4 are listed: hide other bright'):
        base_from_markers(MARKERS, [*points, points[0] + 0.1])


@pytest.mark.parametrize(
    ('change', 'says'),
    [
        ((1e-3, 1e-3, 1e-3), r'seen .* mm from their middle .* listed .* which are in mm'),
        ((1.0, 1.0, -1.0), r'mm \(rms\) from the listed places .* right-handed'),
    ],
)
def test_base_markers_in_another_unit_or_left_handed_are_refused(change, says):
    listed = {name: np.multiply(change, place) for name, place in MARKERS.items()}
    X = board_pose((0.08, 0.0, 0.5), (0.1, -0.2, 0.3))
    seen = np.array(list(MARKERS.values())) @ X[:3, :3].T + X[:3, 3]
    with pytest.raises(CameraError, match=says):
        base_from_markers(listed, seen)


def test_window_is_calibrated_from_a_board_in_the_water():
    pairs = list(exact_pairs(6, 0.05, window=True))
    guess = FlatWindow(np.array([0.0, 0.0, 1.0]), 0.10, WINDOW.thickness_m)
    fit = calibrate_window(small_pair(), CHESSBOARD, pairs, guess)
    assert fit.rms_px == pytest.approx(0.05 * np.sqrt(2.0), rel=0.15)
    assert fit.rms_start_px > 3.0 * fit.rms_px
    assert abs(fit.window.distance_m - WINDOW.distance_m) < 4.0 * fit.distance_sd_m
    assert np.arccos(fit.window.normal @ WINDOW.normal) < 6.0 * fit.normal_sd_rad
    assert fit.distance_sd_m < 5e-3


def test_window_is_refused_for_images_taken_without_it_but_not_for_glass_in_air():
    guess = FlatWindow(np.array([0.0, 0.0, 1.0]), 0.10, WINDOW.thickness_m)
    says = r'better without a window, 0\.07. px rms, than with one, 0\.[3-9].. px'
    with pytest.raises(CameraError, match=says):
        calibrate_window(small_pair(), CHESSBOARD, list(exact_pairs(3, 0.05)), guess)
    no_water = replace(guess, water=guess.air)
    fit = calibrate_window(small_pair(), CHESSBOARD, list(exact_pairs(3, 0.05)), no_water)
    assert fit.rms_px == pytest.approx(0.05 * np.sqrt(2.0), rel=0.15)
    assert fit.distance_sd_m > 1.0  # the images do not show where the glass is


def test_board_in_front_of_the_guessed_window_is_refused():
    guess = FlatWindow(np.array([0.0, 0.0, 1.0]), 0.9, WINDOW.thickness_m)
    pairs = list(exact_pairs(3, 0.05))
    with pytest.raises(CameraError, match=r'pair .*: its rays do not meet .* at 900 mm'):
        calibrate_window(small_pair(), CHESSBOARD, pairs, guess)


def test_board_behind_the_window_appears_flat_only_if_refraction_is_modelled():
    found = views_of(3, window=True)
    for pair in found.views:
        with_it, without = (
            board_misfit(small_pair(w), CHESSBOARD, pair)[1] for w in (True, False)
        )
        assert with_it < 3e-4
        assert without > 3.0 * with_it


def test_live_images_are_kept_when_the_board_is_held_still_at_a_new_place():
    images = pairs_of_images(4)
    stream = [
        images[0],
        images[1],
        images[1],
        images[1],
        images[2],
        images[3],
        images[3],
        images[1],
    ]
    kept = list(worth_keeping(CHESSBOARD, stream, 5))
    assert [name for name, _ in kept] == ['live_001', 'live_002']
    assert kept[0][1][0] is images[1][0]
    assert kept[1][1][0] is images[3][0]
    # On the base of an arm the board stays at one place.
    still = list(worth_keeping(CHESSBOARD, iter([images[1]] * 5), 3, one_place=True))
    assert [name for name, _ in still] == ['live_001', 'live_002', 'live_003']


def all_tilted(turns):
    """Return a board's poses all over both images, tilted by rotation vectors [rad]."""
    places = np.random.default_rng(5).uniform(-1.0, 1.0, (len(turns), 3))
    return [
        board_pose((0.075 + 0.04 * x, 0.05 * y, 0.5 + 0.05 * z), turn)
        for (x, y, z), turn in zip(places, turns)
    ]


@pytest.mark.parametrize('tilt_deg', [0.0, 40.0])
def test_parallel_boards_are_refused_unless_the_lens_is_known(tilt_deg):
    """Their tilt against the view is large, and their residuals are small all the same."""
    boards = all_tilted([(np.radians(tilt_deg), 0.0, 0.0)] * 12)
    pairs = list(exact_pairs(12, 0.04, boards=boards))
    with pytest.raises(CameraError, match=r'left: all boards are parallel to within .* deg'):
        calibrate_camera(CHESSBOARD, [left for left, _ in pairs], SMALL, 'left')
    with pytest.raises(CameraError, match='expected at least 5 deg between two'):
        calibrate_stereo(CHESSBOARD, pairs, (SMALL, SMALL))
    cameras = small_pair()
    fit = calibrate_stereo(CHESSBOARD, pairs, (SMALL, SMALL), lenses=(cameras.left, cameras.right))
    assert fit.cameras.baseline_m == pytest.approx(cameras.baseline_m, abs=1e-3)
    assert fit.outliers == ()
    np.testing.assert_allclose(fit.left.camera.matrix, cameras.left.matrix, rtol=1e-12)
    assert fit.warnings == []


@pytest.mark.parametrize(('apart_deg', 'warned'), [(12.0, True), (30.0, False)])
def test_boards_that_are_tilted_nearly_alike_are_warned_about(apart_deg, warned):
    tilts = np.radians(np.linspace(40.0 - apart_deg, 40.0, 12))
    pairs = exact_pairs(12, 0.02, boards=all_tilted([(tilt, 0.0, 0.0) for tilt in tilts]))
    fit = calibrate_camera(CHESSBOARD, [left for left, _ in pairs], SMALL, 'left')
    assert any('the boards are parallel to within 12 deg' in w for w in fit.warnings) == warned


def test_images_of_the_board_at_few_places_are_warned_about():
    """Frames of a video, or copies: they add no information, and make all errors look smaller."""
    views = [left for left, _ in exact_pairs(5, 0.05)]
    again = [replace(view, name=f'{view.name}_{n}') for n in range(3) for view in views]
    found = calibrate_camera(CHESSBOARD, again, SMALL, 'left').warnings
    assert any('the board lies at 5 places in 15 images: expected at least 10' in w for w in found)
