"""Detection, matching and labelling on drawn images whose truth is known."""

import numpy as np
import pytest

pytest.importorskip('cv2', reason='opencv-python-headless is not installed')

from arm_cases import NAMES, a_config, a_server, bent, centreline
from pydantic import ValidationError
from stereo_cases import a_pair

from softarm_ros.emulation.stereo_camera_server import BASELINE_M
from softarm_ros.perception.stereo.camera import CameraError
from softarm_ros.perception.stereo.cameras import SIDES
from softarm_ros.perception.stereo.detection import MarkerLooks, Marks, find_marks
from softarm_ros.perception.stereo.labelling import in_order, label
from softarm_ros.perception.stereo.matching import candidates, unambiguous
from softarm_ros.perception.stereo.tracking import MarkerTracker

cv2 = pytest.importorskip('cv2')


def disc(centre, radius, size=(80, 60), ground=30.0, grey=220.0, noise=0.0, seed=0):
    """Draw a disc by how much of each pixel it covers, 16 x 16 points each."""
    fine = (np.arange(16) + 0.5) / 16 - 0.5
    x = (np.arange(size[0])[:, None] + fine).ravel()
    y = (np.arange(size[1])[:, None] + fine).ravel()
    inside = np.hypot(x[None] - centre[0], y[:, None] - centre[1]) < radius
    part = inside.reshape(size[1], 16, size[0], 16).mean(axis=(1, 3))
    image = ground + part * (grey - ground)
    image = image + np.random.default_rng(seed).normal(0.0, noise, image.shape)
    return np.clip(np.rint(image), 0, 255).astype(np.uint8)


@pytest.mark.parametrize('kind', ['bright', 'dark'])
@pytest.mark.parametrize(('blur_px', 'within_px'), [(0.7, 0.02), (0.0, 0.03)])
def test_a_centre_is_found_to_hundredths_of_a_pixel(kind, blur_px, within_px):
    rng = np.random.default_rng(2)
    for _ in range(20):
        centre, radius = rng.uniform(20, 40, 2), rng.uniform(3.0, 8.0)
        image = disc(centre, radius)
        image = cv2.GaussianBlur(image, (0, 0), blur_px) if blur_px else image
        image = 255 - image if kind == 'dark' else image
        marks = find_marks(image, MarkerLooks(kind=kind))
        assert np.abs(marks.pixels - centre).max() < within_px
        assert marks.areas[0] == pytest.approx(np.pi * radius**2, rel=0.05)


def test_marker_centre_is_not_biased_by_the_edge_of_the_arm():
    for at in (36.0, 38.3, 40.7, 44.0):  # the arm is to the right of the 40th column
        ground = np.full((60, 80), 30.0)
        ground[:, 40:] = 90.0
        image = disc((at, 30.2), 6.0, ground=ground)
        image = cv2.GaussianBlur(image, (0, 0), 0.7)
        marks = find_marks(image, MarkerLooks())
        assert np.abs(marks.pixels - (at, 30.2)).max() < 0.04


def test_marker_wider_than_the_table_of_directions_is_measured_as_well():
    centre = (70.3, 65.8)
    marks = find_marks(disc(centre, 45.0, size=(140, 130)), MarkerLooks(largest_px=9000.0))
    assert np.abs(marks.pixels - centre).max() < 0.02


def test_read_only_and_strided_images_are_searched():
    image = disc((40.2, 30.4), 6.0)
    wide = np.repeat(image[..., None], 2, axis=2)
    locked = image.copy()
    locked.setflags(write=False)
    for same in (locked, wide[..., 0]):
        np.testing.assert_array_equal(
            find_marks(same, MarkerLooks()).pixels, find_marks(image, MarkerLooks()).pixels
        )


def test_covariance_of_a_marker_centre_matches_its_scatter():
    looks = MarkerLooks(noise_px=1e-6)
    centre, found, claimed = np.array([33.3, 28.6]), [], []
    for seed in range(100):
        marks = find_marks(disc(centre, 5.0, noise=6.0, seed=seed), looks)
        found.append(marks.pixels[0])
        claimed.append(marks.covariances[0])
    ratio = np.cov(np.array(found).T).trace() / np.mean(claimed, axis=0).trace()
    assert 0.5 < ratio < 2.0


def test_marker_of_the_given_hue_is_found_among_others():
    image = np.full((60, 80, 3), 40, dtype=np.uint8)
    cv2.circle(image, (20, 30), 6, (30, 200, 30), -1)  # green
    cv2.circle(image, (55, 30), 6, (30, 30, 220), -1)  # red
    red = find_marks(image, MarkerLooks(kind='colour', hue_deg=(340, 20), threshold=100))
    assert red.pixels == pytest.approx(np.array([[55.0, 30.0]]), abs=0.05)
    with pytest.raises(CameraError, match='the image is grey'):
        find_marks(image[..., 0], MarkerLooks(kind='colour', hue_deg=(340, 20)))


def test_aruco_marker_is_named_by_its_number():
    dictionary = cv2.aruco.getPredefinedDictionary(cv2.aruco.DICT_4X4_50)
    image = np.full((120, 160), 200, dtype=np.uint8)
    image[30:78, 50:98] = cv2.aruco.generateImageMarker(dictionary, 7, 48)
    marks = find_marks(image, MarkerLooks(kind='aruco'))
    assert marks.names == ('7',)
    assert marks.pixels[0] == pytest.approx([73.5, 53.5], abs=0.2)


