"""Pictures and animations of arms in motion."""

import re
from itertools import pairwise
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from softarm_ros.cli import report_plotting
from softarm_ros.cli.arm_picture import SNAPSHOTS, draw_moment, draw_moments, sections_of, set_axes
from softarm_ros.cli.cli_errors import UsageError
from softarm_ros.cli.main import app
from softarm_ros.cli.motion import Motion, film, film_of_bag
from softarm_ros.cli.render import check_output, frames, render
from softarm_ros.cli.report_plotting import PALETTE, new_figure
from softarm_ros.cli.workspace import draw_workspace, sample_workspace
from softarm_ros.nodes.bag_writer import BagError
from softarm_ros.rigs.loader import load_rig
from softarm_ros.whole_file import NotWrittenError

BLUE = np.array([int(PALETTE[0][i : i + 2], 16) for i in (1, 3, 5)])  # the tip's path


@pytest.fixture(scope='module')
def rig():
    return load_rig('cable_arm')


@pytest.fixture(scope='module')
def motion(rig):
    return film(rig, 'line_small', seed=0)


def test_film_bodies_start_at_the_base_and_tips_stay_near_the_path(motion):
    assert len(motion.times_s) == len(motion.bodies) == len(motion.tips) == len(motion.errors_m)
    assert motion.times_s[0] == 0.0 and np.all(np.diff(motion.times_s) > 0.0)
    np.testing.assert_allclose(motion.bodies[:, 0], 0.0, atol=1e-3)
    off = np.min(np.linalg.norm(motion.path[:, None] - motion.tips[None], axis=2), axis=1)
    assert np.max(off) < 5e-3
    # The error is the distance to the reference: the tip is no further from the path.
    known = np.isfinite(motion.errors_m)
    away = np.min(np.linalg.norm(motion.tips[known, None] - motion.path[None], axis=2), axis=1)
    assert np.mean(known) > 0.9
    assert np.all(away < motion.errors_m[known] + 2e-3)  # noise, delay, points of the path


def test_moments_are_evenly_spread_and_end_with_the_motion(motion):
    chosen = motion.times_s[motion.at(10)]
    assert chosen[-1] == motion.times_s[-1]
    np.testing.assert_allclose(np.diff(chosen), motion.times_s[-1] / 10, atol=0.03)


def test_picture_shows_path_tip_and_all_snapshots_within_its_axes(rig, motion):
    figure = new_figure(4.0)
    draw_moments(figure, rig, motion)
    (ax,) = figure.axes
    shown = {line.get_label(): np.transpose(line.get_data_3d()) for line in ax.lines}
    np.testing.assert_allclose(shown['reference'], 1e3 * motion.path)
    np.testing.assert_allclose(shown['tip, closed loop'], 1e3 * motion.tips)
    assert len(ax.lines) == 2 + (SNAPSHOTS - 1) * len(rig.section_names)
    for points in (1e3 * motion.bodies.reshape(-1, 3), 1e3 * motion.path):
        for values, ends in zip(points.T, (ax.get_xlim(), ax.get_ylim(), ax.get_zlim())):
            assert min(ends) < values.min() and values.max() < max(ends)


def test_sections_are_drawn_in_proportion_to_their_lengths(motion):
    trunk = load_rig('trunk')  # 106, 92 and 114 mm
    figure = new_figure(4.0)
    draw_moments(figure, trunk, motion)
    drawn = [line for line in figure.axes[0].lines if line.get_alpha()][:3]
    pieces = [len(line.get_data_3d()[0]) - 1 for line in drawn]
    assert sum(pieces) == len(motion.bodies[0]) - 1
    np.testing.assert_allclose(np.array(pieces) / sum(pieces), [0.339, 0.294, 0.366], atol=0.02)


def test_draw_moment_shows_the_tip_path_up_to_that_moment(rig, motion):
    ax = set_axes(new_figure(4.0), rig, motion)
    half = len(motion.times_s) // 2
    _, travelled = draw_moment(ax, rig, motion, half, sections_of(rig, motion))
    np.testing.assert_allclose(
        np.transpose(travelled.get_data_3d()), 1e3 * motion.tips[: half + 1]
    )


def test_animation_frames_have_one_size_and_a_growing_tip_path(rig, motion):
    first, *_, last = frames(rig, motion, 4, dpi=100)
    assert first.shape == last.shape == (320, 480, 3)

    def blue(image):
        return np.count_nonzero(np.all(np.abs(image.astype(int) - BLUE) < 40, axis=2))

    assert blue(last) > 1.5 * blue(first) > 0


