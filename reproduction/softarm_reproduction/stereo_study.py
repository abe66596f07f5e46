"""
Measure the accuracy of stereo tip tracking on rendered images with known true positions.

    python -m softarm_reproduction.stereo_study [--shapes N] [--pictures FOLDER]

The arm of 0.28 m has a ball at the tip and three along its length. It is 0.6 m in front of two
cameras of 1280 x 960 pixels (focal length 1370 px, 50 degrees) that are 0.3 m apart. Every image
is rendered with blur and noise, and processed by the driver's detector, matcher and labeller.
Noise of 0.2 px is added to the centres, because rendered balls are located better than real ones.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from softarm_ros.emulation.stereo_renderer import ArmLooks, StereoRenderer
from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.poses import inverse_pose, pose
from softarm_ros.geometry.rotations import exp_so3
from softarm_ros.geometry.section_curve import along_sections
from softarm_ros.geometry.sightings import PointSighting
from softarm_ros.perception.config import SeenPoint
from softarm_ros.perception.stereo.camera import Camera
from softarm_ros.perception.stereo.cameras import SIDES, StereoCameras
from softarm_ros.perception.stereo.config import StereoCamerasConfig
from softarm_ros.perception.stereo.detection import MarkerLooks, Marks, find_marks
from softarm_ros.perception.stereo.images import Image, opencv
from softarm_ros.perception.stereo.rigid_fit import rigid_fit
from softarm_ros.perception.stereo.tracking import MarkerTracker
from softarm_ros.perception.stereo.triangulation import triangulate
from softarm_ros.perception.stereo.window import FlatWindow

SIZE, FOCAL_PX, BASELINE_M, DISTANCE_M = (1280, 960), 1370.0, 0.3, 0.6
NOISE_PX = 0.2
NO_LENS, LENS = (0.0, 0.0, 0.0, 0.0), (-0.18, 0.06, 4e-4, -3e-4, -0.008)
NAMES = ('middle_1', 'end_1', 'middle_2', 'tip')
MARKER_M, OUT_M = 0.008, 0.016
WRONG_M = 0.005  # larger errors are not noise: the point is another marker, or none
WINDOW = FlatWindow(np.array([0.0, 0.0, 1.0]), 0.25, 0.01)
# The arm hangs: its base is at the top of the image, with z downwards.
X_LB = pose(np.column_stack([[1, 0, 0], [0, 0, -1.0], [0, 1, 0]]), (0.0, -0.14, DISTANCE_M))
BASE_MARKERS = np.array([[0.04, 0, 0], [-0.04, 0, 0.01], [0, 0.03, 0], [0.02, 0.02, 0.05]])


@dataclass(frozen=True)
class Case:
    """The rendered scene and the cameras assumed for reading it."""

    name: str
    lens: tuple[float, ...] = NO_LENS
    hidden: bool = False
    window: FlatWindow | None = None
    window_known: bool = True
    base_found: bool = False
    bar_mm: float | None = None


CASES = (
    Case('no lens distortion', bar_mm=0.5),
    Case('lens, arm partly hidden', LENS, hidden=True, bar_mm=1.0),
    Case('into water, window known', LENS, window=WINDOW, bar_mm=1.5),
    Case('into water, window left out', LENS, window=WINDOW, window_known=False),
    Case('  and the base found so too', LENS, window=WINDOW, window_known=False, base_found=True),
)


@dataclass(frozen=True)
class Outcome:
    """Errors (n,) [mm] of the visible tip; counts over all images and markers."""

    case: Case
    tip_mm: Array
    images: int
    hidden_mm: Array
    seen: int
    wrong: int
    nees: float


def cameras_of(lens: tuple[float, ...], window: FlatWindow | None) -> StereoCameras:
    """Return a camera pair that looks at a point `DISTANCE_M` in front of the left camera."""
    K = np.array([[FOCAL_PX, 0, 643.0], [0, FOCAL_PX, 476.0], [0, 0, 1]])
    turn = np.arctan2(BASELINE_M, DISTANCE_M)
    X_LR = pose(exp_so3(np.array([0.0, -turn, 0.0])), (BASELINE_M, 0.0, 0.0))
    left, right = (Camera(side, SIZE, K, np.array(lens)) for side in SIDES)
    return StereoCameras(left, right, inverse_pose(X_LR), X_LB, window)


def shapes(count: int, seed: int) -> Iterator[tuple[Array, Array]]:
    """Yield centreline (39, 3) and markers (4, 3) of a two-section arm with random bends."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        tips = np.empty((2, 4, 4))
        X = np.eye(4)
        for k in range(2):
            bend = np.append(rng.uniform(-0.7, 0.7, 2), 0.0)
            middle = exp_so3(0.5 * bend)
            angle = float(np.linalg.norm(bend))
            chord = 0.14 * np.sin(0.5 * angle) / (0.5 * angle)
            X = X @ pose(exp_so3(bend), chord * middle[:, 2])
            tips[k] = X
        f = np.linspace(0.0, 1.0, 20)
        line = [along_sections(tips, k, f)[k:, :3, 3] for k in range(2)]
        poses = np.concatenate([along_sections(tips, k, np.array([0.5, 1.0])) for k in range(2)])
        yield np.concatenate(line), poses[:, :3, 3] + OUT_M * poses[:, :3, 1]


def hiding_bar(rng: np.random.Generator, markers: Array) -> Array:
    """Return the outline (4, 3) of a bar 30 mm in front of the arm, near one of its markers."""
    at = markers[rng.integers(len(markers))] + rng.uniform(-0.008, 0.008, 3)
    at[1] += 0.03
    turn = rng.uniform(0.0, np.pi)
    along, across = (
        np.array([np.cos(turn), 0, np.sin(turn)]),
        np.array([-np.sin(turn), 0, np.cos(turn)]),
    )
    return np.array(
        [
            at + a * 0.04 * along + b * 0.003 * across
            for a, b in ((1, 1), (1, -1), (-1, -1), (-1, 1))
        ]
    )


