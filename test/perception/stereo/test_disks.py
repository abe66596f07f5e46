"""Rigid disks: labels of their markers, their pose and covariance, and doubted markers."""

import numpy as np
import pytest

pytest.importorskip('cv2', reason='opencv-python-headless is not installed')

from arm_cases import a_server, bent, centreline, disk_config, model_of
from pydantic import ValidationError

from softarm_ros.geometry.poses import pose
from softarm_ros.geometry.rotations import exp_so3, log_so3
from softarm_ros.perception.stereo.cameras import SIDES
from softarm_ros.perception.stereo.detection import MarkerLooks, Marks, find_marks
from softarm_ros.perception.stereo.disk_kernels import assign_disks, rigid_labels
from softarm_ros.perception.stereo.disk_pose import disk_pose
from softarm_ros.perception.stereo.picture import marked
from softarm_ros.perception.stereo.region_kernels import in_one_region, joined_regions
from softarm_ros.perception.stereo.rigid_fit import rigid_fit
from softarm_ros.perception.stereo.tracking import MarkerTracker
from softarm_ros.perception.stereo.video_devices import VideoDevice, list_video_devices

KNOWN = np.array([[0.03, 0, 0], [0.01, 0.03, 0], [-0.02, 0.02, 0.01], [-0.03, -0.01, 0]])
X = pose(exp_so3(np.array([0.2, -0.4, 0.1])), (0.1, -0.2, 0.5))
PLACES = KNOWN @ X[:3, :3].T + X[:3, 3]


def test_markers_of_a_displaced_disk_are_labelled_as_a_rigid_group():
    turned = exp_so3(np.array([0.05, 0.0, -0.05]))
    expected = (PLACES - X[:3, 3]) @ turned.T + X[:3, 3] + (0.02, -0.01, 0.015)
    shuffled = np.concatenate([PLACES[[2, 0, 3]], [[0.13, -0.2, 0.52]]])  # one hidden, one foreign
    assert rigid_labels(shuffled, expected, 0.04, 0.008).tolist() == [1, -1, 0, 2]
    assert rigid_labels(shuffled, expected, 0.01, 0.008).tolist() == [-1] * 4


def test_two_points_of_a_regular_row_are_not_labelled():
    row = np.array([[0.02 * k, 0.0, 0.0] for k in range(4)])
    assert rigid_labels(row[:2] + 0.01, row, 0.05, 0.004).tolist() == [-1] * 4


def test_points_claimed_by_two_like_disks_go_to_the_nearer_one():
    above, below = np.array([0.0, 0.0, 0.02]), np.array([0.0, 0.0, 0.004])
    places = np.concatenate([PLACES + above, PLACES - below])  # where both are expected
    reaches, rows, starts = np.full(8, 0.01), np.arange(8), np.array([0, 4, 8])
    tolerances = np.full(2, 0.004)
    found = assign_disks(PLACES, places, reaches, rows, starts, tolerances)
    assert found.tolist() == [-1, -1, -1, -1, 0, 1, 2, 3]
    # One marker of the first disk is hidden: it claims the points of the second, too.
    both = np.concatenate([PLACES, PLACES[1:] + above])
    found = assign_disks(both, places, reaches, rows, starts, tolerances)
    assert found.tolist() == [-1, 4, 5, 6, 0, 1, 2, 3]
    rows[2] = -1  # it is not known where one of the first disk's markers should be
    found = assign_disks(both, places, reaches, rows, starts, tolerances)
    assert found.tolist() == [-1, -1, -1, -1, 0, 1, 2, 3]


@pytest.mark.parametrize('flat', [False, True])
def test_equal_covariances_give_the_pose_of_the_unweighted_fit(flat):
    rng = np.random.default_rng(3)
    known = KNOWN * (1.0, 1.0, 0.0 if flat else 1.0)
    for _ in range(20):
        turn = pose(exp_so3(rng.normal(0.0, 2.0, 3)), rng.normal(0.0, 0.3, 3))
        seen = known @ turn[:3, :3].T + turn[:3, 3] + rng.normal(0.0, 1e-4, (4, 3))
        fit = disk_pose(known, seen, np.tile(1e-7 * np.eye(3), (4, 1, 1)), 1e-4)
        np.testing.assert_allclose(fit.pose, rigid_fit(known, seen)[0], atol=1e-12)


