"""`softarm calibrate` from files to files."""

import re
import shutil
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

cv2 = pytest.importorskip('cv2', reason='opencv-python-headless is not installed')
sys.path.insert(0, str(Path(__file__).parents[1] / 'perception' / 'stereo'))

from board_cases import (
    CHESSBOARD,
    SMALL,
    WINDOW,
    board_pose,
    pairs_of_images,
    rays,
    small_pair,
)

from softarm_ros.cli import calibration
from softarm_ros.cli.main import app
from softarm_ros.emulation.board_images import board_image
from softarm_ros.emulation.stereo_camera_server import calibration_of
from softarm_ros.emulation.stereo_renderer import ArmLooks, StereoRenderer
from softarm_ros.geometry.poses import pose
from softarm_ros.geometry.rotations import exp_so3
from softarm_ros.perception.base_calibration_file import read_base
from softarm_ros.perception.stereo.base_markers import read_markers
from softarm_ros.perception.stereo.boards import Board, BoardView
from softarm_ros.perception.stereo.calibrate_camera import calibrate_camera
from softarm_ros.perception.stereo.calibration_file import (
    WindowBlock,
    read_calibration,
    write_calibration,
)
from softarm_ros.perception.stereo.camera import CameraError
from softarm_ros.perception.stereo.cameras import SIDES
from softarm_ros.perception.stereo.collect import Collected

BOARD = ('--columns', 9, '--rows', 6, '--square-mm', 16)


def softarm(*arguments):
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """Return a folder with images of a board in front of both cameras, and on the base."""
    place = tmp_path_factory.mktemp('images')
    for n, pair in enumerate(pairs_of_images(8)):
        for side, image in zip(SIDES, pair):
            cv2.imwrite(str(place / f'{side}_{n:02d}.png'), image)
    rng = np.random.default_rng(4)
    X_LO = board_pose((0.08, 0.0, 0.5), (0.1, -0.2, 0.3))
    for side in SIDES:
        cv2.imwrite(
            str(place / f'base_{side}.png'), board_image(rays(side), CHESSBOARD, X_LO, rng)
        )
    return place


def stereo(folder, output, *more):
    sides = [part for s in SIDES for part in (f'--{s}', folder / f'{s}_*.png')]
    return softarm('calibrate', 'stereo', *sides, *BOARD, '--output', output, *more)


def test_calibrate_stereo_then_base_writes_both_into_one_file(folder, tmp_path):
    file = tmp_path / 'cameras.yaml'
    code, out, err = stereo(folder, file)
    assert code == 0, err
    assert (tmp_path / 'cameras.png').read_bytes()[:4] == b'\x89PNG'
    known = read_calibration(file)
    assert known.stereo.baseline_mm == pytest.approx(150.0, abs=1.0)
    assert list(known.stereo.pair_errors_px) == [f'{n:03d}' for n in range(8)]
    assert 'warning: left: 8 images: expected at least 10' in out
    sides = [part for s in SIDES for part in (f'--{s}', folder / f'base_{s}.png')]
    code, out, err = softarm('calibrate', 'base', *sides, *BOARD, '--output', file)
    assert code == 0, err
    true = board_pose((0.08, 0.0, 0.5), (0.1, -0.2, 0.3))
    found = read_calibration(file).stereo_cameras().base_pose()
    assert np.linalg.norm(found[:3, 3] - true[:3, 3]) < 3e-3  # 8 small images
    assert float(re.search(r'base: ([\d.]+) mm rms', out)[1]) < 1.0
    assert read_calibration(file).stereo == known.stereo


def test_a_second_camera_that_fails_leaves_the_picture_of_the_first(folder, tmp_path):
    (tmp_path / 'cameras_left.png').write_bytes(b'older')
    dark = tmp_path / 'dark.png'
    cv2.imwrite(str(dark), np.zeros((480, 640), np.uint8))
    sides = ('--left', folder / 'left_*.png', '--right', dark)
    output = tmp_path / 'cameras.yaml'
    code, _, err = softarm('calibrate', 'camera', *sides, *BOARD, '--output', output)
    assert code == 2
    assert 'no board found' in err
    assert (tmp_path / 'cameras_left.png').read_bytes() == b'older'
    assert not output.exists()