@pytest.mark.parametrize('name', ['pam_arm', 'fishbone_arm', 'cable_arm'])
def test_frames_of_a_straight_arm_are_not_cut_off(name):
    straight = load_rig(name)
    model = straight.model()
    body = model.shape_of(model.rest_configuration).centerline(60)
    bodies, none = np.array([body, body]), np.zeros((0, 3))
    (image,) = frames(
        straight, Motion(np.arange(2.0), bodies, bodies[:, -1], np.zeros(2), none), 1, dpi=100
    )
    for edge in (image[0], image[-1], image[:, 0], image[:, -1]):
        assert edge.min() == 255, 'something reaches beyond the picture'


def test_render_writes_a_png_and_refuses_missing_folders_and_unknown_suffixes(
    tmp_path, rig, motion
):
    pixels = plt.imread(render(rig, motion, tmp_path / 'arm.png', 1.0))[..., :3]
    assert np.any(np.all(np.rint(255.0 * pixels) == BLUE, axis=2))
    with pytest.raises(NotWrittenError, match='cannot be written'):
        render(rig, motion, tmp_path / 'missing' / 'arm.png', 1.0)
    with pytest.raises(UsageError, match=re.escape('ends in .png, .gif, .mp4')):
        render(rig, motion, tmp_path / 'arm.webp', 1.0)


def test_a_gif_moves_for_the_requested_time_and_is_small(tmp_path, rig, motion):
    path = render(rig, motion, tmp_path / 'arm.gif', 1.0)
    with Image.open(path) as image:
        assert image.n_frames == 10
        assert image.info['loop'] == 0
        lasts, shown = [], []
        for k in range(image.n_frames):
            image.seek(k)
            lasts.append(image.info['duration'])
            shown.append(np.asarray(image.convert('RGB')))
    assert lasts == [100] * 9 + [1000]
    assert all(np.any(a != b) for a, b in pairwise(shown))
    assert path.stat().st_size < 10 * 25_000