def test_markers_on_a_line_give_no_pose():
    line = np.array([[0.01 * k, 0.0, 0.0] for k in range(3)])
    seen = line @ X[:3, :3].T + X[:3, 3]
    assert disk_pose(line, seen, np.tile(1e-8 * np.eye(3), (3, 1, 1)), 1e-4) is None


def test_covariance_of_a_disk_pose_matches_its_scatter():
    rng = np.random.default_rng(4)
    # Cameras measure worst along the view, z.
    spread = np.diag([1e-4, 1e-4, 5e-4]) ** 2
    errors, nees = [], []
    for _ in range(300):
        seen = PLACES + rng.multivariate_normal(np.zeros(3), spread, 4)
        fit = disk_pose(KNOWN, seen, np.tile(spread, (4, 1, 1)), 1e-6)
        if fit is None or fit.doubted:
            continue
        error = np.concatenate(
            [fit.pose[:3, 3] - X[:3, 3], log_so3(fit.pose[:3, :3] @ X[:3, :3].T)]
        )
        errors.append(error)
        nees.append(error @ np.linalg.solve(fit.covariance, error))
    assert len(errors) > 280
    assert np.mean(nees) / 6.0 == pytest.approx(1.0, abs=0.2)
    weighted = np.sqrt(np.mean(np.array(errors)[:, 2] ** 2))
    assert weighted < 4e-4


def test_reflection_among_four_markers_is_doubted_and_among_three_gives_no_pose():
    seen = PLACES.copy()
    seen[1] += (0.004, 0.0, 0.0)
    spread = np.tile(1e-8 * np.eye(3), (4, 1, 1))
    fit = disk_pose(KNOWN, seen, spread, 1e-4)
    assert fit.doubted == (1,)
    assert np.linalg.norm(fit.pose[:3, 3] - X[:3, 3]) < 1e-6
    assert disk_pose(KNOWN[:3], seen[:3], spread[:3], 1e-4) is None


@pytest.mark.parametrize(
    ('fields', 'says'),
    [
        ({'body': {'markers': KNOWN[[0, 1, 2, 1]].tolist()}}, r'markers\[1\] and markers\[3\]'),
        ({'points': [{'name': 'tip:1', 'section': 'second'}]}, 'points: tip:1: the name of a mar'),
    ],
)
def test_markers_that_cannot_be_told_apart_are_refused(fields, says):
    body = {'name': 'tip', 'section': 'second', 'markers': KNOWN.tolist()}
    with pytest.raises(ValidationError, match=says):
        disk_config(bodies=[body | fields.get('body', {})], points=fields.get('points', []))


def test_body_needs_three_markers_that_are_not_on_a_line():
    line = [[0.0, 0.0, 0.01 * k] for k in range(3)]
    for markers, said in ((line, 'lie on a line'), (line[:2], '2 markers: expected at least 3')):
        with pytest.raises(ValidationError, match=said):
            disk_config(bodies=[{'name': 'tip', 'section': 'second', 'markers': markers}])


def test_search_in_regions_finds_the_marks_of_the_whole_image():
    server = a_server(disk_config())
    image = server.draw(bent(), centreline(bent()))['left']
    whole = find_marks(image, MarkerLooks())
    boxes = [(int(x) - 15, int(y) - 15, int(x) + 15, int(y) + 15) for x, y in whole.pixels]
    parts = find_marks(image, MarkerLooks(), boxes)
    order = [int(np.abs(parts.pixels - p).sum(axis=1).argmin()) for p in whole.pixels]
    np.testing.assert_array_equal(parts.pixels[order], whole.pixels)
    np.testing.assert_array_equal(parts.covariances[order], whole.covariances)
    assert find_marks(image, MarkerLooks(), []).pixels.shape == (0, 2)