@pytest.mark.parametrize(
    ('what', 'picture', 'refused'),
    [
        ('camera', 'cameras_right.png', True),
        ('camera', 'cameras.png', False),
        ('stereo', 'cameras.png', True),
        ('base', 'cameras.png', False),
    ],
)
def test_the_pictures_that_will_be_drawn_are_checked_before_the_work(
    folder, tmp_path, what, picture, refused
):
    (tmp_path / picture).mkdir()
    none = [part for side in SIDES for part in (f'--{side}', tmp_path / f'{side}_none.png')]
    _, _, err = softarm('calibrate', what, *none, *BOARD, '--output', tmp_path / 'cameras.yaml')
    assert (f'{picture}: cannot be written (Is a directory)' in err) is refused, err


def test_a_picture_that_cannot_be_written_leaves_an_older_calibration(folder, tmp_path):
    file, picture = tmp_path / 'cameras.yaml', tmp_path / 'cameras.png'
    assert stereo(folder, file)[0] == 0
    before = file.read_bytes()
    picture.unlink()
    picture.symlink_to('/dev/full')
    code, _, err = stereo(folder, file, '--drop-outliers')
    assert code == 2
    assert f'{picture}: cannot be written (No space left on device)' in err
    assert file.read_bytes() == before


def test_calibrate_stereo_keeps_the_lenses_of_an_earlier_calibration(folder, tmp_path):
    lenses, file = tmp_path / 'lenses.yaml', tmp_path / 'cameras.yaml'
    sides = [part for s in SIDES for part in (f'--{s}', folder / f'{s}_*.png')]
    code, _, err = softarm('calibrate', 'camera', *sides, *BOARD, '--output', lenses)
    assert code == 0, err
    assert (tmp_path / 'lenses_left.png').exists()
    with pytest.raises(CameraError, match='no pair of cameras'):
        read_calibration(lenses).stereo_cameras()
    code, out, err = stereo(folder, file, '--calibration', lenses)
    assert code == 0, err
    (line,) = (line for line in out.splitlines() if line.startswith('left: ') and 'focal' in line)
    known = read_calibration(lenses).cameras['left'].matrix
    assert f'focal lengths {known[0][0]:.1f}, {known[1][1]:.1f} px' in line
    assert line.endswith('px, kept')
    kept, used = (read_calibration(f).cameras['left'].matrix for f in (lenses, file))
    assert np.abs(np.subtract(kept, used)).max() < 1e-9


def test_images_are_taken_from_a_video_when_the_board_is_still(folder, tmp_path):
    video = tmp_path / 'run.avi'
    writer = cv2.VideoWriter(str(video), cv2.VideoWriter_fourcc(*'MJPG'), 20.0, (480, 360))
    if not writer.isOpened():
        pytest.skip('this OpenCV writes no video')
    for n in range(4):
        image = cv2.imread(str(folder / f'left_{n:02d}.png'))
        for _ in range(3):
            writer.write(image)
    writer.release()
    file = tmp_path / 'lens.yaml'
    more = ('--count', 4, '--output', file)
    code, out, err = softarm('calibrate', 'camera', '--left', video, *BOARD, *more)
    assert code == 0, err
    assert list(read_calibration(file).cameras['left'].image_errors_px) == [
        f'live_{n:03d}' for n in range(1, 5)
    ]
    assert 'left: 4 images: expected at least 10' in out


@pytest.mark.parametrize('side', SIDES)
def test_a_missing_camera_is_reported_within_a_minute(side, folder, tmp_path, monkeypatch):
    """The longest wait for a board is five minutes."""
    monkeypatch.setattr(calibration, '_PLUGGED_IN_S', 0.5)
    absent = tmp_path / 'video7'
    sides = [part for s in SIDES for part in (f'--{s}', f'http://127.0.0.1:9/{s}')]
    sides[1 + 2 * SIDES.index(side)] = f'/dev{absent}'
    begin = time.monotonic()
    code, _, err = softarm('calibrate', 'stereo', *sides, *BOARD, '--output', tmp_path / 'c.yaml')
    assert code != 0
    assert 'no image for' in err, err
    assert time.monotonic() - begin < 60.0
    assert not (tmp_path / 'c.yaml').exists()