def test_a_gif_contains_all_frames_including_unchanged_ones(tmp_path, rig, motion, monkeypatch):
    def grey(rig, motion, count, dpi):
        for k in range(count):
            shade = 10 * (k // 2)  # each shade twice: unchanged frames count
            yield np.full((32, 48, 3), shade, dtype=np.uint8)

    monkeypatch.setattr('softarm_ros.cli.render.frames', grey)
    path = render(rig, motion, tmp_path / 'long.gif', 4.0)
    with Image.open(path) as image:
        assert image.n_frames == 40
        image.seek(39)
        assert np.ptp(np.asarray(image.convert('RGB'))) == 0


@pytest.mark.parametrize('name', ['arm.mp4', '12:30.mp4', '-arm.mp4'])
def test_a_video_has_the_requested_frames_duration_and_size(
    tmp_path, rig, motion, name, monkeypatch
):
    ffmpeg = pytest.importorskip('imageio_ffmpeg', reason='imageio-ffmpeg is not installed')
    monkeypatch.chdir(tmp_path)
    render(rig, motion, Path(name), 0.4)
    path = tmp_path / name
    count, duration = ffmpeg.count_frames_and_secs(str(path))
    assert (count, duration) == (10, pytest.approx(0.4, abs=0.05))
    reader = ffmpeg.read_frames(str(path))
    assert next(reader)['size'] == (960, 640)
    reader.close()


@pytest.mark.parametrize('ending', ['gif', 'mp4'])
def test_an_interrupted_animation_leaves_no_file(tmp_path, rig, motion, monkeypatch, ending):
    pytest.importorskip('imageio_ffmpeg', reason='imageio-ffmpeg is not installed')
    whole = frames(rig, motion, 1, 100)
    image = next(whole)

    def interrupted(*_):
        yield image
        yield image
        raise KeyboardInterrupt

    monkeypatch.setattr('softarm_ros.cli.render.frames', interrupted)
    path = tmp_path / f'arm.{ending}'
    with pytest.raises(KeyboardInterrupt):
        render(rig, motion, path, 1.0)
    assert not path.exists()


def test_an_interrupted_picture_leaves_an_older_file(tmp_path, rig, motion, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr('softarm_ros.cli.render.draw_moments', interrupted)
    path = tmp_path / 'arm.png'
    path.write_bytes(b'older')
    with pytest.raises(KeyboardInterrupt):
        render(rig, motion, path, 1.0)
    assert path.read_bytes() == b'older'


# imageio_ffmpeg leaves its broken pipe to the garbage collector.
@pytest.mark.filterwarnings('ignore::pytest.PytestUnraisableExceptionWarning')
def test_video_on_a_full_disk_is_refused_in_one_line(tmp_path, rig, motion):
    pytest.importorskip('imageio_ffmpeg', reason='imageio-ffmpeg is not installed')
    path = tmp_path / 'arm.mp4'
    path.symlink_to('/dev/full')
    with pytest.raises(NotWrittenError, match=r'arm\.mp4: cannot be written .ffmpeg ended early'):
        render(rig, motion, path, 0.4)


@pytest.mark.parametrize('program', ['/nonexistent/ffmpeg', '/bin/false'])
def test_an_ffmpeg_that_does_not_run_is_told_before_the_motion(tmp_path, monkeypatch, program):
    pytest.importorskip('imageio_ffmpeg', reason='imageio-ffmpeg is not installed')
    monkeypatch.setenv('IMAGEIO_FFMPEG_EXE', program)
    with pytest.raises(UsageError, match=f'ffmpeg, which does not run .*{program}'):
        check_output(tmp_path / 'arm.mp4')


# imageio_ffmpeg leaves its broken pipe to the garbage collector.
@pytest.mark.filterwarnings('ignore::pytest.PytestUnraisableExceptionWarning')
@pytest.mark.parametrize(
    ('works', 'error', 'told'),
    [
        ('*-version*', UsageError, 'No valid H.264 encoder'),
        ('*-version*|*"-f null -"', NotWrittenError, 'ffmpeg ended early'),
    ],
)
def test_an_ffmpeg_that_fails_is_an_error_in_one_line(
    tmp_path, rig, motion, monkeypatch, works, error, told
):
    ffmpeg = pytest.importorskip('imageio_ffmpeg._io', reason='imageio-ffmpeg is not installed')
    ffmpeg.get_first_available_h264_encoder.cache_clear()  # that of another ffmpeg
    program = tmp_path / 'ffmpeg'
    encoders = 'echo "------"; echo " V libx264"'
    program.write_text(f'#!/bin/sh\n{encoders}\ncase "$*" in {works}) exit 0;; esac\nexit 1\n')
    program.chmod(0o755)
    monkeypatch.setenv('IMAGEIO_FFMPEG_EXE', str(program))
    path = tmp_path / 'arm.mp4'
    path.write_bytes(b'older')
    with pytest.raises(error, match=told):
        render(rig, motion, path, 0.4)
    assert path.read_bytes() == b'older'


def test_a_folder_that_is_not_a_bag_is_refused(tmp_path):
    pytest.importorskip('rosbags', reason='rosbags is not installed')
    with pytest.raises(BagError, match='not a bag'):
        film_of_bag(tmp_path, load_rig('cable_arm'))


DOWN = {
    'stands': (0.0, 0.0, -9.81),
    'hangs': (0.0, 0.0, 9.81),
    'lies': (0.0, -9.81, 0.0),
    'lies on its back': (0.0, 9.81, 0.0),
    'lies on its side': (9.81, 0.0, 0.0),
    'lies on its other side': (-9.81, 0.0, 0.0),
    'leans': (-2.0, 3.0, -9.0),
}


@pytest.mark.parametrize('gravity', DOWN.values(), ids=DOWN)
def test_an_arm_is_drawn_as_mounted_and_not_mirrored(motion, gravity):
    rig = load_rig('cable_arm', settings=[f'gravity_m_s2={list(gravity)}'])
    ax = set_axes(new_figure(4.0), rig, motion)
    _, travelled = draw_moment(ax, rig, motion, 0, sections_of(rig, motion))
    drawn = [getattr(ax, f'get_{axis}label')()[0] for axis in 'xyz']
    order = ['xyz'.index(name) for name in drawn]
    for line, points in ((ax.lines[0], motion.path), (travelled, motion.tips[:1])):
        np.testing.assert_allclose(np.transpose(line.get_data_3d()), 1e3 * points[:, order])
    assert not any(artist.get_clip_on() for artist in (*ax.lines, *ax.collections))
    # The axes of the base in the picture: right, up, towards the viewer.
    ends = np.array([*np.zeros((1, 4)), *np.eye(3, 4)[np.argsort(order)]])
    ends[:, 3] = 1.0
    seen = ends @ ax.get_proj().T
    seen = seen[:, :3] / seen[:, 3:]
    axes = (seen[1:] - seen[0]) * [1.0, 1.0, -1.0]
    down = np.asarray(gravity) @ axes
    assert down[1] < -0.8 * abs(down[0])
    assert np.linalg.det(axes) > 0.0


def test_softarm_picture_writes_a_png_and_refuses_a_gif(tmp_path):
    def softarm(output):
        return CliRunner().invoke(
            app,
            ['picture', 'cable_arm_single', '--trajectory', 'circle_small', '--output', output],
        )

    refused = softarm(str(tmp_path / 'arm.gif'))
    assert refused.exit_code != 0 and 'softarm render' in refused.stderr
    assert softarm(str(tmp_path / 'arm.png')).exit_code == 0
    assert plt.imread(tmp_path / 'arm.png').std() > 0.01


@pytest.mark.parametrize('command', [['view'], ['render', '--output', 'arm.png']])
def test_a_name_that_is_neither_a_rig_nor_a_bag_is_refused(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused = CliRunner().invoke(app, [command[0], 'mondai', *command[1:]])
    assert refused.exit_code != 0
    said = f'{refused.stderr}{refused.exception}'
    assert "unknown rig 'mondai'" in said and 'or the folder of a recording' in said


def test_a_workspace_of_one_tip_is_a_picture_of_the_arm_and_no_strip(tmp_path, rig, monkeypatch):
    figures = []
    kept = report_plotting.save
    monkeypatch.setattr(
        report_plotting, 'save', lambda figure, file: figures.append(figure) or kept(figure, file)
    )
    few = sample_workspace(rig, 1, seed=0)
    draw_workspace(rig, few, tmp_path / 'few.png')
    side, above, _ = figures[0].axes
    length_mm = 1e3 * rig.model().rest_length_m
    for ax in (side, above):
        assert np.ptp(ax.get_xlim()) >= length_mm and np.ptp(ax.get_ylim()) >= length_mm
        for (low, high), values in zip(
            (ax.get_xlim(), ax.get_ylim()), ax.collections[0].get_offsets().T
        ):
            assert np.all((low < values) & (values < high))


def test_a_workspace_shows_the_arm_at_rest_where_its_model_has_it(tmp_path, monkeypatch):
    figures = []
    monkeypatch.setattr(report_plotting, 'save', lambda figure, file: figures.append(figure))
    lying = load_rig('pneumatic_arm', ['gravity_m_s2=[9.81, 0.0, 0.0]'])
    draw_workspace(lying, sample_workspace(lying, 5, seed=0), tmp_path / 'lying.png')
    model = lying.model()
    tip_mm = 1e3 * model.shape_of(model.rest_configuration).tip[:3, 3]
    assert tip_mm[0] > 10.0  # it sags
    side, along, _ = figures[0].axes
    for ax, shown in ((side, tip_mm[[0, 2]]), (along, tip_mm[:2])):
        (line,) = ax.get_lines()
        np.testing.assert_allclose(line.get_xydata()[[0, -1]], [[0.0, 0.0], shown], atol=1e-9)


def test_a_workspace_of_an_arm_that_falls_aside_has_no_arm_at_rest(tmp_path, monkeypatch):
    figures = []
    monkeypatch.setattr(report_plotting, 'save', lambda figure, file: figures.append(figure))
    heavy = [f'arm.sections[{i}].body_mass_kg=0.3' for i in range(2)]
    standing = ['gravity_m_s2=[0.0, 0.0, -9.81]', 'model=heavy_cable_statics', *heavy]
    rig = load_rig('cable_arm', standing)
    draw_workspace(rig, sample_workspace(rig, 20, seed=0), tmp_path / 'standing.png')
    side, _, _ = figures[0].axes
    assert side.get_lines()[0].get_xydata().shape == (0, 2)
    assert 'at rest' not in side.get_title()


def test_options_without_effect_on_a_picture_are_refused(tmp_path):
    output = str(tmp_path / 'arm.png')
    refused = CliRunner().invoke(
        app, ['render', 'cable_arm', '--output', output, '--seconds', '4']
    )
    assert refused.exit_code != 0
    said = f'{refused.stderr}{refused.exception}'
    assert '--seconds 4: a picture has no duration' in said