def test_partial_or_too_large_marker_is_rejected_with_the_reason():
    half = disc((40, 30), 8.0)
    half[:, 40:] = 30
    said = [
        find_marks(half, MarkerLooks()).rejected[0],
        find_marks(disc((1.0, 30), 5.0), MarkerLooks()).rejected[0],
        find_marks(disc((40, 30), 15.0), MarkerLooks(largest_px=500)).rejected[0],
    ]
    assert 'as long as wide' in said[0]
    assert 'at the edge' in said[1]
    assert 'more than 500' in said[2]


def marks_of(pixels, sd=0.2):
    n = len(pixels)
    return Marks(
        np.array(pixels, dtype=float),
        np.tile(sd**2 * np.eye(2), (n, 1, 1)),
        np.full(n, 50.0),
        ('',) * n,
    )


def test_marks_on_one_epipolar_line_are_matched_only_with_a_prediction():
    pair = a_pair()
    # Two points whose right images lie on the epipolar line of both.
    points = np.array([[0.0, 0.0, 0.6], [0.02, 0.0, 0.6], [0.0, 0.08, 0.62]])
    marks = [marks_of(pair.project(side, points)) for side in SIDES]
    found = candidates(pair, *marks)
    assert len(found.left) > 3
    assert len(unambiguous(found).left) == 1
    wrong_by = np.array([0.002, -0.002, 0.002])
    expected = {n: p + wrong_by for n, p in zip('abc', points)}
    which = label(found, expected, 0.003)
    assert {n: found.points[i] for n, i in which.items()} == {
        n: pytest.approx(p, abs=1e-6) for n, p in zip('abc', points)
    }


def test_hidden_marker_is_missing_and_not_replaced_by_another():
    pair = a_pair()
    points = np.array([[0.0, -0.05, 0.6], [0.01, 0.0, 0.6], [0.02, 0.05, 0.6]])
    left, right = (pair.project(side, points) for side in SIDES)
    found = candidates(pair, marks_of(left), marks_of(right[[0, 2]]))
    which = label(found, dict(zip('abc', points)), 0.005)
    assert set(which) == {'a', 'c'}


def test_marker_with_two_equally_good_candidates_is_not_labelled():
    pair = a_pair()
    points = np.array([[0.0, -0.004, 0.6], [0.0, 0.004, 0.6]])
    found = candidates(pair, *(marks_of(pair.project(side, points)) for side in SIDES))
    assert label(found, {'a': np.array([0.0, 0.0, 0.6])}, 0.01) == {}
    assert set(label(found, {'a': points[0]}, 0.001)) == {'a'}


def test_order_along_the_arm_labels_markers_only_if_all_are_seen():
    line = np.array([[0, 0, 0.07], [0, 0.01, 0.14], [0.01, 0.03, 0.2]])
    assert in_order(line[[2, 0, 1]], 'abc', np.zeros(3), 0.08) == {'a': 1, 'b': 2, 'c': 0}
    assert in_order(line[:2], 'abc', np.zeros(3), 0.08) == {}
    assert in_order(line[1:], 'ab', np.zeros(3), 0.05) == {}


def see(server, tracker, tips, stamp_ns):
    images = server.draw(tips, centreline(tips))
    return {p.name: p for p in tracker.see(stamp_ns, images['left'], images['right']).points}


def truth(server, tips):
    return server.markers(tips)


def test_tracker_follows_all_markers_of_a_moving_arm():
    config = a_config()
    server = a_server(config)
    tracker = MarkerTracker(config, server.cameras)
    errors = []
    for k in range(12):
        tips = bent((0.05 + 0.05 * k, 0.3 - 0.04 * k))
        seen = see(server, tracker, tips, 1_000_000_000 + 33_000_000 * k)
        assert set(seen) == set(NAMES)
        errors += [seen[n].position - p for n, p in truth(server, tips).items()]
    assert np.sqrt((np.array(errors) ** 2).sum(axis=1).mean()) < 5e-4


def test_hidden_marker_leaves_the_others_labelled_and_returns():
    config = a_config()
    server = a_server(config)
    tracker = MarkerTracker(config, server.cameras)
    see(server, tracker, bent(), 1_000_000_000)
    server.inject('hide')
    seen = see(server, tracker, bent(), 1_033_000_000)
    assert set(seen) == set(NAMES[:-1])
    server.inject('mend')
    seen = see(server, tracker, bent(), 1_066_000_000)
    assert set(seen) == set(NAMES)


def test_exchanged_images_are_recognised():
    config = a_config()
    server = a_server(config)
    images = server.draw(bent(), centreline(bent()))
    tracker = MarkerTracker(config, server.cameras)
    right_way = tracker.see(1, images['left'], images['right'])
    wrong_way = tracker.see(2, images['right'], images['left'])
    assert len(right_way.points) == 4
    assert not wrong_way.points
    assert tracker.fits_swapped(wrong_way.marks)
    assert not tracker.fits_swapped(right_way.marks)
    assert server.cameras.baseline_m == pytest.approx(BASELINE_M)


@pytest.mark.parametrize(
    ('change', 'says'),
    [
        ({'right': 'http://127.0.0.1:1/left'}, 'expected two cameras'),
        ({'right': 'ros:/right camera/image_raw'}, 'expected the name of a topic after ros:'),
        ({'max_skew_s': 0.02}, 'less than half a period'),
        ({'markers': {'kind': 'colour'}}, 'hue_deg'),
        ({'markers': {'kind': 'aruco', 'dictionary': '8X8_50'}}, r'markers\.dictionary'),
        ({'markers': {'smallest_px': 50, 'largest_px': 20}}, 'largest_px = 20'),
    ],
)
def test_invalid_stereo_camera_fields_are_named(change, says):
    with pytest.raises(ValidationError, match=says):
        a_config(**change)