def test_calibrate_base_from_markers_and_calibrate_window(folder, tmp_path):
    """Uses the cameras of the renderer, balls on the base, and a board behind glass."""
    air, wet = tmp_path / 'air.yaml', tmp_path / 'wet.yaml'
    write_calibration(air, calibration_of(replace(small_pair(), X_LB=np.eye(4))))
    true = board_pose((0.05, 0.0, 0.5), (0.2, -0.3, 0.1))
    balls = np.array([[0, 0, 0], [0.06, 0, 0], [0, 0.08, 0.01], [0.03, 0.03, 0.04]], dtype=float)
    looks = ArmLooks(tube_radius_m=1e-4, marker_diameter_m=0.012)
    renderer = StereoRenderer(replace(small_pair(), X_LB=true), looks, 0)
    for side, image in zip(SIDES, renderer.draw(np.array([[0.0, 0, 0], [0, 0, 1e-3]]), balls)):
        cv2.imwrite(str(tmp_path / f'{side}.png'), image)
    places = tmp_path / 'places.yaml'
    places.write_text('\n'.join(f'm{k}: {(1e3 * p).tolist()}' for k, p in enumerate(balls)))
    sides = [part for s in SIDES for part in (f'--{s}', tmp_path / f'{s}.png')]
    more = ('--markers', places, '--output', air)
    code, _, err = softarm('calibrate', 'base', *sides, *more)
    assert code == 0, err
    found = read_calibration(air).stereo_cameras().base_pose()
    assert np.linalg.norm(found[:3, 3] - true[:3, 3]) < 5e-4

    for n, pair in enumerate(pairs_of_images(4, window=True)):
        for side, image in zip(SIDES, pair):
            cv2.imwrite(str(tmp_path / f'wet_{side}_{n}.png'), image)
    sides = [part for s in SIDES for part in (f'--{s}', tmp_path / f'wet_{s}_*.png')]
    more = ('--calibration', air, '--window', '100,10', '--output', wet)
    code, _, err = softarm('calibrate', 'window', *sides, *BOARD, *more)
    assert code == 0, err
    block = read_calibration(wet).window
    assert block.distance_m == pytest.approx(WINDOW.distance_m, abs=0.01)
    assert block.rms_px < 0.3
    assert read_calibration(wet).base is None  # it was calibrated without the window


@pytest.mark.parametrize('what', ['camera', 'stereo'])
def test_a_new_calibration_reports_and_removes_blocks_of_the_previous_cameras(
    what, folder, tmp_path
):
    """A window that is not taken into account shifts everything by centimetres."""
    out = tmp_path / 'c.yaml'
    glass = WindowBlock(normal_in_left=(0.0, 0.0, 1.0), distance_m=0.1, thickness_m=0.01)
    known = calibration_of(replace(small_pair(), X_LB=np.eye(4)))
    write_calibration(out, known.model_copy(update={'window': glass}))
    sides = [part for s in SIDES for part in (f'--{s}', folder / f'{s}_*.png')]
    code, said, err = softarm('calibrate', what, *sides, *BOARD, '--output', out)
    assert code == 0, err
    gone = 'pair, base, window' if what == 'camera' else 'base, window'
    assert f'note: {gone} of this file belonged to the previous cameras, and are removed' in said
    assert read_calibration(out).window is None
    code, said, err = softarm('calibrate', what, *sides, *BOARD, '--output', out)
    assert 'note:' not in said


@pytest.mark.parametrize('what', ['base', 'window', 'markers'])
def test_images_of_another_size_than_calibrated_are_refused(what, folder, tmp_path):
    """Pixels of smaller images triangulate to a base that is centimetres and degrees off."""
    known = tmp_path / 'known.yaml'
    write_calibration(known, calibration_of(replace(small_pair(), X_LB=np.eye(4))))
    for side in SIDES:
        for n in range(3):
            name = f'{side}_{n:02d}.png'
            whole = cv2.imread(str(folder / name), cv2.IMREAD_GRAYSCALE)
            cv2.imwrite(str(tmp_path / name), cv2.resize(whole, (384, 288)))
    pattern = '00.png' if what == 'markers' else '*.png'
    sides = [part for s in SIDES for part in (f'--{s}', tmp_path / f'{s}_{pattern}')]
    places = tmp_path / 'places.yaml'
    places.write_text('a: [0, 0, 0]')
    more = {'base': (), 'window': ('--window', '100,10'), 'markers': ('--markers', places)}[what]
    command = 'window' if what == 'window' else 'base'
    out = tmp_path / 'out.yaml'
    code, _, err = softarm(
        'calibrate', command, *sides, *BOARD, '--calibration', known, '--output', out, *more
    )
    assert code == 2
    assert 'left has images of (480, 360) px: these have (384, 288)' in err
    assert not out.exists()