def test_overlapping_regions_are_joined_and_cut_at_the_edge_of_the_image():
    regions = np.array(
        [[0, 0, 5, 5], [4, 4, 9, 9], [20, 0, 90, 3], [1, 1, np.nan, 3], [-9, 0, 0, 9]], dtype=float
    )
    assert joined_regions(regions, 30, 30).tolist() == [[20, 0, 30, 3], [0, 0, 9, 9]]


def test_marks_are_paired_only_within_the_regions_of_one_marker():
    regions = np.array([[[0, 0, 9, 9], [5, 5, 20, 20]], [[40, 0, 50, 9], [60, 5, 70, 20]]], float)
    left = np.array([[1.0, 1.0], [6.0, 6.0], [30.0, 30.0]])
    right = np.array([[45.0, 3.0], [65.0, 9.0], [50.0, 3.0]])
    assert in_one_region(left, right, regions).tolist() == [
        [True, False, False],
        [True, True, False],
        [False, False, False],
    ]


def test_tracker_finds_disks_with_a_wrong_model_and_draws_them_in_the_picture():
    config = disk_config()
    server = a_server(config)
    tips = bent((0.2, 0.3))
    off = np.array([0.01, -0.008, 0.005])
    wrong = {name: p + off for name, p in model_of(tips, config).items()}
    tracker = MarkerTracker(config, server.cameras, lambda: wrong)
    images = server.draw(tips, centreline(tips))
    seen = tracker.see(1, *(images[side] for side in SIDES))
    assert {body.name for body in seen.bodies} == {'first', 'second'}
    for body, truth in zip(seen.bodies, tips):
        assert np.linalg.norm(body.pose[:3, 3] - truth[:3, 3]) < 1.5e-3
    again = tracker.see(33_000_000, *(images[side] for side in SIDES))
    assert not again.searched
    picture = marked((images['left'], images['right']), seen, server.cameras)
    assert picture.shape == (480, 1280, 3)
    plain = np.hstack([images[side] for side in SIDES])
    assert (picture != plain[..., None]).any(axis=2).sum() > 300


def test_disk_with_a_hidden_marker_is_not_mistaken_for_a_similar_one():
    config = disk_config()
    server = a_server(config)
    tips = bent((0.01, 0.0))
    places = model_of(tips, config)
    tracker = MarkerTracker(config, server.cameras, lambda: places)
    images = server.draw(tips, centreline(tips))
    marks = [find_marks(images[side], config.markers) for side in SIDES]
    assert {body.name for body in tracker.name(1, tuple(marks)).bodies} == {'first', 'second'}
    X_LB = server.cameras.base_pose()
    hidden = X_LB[:3, :3] @ places['first:1'] + X_LB[:3, 3]
    for k, side in enumerate(SIDES):
        away = marks[k].pixels - server.cameras.project(side, hidden[None])
        marks[k] = without(marks[k], int(np.linalg.norm(away, axis=1).argmin()))
    # After a gap the first disk could be at the place of the second, which shows more markers.
    seen = tracker.name(149_000_000, tuple(marks))
    assert [body.name for body in seen.bodies] == ['first', 'second']
    for body, truth in zip(seen.bodies, tips):
        assert np.linalg.norm(body.pose[:3, 3] - truth[:3, 3]) < 3e-3, body.name


def without(marks, n):
    """Return the marks of an image without the n-th."""
    left = np.delete(np.arange(len(marks.pixels)), n)
    names = tuple(marks.names[k] for k in left)
    return Marks(marks.pixels[left], marks.covariances[left], marks.areas[left], names)


def test_cameras_of_this_computer_are_listed_by_number(tmp_path):
    for number, index, name in ((10, 0, 'right'), (2, 0, 'left'), (3, 1, 'left metadata')):
        folder = tmp_path / f'video{number}'
        folder.mkdir()
        (folder / 'index').write_text(f'{index}\n')
        (folder / 'name').write_text(f'{name}\n')
    (tmp_path / 'video4').mkdir()
    assert list_video_devices(tmp_path) == [
        VideoDevice('/dev/video2', 'left'),
        VideoDevice('/dev/video10', 'right'),
    ]