def reading_cameras(case: Case, true: StereoCameras) -> StereoCameras:
    """Return the cameras that the reader assumes."""
    if case.window is None or case.window_known:
        return true
    blind = replace(true, window=None)
    if not case.base_found:
        return blind
    points = BASE_MARKERS @ X_LB[:3, :3].T + X_LB[:3, 3]
    seen = triangulate(blind, *(true.project(side, points) for side in SIDES)).points
    return replace(blind, X_LB=rigid_fit(BASE_MARKERS, seen)[0])


def run(case: Case, count: int, seed: int, pictures: Path | None = None) -> Outcome:
    """Render images of a case, read them, and compare with the truth."""
    true = cameras_of(case.lens, case.window)
    renderer = StereoRenderer(true, ArmLooks(marker_diameter_m=MARKER_M), seed)
    config = StereoCamerasConfig(
        rate_hz=30.0,
        left='rendered left',
        right='rendered right',
        base_calibration='none',
        points=tuple(SeenPoint(name=name, section='any') for name in NAMES),
        markers=MarkerLooks(noise_px=NOISE_PX),
        marker_diameter_m=MARKER_M,
        spacing_m=0.09,
    )
    reading = reading_cameras(case, true)
    rng = np.random.default_rng(seed + 1)
    tips, all_errors, nees, images = [], [], [], 0
    for line, markers in shapes(count, seed):
        boxes = [hiding_bar(rng, markers)] if case.hidden else []
        shown = renderer.draw(line, markers, boxes)
        if pictures is not None and images == 0:
            _save(pictures / f'{case.name.strip().replace(" ", "_").replace(",", "")}.png', shown)
        images += 1
        left, right = (_shaken(find_marks(image, config.markers), rng) for image in shown)
        if case.window is not None and not case.window_known:
            points = _unlabelled(true, reading, markers, (left, right))
        else:
            # Each shape on its own, with expected positions from a model that is 5 mm off.
            tracker = MarkerTracker(config, reading)
            guess = markers + rng.normal(0.0, 0.005, markers.shape)
            tracker.expect(1, dict(zip(NAMES, guess)))
            points = tracker.name(1, (left, right)).points
        for point in points:
            miss = point.position - markers[NAMES.index(point.name)]
            all_errors.append(float(np.linalg.norm(miss)))
            if point.covariance is not None:
                nees.append(float(miss @ np.linalg.solve(point.covariance, miss)))
            if point.name == 'tip':
                tips.append(all_errors[-1])
    each = np.array(all_errors)
    return Outcome(
        case,
        1e3 * np.array(tips),
        images,
        1e3 * each,
        len(each),
        int((each > WRONG_M).sum()),
        float(np.mean(nees)) / 3.0 if nees else float('nan'),
    )


def _unlabelled(
    true: StereoCameras, reading: StereoCameras, markers: Array, marks: tuple[Marks, Marks]
) -> tuple[PointSighting, ...]:
    """
    Return every marker visible in both images, without the reader's gates.

    With camera errors of centimetres the gates would reject most points, whose errors are the
    result sought here.
    """
    points_L = markers @ X_LB[:3, :3].T + X_LB[:3, 3]
    X_BL = inverse_pose(reading.base_pose())
    seen = []
    for name, point in zip(NAMES, points_L):
        pixels = []
        for side, each in zip(SIDES, marks):
            away = np.linalg.norm(each.pixels - true.project(side, point), axis=1)
            if away.size and away.min() < 2.0:
                pixels.append(each.pixels[int(away.argmin())])
        if len(pixels) == 2:
            found = triangulate(reading, *pixels).points[0]
            seen.append(PointSighting(name, X_BL[:3, :3] @ found + X_BL[:3, 3]))
    return tuple(seen)


def _shaken(marks: Marks, rng: np.random.Generator) -> Marks:
    return replace(marks, pixels=marks.pixels + rng.normal(0.0, NOISE_PX, marks.pixels.shape))


def _save(path: Path, shown: tuple[Image, Image]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    data = opencv().imencode('.png', np.hstack(shown))[1]
    path.write_bytes(data.tobytes())


def report(outcomes: list[Outcome]) -> list[str]:
    """Return the lines of the table."""
    lines = [
        f'tip error [mm]; {NOISE_PX} px noise, {DISTANCE_M} m away, cameras {BASELINE_M} m apart',
        f'{"":30s}  tip seen     rms    mean     p95     max  bar (rms)  wrong points  NEES/3',
    ]
    for out in outcomes:
        e = out.tip_mm
        rms = float(np.sqrt((e**2).mean()))
        bar = '' if out.case.bar_mm is None else f'{out.case.bar_mm:g}'
        lines.append(
            f'{out.case.name:30s}  {len(e):3d}/{out.images:3d}  {rms:7.3f} {e.mean():7.3f} '
            f'{np.percentile(e, 95):7.3f} {e.max():7.3f}  {bar:>9s}  '
            f'{out.wrong:4d} of {out.seen:4d}  {out.nees:6.2f}'
        )
    return lines


def main() -> None:
    """Print the table of all cases."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument('--shapes', type=int, default=60, help='number of arm shapes per case')
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument('--pictures', type=Path, help='folder for the first pair of each case')
    given = parser.parse_args()
    outcomes = [run(case, given.shapes, given.seed, given.pictures) for case in CASES]
    print('\n'.join(report(outcomes)))


if __name__ == '__main__':
    main()