@pytest.mark.parametrize('name', ['left_00', 'left_camera'])
def test_a_picture_that_would_be_one_of_the_images_is_refused(name, folder):
    before = sorted(path.name for path in folder.iterdir())
    image = (folder / 'left_00.png').read_bytes()
    code, _, err = stereo(folder, folder / f'{name}.yaml')
    assert code == 2
    assert f'{name}.png, would be one of these images' in err
    assert sorted(path.name for path in folder.iterdir()) == before
    assert (folder / 'left_00.png').read_bytes() == image


def test_an_image_without_a_number_among_numbered_ones_is_refused(folder, tmp_path):
    for side in SIDES:
        for n in (0, 3, 6):
            shutil.copy(folder / f'{side}_{n:02d}.png', tmp_path)
    shutil.copy(folder / 'base_left.png', tmp_path / 'left_camera.png')
    code, _, err = stereo(tmp_path, tmp_path / 'cameras.yaml')
    assert code == 2
    assert 'left_camera.png: no number at the end of the name' in err


def test_each_image_that_is_left_out_is_named_with_its_camera_and_the_reason(folder, tmp_path):
    for side in SIDES:
        for n in range(8):
            shutil.copy(folder / f'{side}_{n:02d}.png', tmp_path)
    (tmp_path / 'left_05.png').unlink()
    cv2.imwrite(str(tmp_path / 'right_03.png'), np.full(SMALL[::-1], 90, np.uint8))
    code, out, err = stereo(tmp_path, tmp_path / 'cameras.yaml')
    assert code == 0, err
    assert [line for line in out.splitlines() if 'no board' in line or 'left out' in line] == [
        'right: no board in 003',
        'right: right_05.png is left out: no image of the other camera matches it',
    ]


def test_pairs_with_too_few_common_corners_are_named_with_the_limit():
    def views(name, *seen):
        return tuple(BoardView(name, np.array(ids), np.zeros((len(ids), 2))) for ids in seen)

    pairs = (
        views('whole', range(54), range(54)),
        views('line', range(9), range(9)),
        views('few', range(14), range(9, 54)),
    )
    found = Collected((SMALL, SMALL), pairs, ((), ()))
    assert calibration._pairs_left_out(found, CHESSBOARD, 6) == [
        f'pair {name} is left out: the corners that both cameras see are fewer than 6, or on one '
        'line'
        for name in ('line', 'few')
    ]


@pytest.mark.parametrize('blind', ['left', 'right', 'in turn'])
def test_images_without_a_pair_of_views_are_refused_with_the_camera_at_fault(
    blind, folder, tmp_path
):
    for side in SIDES:
        for n in range(2):
            dark = side == (SIDES[n] if blind == 'in turn' else blind)
            image = cv2.imread(str(folder / f'{side}_{n:02d}.png'), cv2.IMREAD_GRAYSCALE)
            cv2.imwrite(str(tmp_path / f'{side}_{n}.png'), image * (not dark))
    code, _, err = stereo(tmp_path, tmp_path / 'cameras.yaml')
    assert code == 2
    if blind == 'in turn':
        assert 'no pair shows the board to both cameras' in err
    else:
        assert f'{tmp_path}/{blind}_*.png: no board found: expected 9 x 6 inner corners' in err
        assert '(no pixel is brighter than 0 of 255' in err
        assert ' and ' not in err


def test_the_picture_of_a_board_to_print_is_detected_as_that_board(tmp_path):
    code, out, _ = softarm('calibrate', 'board', *BOARD, '--output', tmp_path / 'board.png')
    assert code == 0
    assert 'print it 192.0 x 144.0 mm' in out
    picture = cv2.imread(str(tmp_path / 'board.png'), cv2.IMREAD_GRAYSCALE)
    assert CHESSBOARD.find(cv2.resize(picture, None, fx=0.4, fy=0.4), 'print') is not None


@pytest.mark.parametrize(
    ('arguments', 'says'),
    [
        (('stereo', '--left', 'x'), '--left and --right are both needed'),
        (('camera',), '--left or --right is needed'),
        (('camera', '--left', 'nowhere'), 'nowhere: no image files'),
        (('camera', '--left', 'nowhere', '--square-mm', '-1'), 'square = -1 mm'),
        (('window', '--left', 'x', '--right', 'y'), '--window DISTANCE,THICKNESS is missing'),
        (('base', '--left', 'x', '--right', 'y', '--output', 'none.yaml'), 'none.yaml'),
        (('base', '--left', 'l*.png', '--right', 'y', '--markers', 'm.yaml'), 'one image file'),
        (('board', '--output', 'board.pdf'), 'ends in .png'),
        (('camera', '--left', 'x', '--picture', 'a.txt'), '--picture a.txt: expected a name that'),
        (('base', '--board-at', '0,0,1e9,0,0,0'), '1e+09; expected mm within +-10000'),
        (('base', '--board-at', '0,0,0,0,0,361'), '361; expected mm within +-10000 and degrees'),
        (('camera', '--left', 'x', '--output', '/proc/c.yaml'), '/proc/c.yaml: cannot be written'),
    ],
)
def test_wrong_arguments_of_calibrate_are_refused_by_name(arguments, says):
    code, _, err = softarm('calibrate', *arguments)
    assert code == 2
    assert says in err


def test_corners_that_fit_no_camera_raise_a_camera_error():
    board = Board('chessboard', 3, 3, 5.5e-3)
    views = [BoardView(f'{k}', np.arange(9), np.full((9, 2), 100.0 + 50.0 * k)) for k in range(4)]
    with pytest.raises(CameraError, match=r'no camera fits these corners: has the board 3 x 3'):
        calibrate_camera(board, views, (840, 600), 'left')


@pytest.mark.parametrize(
    ('text', 'says'),
    [
        ('format: other', 'expected format: softarm_ros cameras'),
        ('format: softarm_ros cameras\nversion: 2', 'version = 2'),
        ('format: softarm_ros cameras\nversion: 1\nlens: 3', 'lens = 3'),
        ('[', 'not YAML'),
        *(
            (
                'format: softarm_ros cameras\nversion: 1\nbase:\n  source: board\n  rms_mm: 0.1\n'
                f'  base_in_left: {{position_m: [0, 0, 1], quaternion_xyzw: {q}}}',
                f'quaternion_xyzw = {q}: Value error, length {length}: expected 1',
            )
            for q, length in (([0, 0, 0, 0], 0), ([90, 0, 0, 1], 90.0056))
        ),
        (
            'format: softarm_ros cameras\nversion: 1\nstereo:\n  rms_px: 0.1\n'
            '  board_misfit_mm: 0.1\n  baseline_mm: 150.0\n  left_in_right: '
            '{position_m: [-150.0, 0, 0], quaternion_xyzw: [0, 0, 0, 1]}',
            'stereo.baseline_mm = 150.0: Value error, expected 150000 mm, the length of '
            'left_in_right.position_m',
        ),
        (
            'format: softarm_ros cameras\nversion: 1\nwindow: {normal_in_left: [0, 0, 3], '
            'distance_m: 0.2, thickness_m: 0.01}',
            'window: normal has length 3',
        ),
        (
            'format: softarm_ros cameras\nversion: 1\ncameras: {left: {size_px: [640, 480], '
            'matrix: [[400, 0, 320], [0, 400, 240], [0, 0, 2]], distortion: [0, 0, 0, 0], '
            'rms_px: 0.1, coverage_percent: 50}}',
            'camera left: matrix = ',
        ),
    ],
)
def test_an_invalid_calibration_file_is_refused_with_the_reason(text, says, tmp_path):
    path = tmp_path / 'cameras.yaml'
    path.write_text(text)
    with pytest.raises(CameraError, match=re.escape(says)):
        read_calibration(path)


def _touched(tmp_path, seen, known):
    """Write the two files of `--seen`; return the arguments of the command."""
    for name, points in (('places', known), ('touched', seen)):
        lines = [f'p{k}: {np.round(1e3 * point, 4).tolist()}' for k, point in enumerate(points)]
        (tmp_path / f'{name}.yaml').write_text('\n'.join(lines))
    files = ('--markers', tmp_path / 'places.yaml', '--seen', tmp_path / 'touched.yaml')
    return ('calibrate', 'base', *files, '--output', tmp_path / 'base.yaml')


def test_base_of_a_tracker_from_touched_points(tmp_path):
    X_SB = pose(exp_so3([0.3, 2.1, -0.4]), [0.2, -0.1, 0.5])
    known = np.array([[0.05, 0, 0], [0, 0.03, 0], [-0.06, 0, 0], [0, -0.05, 0.01]])
    command = _touched(tmp_path, known @ X_SB[:3, :3].T + X_SB[:3, 3], known)
    code, told, _ = softarm(*command)
    assert code == 0
    assert 'at 200.0, -100.0, 500.0 mm of the tracker' in told
    np.testing.assert_allclose(read_base(tmp_path / 'base.yaml').pose, X_SB, atol=1e-6)


def test_base_of_a_tracker_is_refused_where_points_do_not_fit(tmp_path):
    known = np.array([[0.05, 0, 0], [0, 0.03, 0], [-0.06, 0, 0], [0, -0.05, 0.01]])
    command = _touched(tmp_path, known[[1, 0, 2, 3]], known)
    code, _, why = softarm(*command)
    assert code == 2
    assert 'in the same order' in ' '.join(why.split())
    code, _, why = softarm(*_touched(tmp_path, known[:3], known))
    assert code == 2
    assert 'only one of them has p3' in ' '.join(why.split())
    code, _, why = softarm(*_touched(tmp_path, known[:3], known[:3]))
    assert code == 2
    assert '3 points: expected at least 4' in ' '.join(why.split())
    assert not (tmp_path / 'base.yaml').exists()


@pytest.mark.parametrize(
    ('unit', 'away_m', 'what'),
    [
        (1e-3, 0.0, 'places.yaml: the points are 0.0486 mm (rms) from their middle (limit 1 mm)'),
        (1.0, 200.0, 'touched.yaml: the base is 200 m away (limit 100 m)'),
    ],
)
def test_a_base_of_a_tracker_that_cannot_be_in_mm_is_not_written(tmp_path, unit, away_m, what):
    """Two files in metres gave a base a thousand times too near."""
    known = np.array([[0.05, 0, 0], [0, 0.03, 0], [-0.06, 0, 0], [0, -0.05, 0.01]])
    touched = known + np.array([away_m, 0, 0])
    code, _, why = softarm(*_touched(tmp_path, unit * touched, unit * known))
    assert code == 2
    assert what in ' '.join(why.split())
    assert not (tmp_path / 'base.yaml').exists()


@pytest.mark.parametrize('place', ['[0, 0]', '[0, 0, .nan]', '[true, 0, 0]', '["100", 0, 0]', '3'])
def test_a_place_of_a_marker_that_is_not_three_numbers_is_named(tmp_path, place):
    file = tmp_path / 'places.yaml'
    file.write_text(f'good: [1, 2.5, 3]\nbad: {place}\n')
    with pytest.raises(CameraError, match=r'places\.yaml: bad = .*: expected three'):
        read_markers(file)
    file.write_text('good: [1, 2.5, 3]\n')
    assert read_markers(file) == {'good': pytest.approx([1e-3, 2.5e-3, 3e-3])}


@pytest.mark.parametrize('seen', [(), ('--seen', 'touched.yaml')])
def test_a_board_is_not_placed_with_markers(tmp_path, seen):
    code, _, why = softarm(
        *('calibrate', 'base', '--markers', 'places.yaml', *seen, '--board-at', '0,0,9,0,0,0'),
        *('--output', tmp_path / 'base.yaml'),
    )
    assert code == 2
    assert "--board-at '0,0,9,0,0,0': with --markers there is no board" in ' '.join(why.split())


def test_base_of_a_tracker_replaces_no_calibration_of_cameras(tmp_path):
    known = np.array([[0.05, 0, 0], [0, 0.03, 0], [-0.06, 0, 0], [0, -0.05, 0.01]])
    command = _touched(tmp_path, known, known)
    (tmp_path / 'base.yaml').write_text('format: softarm_ros cameras\n')
    code, _, why = softarm(*command)
    assert code == 2
    assert 'it is a calibration of cameras' in ' '.join(why.split())
    assert (tmp_path / 'base.yaml').read_text() == 'format: softarm_ros cameras\n'


def test_topic_is_refused_with_what_to_do_instead(tmp_path):
    sources = ('--left', 'ros:/left/image_raw', '--right', 'ros:/right/image_raw')
    code, _, why = softarm('calibrate', 'stereo', *sources, '--output', tmp_path / 'c.yaml')
    assert code != 0
    assert 'save some as files' in ' '.join(why.replace('│', ' ').split())
