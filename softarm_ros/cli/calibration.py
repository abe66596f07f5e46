"""Implements `softarm calibrate`: from images to a calibration file and a picture."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path

import numpy as np

from softarm_ros.cli.cli_errors import UsageError
from softarm_ros.geometry.poses import pose
from softarm_ros.geometry.rotations import exp_so3
from softarm_ros.perception.stereo.boards import Board
from softarm_ros.perception.stereo.calibrate_base import (
    FEWEST_CORNERS,
    base_from_board,
    base_from_markers,
)
from softarm_ros.perception.stereo.calibrate_camera import CameraFit, calibrate_camera
from softarm_ros.perception.stereo.calibrate_stereo import (
    FEWEST_SHARED,
    StereoFit,
    calibrate_stereo,
    shared_corners,
)
from softarm_ros.perception.stereo.calibrate_window import calibrate_window
from softarm_ros.perception.stereo.calibration_file import (
    BaseBlock,
    CalibrationFile,
    CameraBlock,
    PoseBlock,
    StereoBlock,
    WindowBlock,
    board_block,
    read_calibration,
    write_calibration,
)
from softarm_ros.perception.stereo.camera import Camera, CameraError
from softarm_ros.perception.stereo.cameras import SIDES, Side
from softarm_ros.perception.stereo.collect import (
    Collected,
    collect,
    files_alone,
    from_files,
    worth_keeping,
)
from softarm_ros.perception.stereo.frame_source import NOT_YET, FrameSource
from softarm_ros.perception.stereo.images import Image, opencv, read_image
from softarm_ros.perception.stereo.pairing import PairByStamp
from softarm_ros.perception.stereo.sources import is_live, open_source
from softarm_ros.perception.stereo.window import FlatWindow
from softarm_ros.whole_file import whole_file

_LIVE_SKEW_S = 0.02
_LIVE_WAIT_S = 0.2
_PLUGGED_IN_S = 10.0  # time to retry a failing camera: enough to fix a loose plug


@dataclass(frozen=True)
class Images:
    """Sources of each camera's images; live ones are read until `count` are kept."""

    left: str | None
    right: str | None
    count: int
    wait_s: float

    @property
    def given(self) -> dict[Side, str]:
        """The sources given by the user."""
        each = {'left': self.left, 'right': self.right}
        return {side: text for side in SIDES if (text := each[side]) is not None}

    def both(self) -> tuple[str, str]:
        """Return both sources; UsageError if one is missing."""
        if self.left is None or self.right is None:
            raise UsageError('--left and --right are both needed')
        return self.left, self.right

    def files(self) -> tuple[Path, Path]:
        """Return one image file of each camera; UsageError where a source is something else."""
        left, right = self.both()
        for side, place in zip(SIDES, (left, right)):
            if not Path(place).is_file():
                raise UsageError(f'--{side} {place}: expected one image file, with --markers')
        return Path(left), Path(right)

    def pictures(self, picture: Path) -> dict[Side, Path]:
        """Return the picture of each camera: the given one, or one for each side of two."""
        if len(self.given) == 1:
            return dict.fromkeys(self.given, picture)
        return {side: picture.with_stem(f'{picture.stem}_{side}') for side in self.given}

    def require_apart(self, picture: Path) -> None:
        """Raise UsageError if a picture would replace an image, or be read as one next time."""
        for side, place in self.given.items():
            pattern = Path(place, '*') if Path(place).is_dir() else Path(place)
            if picture.resolve().match(str(pattern.resolve())):
                raise UsageError(
                    f'--{side} {place}: the picture of the result, {picture}, would be one of '
                    'these images: choose another --picture'
                )

    def collected(
        self, board: Board, places: Sequence[str], *, one_place: bool = False
    ) -> Collected:
        """
        Return the views of the board in these sources; CameraError if there are none.

        A live board must be held still for each view, in a new place unless `one_place`.
        """
        live = [is_live(place) for place in places]
        if any(live) and not all(live):
            raise UsageError(f'{" and ".join(places)}: expected both live, or both files')
        shown = self._live(board, places, one_place) if live[0] else from_files(places)
        found = collect(board, shown)
        if not found.views:
            images = set().union(*found.without_board)
            blind = [p for p, own in zip(places, found.without_board) if len(own) == len(images)]
            if images and not blind:
                raise CameraError(
                    f'{" and ".join(places)}: no pair shows the board to both cameras'
                )
            dark = next((f' ({why})' for why in found.dark if why), '')
            raise CameraError(
                f'{" and ".join(blind or places)}: no board found: expected {board.described}'
                f'{dark}'
            )
        return found if live[0] else replace(found, alone=files_alone(places))

    def _live(
        self, board: Board, places: Sequence[str], one_place: bool
    ) -> Iterator[tuple[str, tuple[Image, ...]]]:
        sources = [open_source(place) for place in places]
        for source in sources:
            source.open()
        try:
            images = _live_images(sources, self.wait_s)
            yield from worth_keeping(board, images, self.count, one_place=one_place)
        finally:
            for source in sources:
                source.close()


def print_board(board: Board, path: Path) -> str:
    """Write a picture of a board to print; return a line with its size on paper."""
    if path.suffix != '.png':
        raise UsageError(f'--output {path}: expected a name that ends in .png')
    picture = board.draw(120)
    good, data = opencv().imencode('.png', picture)
    if not good:
        raise CameraError(f'{path}: OpenCV cannot write PNG')
    with whole_file(path) as part:
        part.write_bytes(data.tobytes())
    across, down = (1e3 * board.square_m * n / 120 for n in picture.shape[::-1])
    return (
        f'{path}: print it {across:.1f} x {down:.1f} mm, glue it to something flat and stiff, and '
        'measure the squares'
    )


def camera(
    board: Board, images: Images, output: Path, picture: Path, rational: bool, drop: bool
) -> list[str]:
    """Calibrate each camera that has images by itself; keep the other camera of the file."""
    from softarm_ros.cli.calibration_picture import draw_camera

    if not images.given:
        raise UsageError('--left or --right is needed')
    names = images.pictures(picture)
    for name in names.values():
        images.require_apart(name)
    known = read_calibration(output) if output.exists() else CalibrationFile()
    blocks, lines = dict(known.cameras), []
    fits: dict[Side, CameraFit] = {}
    for side, place in images.given.items():
        found = images.collected(board, [place])
        views = [view[0] for view in found.views]
        fits[side] = calibrate_camera(
            board, views, found.sizes[0], side, rational=rational, drop_outliers=drop
        )
        blocks[side] = _camera_block(fits[side])
        lines += [*_camera_lines(fits[side]), *_left_out([side], found)]
    # Nothing is replaced before all fits are there, and the calibration last.
    lines += [f'picture: {draw_camera(fit, names[side])}' for side, fit in fits.items()]
    fresh = CalibrationFile(created=_now(), board=board_block(board), cameras=blocks)
    write_calibration(output, fresh)
    return [*lines, *_gone(known, fresh), f'calibration: {output}']


def stereo(
    board: Board,
    images: Images,
    output: Path,
    picture: Path,
    rational: bool,
    drop: bool,
    lenses: Path | None,
) -> list[str]:
    """Calibrate both cameras from pairs of images; lenses from another file are not changed."""
    from softarm_ros.cli.calibration_picture import draw_stereo

    images.require_apart(picture)
    before = read_calibration(output) if output.exists() else CalibrationFile()
    found = images.collected(board, images.both())
    known = None
    if lenses is not None:
        blocks = read_calibration(lenses).cameras
        if {'left', 'right'} - blocks.keys():
            raise CameraError(
                f'{lenses}: does not hold two cameras: run softarm calibrate camera first'
            )
        known = (blocks['left'].camera('left'), blocks['right'].camera('right'))
        _require_sizes(lenses, known, found.sizes)
    fit = calibrate_stereo(
        board,
        [(left, right) for left, right in found.views],
        (found.sizes[0], found.sizes[1]),
        rational=rational,
        drop_outliers=drop,
        lenses=known,
    )
    fresh = _stereo_file(board, fit)
    draw_stereo(fit, picture)
    write_calibration(output, fresh)
    lines = [*_camera_lines(fit.left), *_camera_lines(fit.right)]
    lines += _pairs_left_out(found, board, FEWEST_SHARED)
    lines += [
        f'stereo: {fit.rms_px:.3f} px rms, baseline {1e3 * fit.cameras.baseline_m:.2f} mm, '
        f'corners in space {1e3 * np.sqrt((fit.flatness_m**2).mean()):.3f} mm rms off the board',
        *(f'outlier: pair {name}' for name in fit.outliers),
        *(f'dropped: pair {name}' for name in fit.dropped),
        *(f'warning: {text}' for text in fit.warnings if text.startswith('pair ')),
        f'picture: {picture}',
        *_gone(before, fresh),
        f'calibration: {output}',
    ]
    return lines


def base(
    board: Board,
    images: Images,
    known: Path,
    output: Path,
    board_at: Sequence[float],
    markers: Path | None,
    threshold: int,
) -> list[str]:
    """Find the base frame from a board or from markers on the base, and add it to the file."""
    shown = None if markers is None else images.files()
    left_out: list[str] = []
    calibration = read_calibration(known)
    cameras = calibration.stereo_cameras()
    if markers is None or shown is None:
        found = images.collected(board, images.both(), one_place=True)
        _require_sizes(known, (cameras.left, cameras.right), found.sizes)
        at = np.asarray(board_at)
        X_BO = pose(exp_so3(np.radians(at[3:])), 1e-3 * at[:3])
        fit = base_from_board(cameras, board, [(left, right) for left, right in found.views], X_BO)
        left_out = _pairs_left_out(found, board, FEWEST_CORNERS)
    else:
        from softarm_ros.perception.stereo.base_markers import read_markers, seen_markers

        left, right = map(read_image, shown)
        sizes = [(image.shape[1], image.shape[0]) for image in (left, right)]
        _require_sizes(known, (cameras.left, cameras.right), sizes)
        places = read_markers(markers)
        points = seen_markers(cameras, left, right, threshold)
        fit = base_from_markers(places, points)
    block = BaseBlock(
        base_in_left=PoseBlock.of(fit.X_LB),
        source='board' if markers is None else 'markers',
        rms_mm=round(1e3 * fit.rms_m, 4),
        errors_mm={name: round(1e3 * error, 4) for name, error in fit.errors_m.items()},
    )
    write_calibration(output, calibration.model_copy(update={'base': block, 'created': _now()}))
    x, y, z = 1e3 * fit.X_LB[:3, 3]
    return [
        *left_out,
        *(f'{name}: {1e3 * error:.3f} mm' for name, error in fit.errors_m.items()),
        f'base: {1e3 * fit.rms_m:.3f} mm rms, at {x:.1f}, {y:.1f}, {z:.1f} mm of the left camera',
        f'calibration: {output}',
    ]


def window(
    board: Board,
    images: Images,
    known: Path,
    output: Path,
    size_mm: Sequence[float],
    indices: Sequence[float],
) -> list[str]:
    """Fit the window to images of a board under water, and add it to the file."""
    calibration = read_calibration(known)
    cameras = calibration.model_copy(update={'window': None}).stereo_cameras()
    found = images.collected(board, images.both())
    _require_sizes(known, (cameras.left, cameras.right), found.sizes)
    guess = FlatWindow(np.array([0.0, 0.0, 1.0]), 1e-3 * size_mm[0], 1e-3 * size_mm[1], *indices)
    pairs = [(left, right) for left, right in found.views]
    fit = calibrate_window(cameras, board, pairs, guess)
    block = WindowBlock(
        normal_in_left=tuple(fit.window.normal.tolist()),
        distance_m=fit.window.distance_m,
        thickness_m=fit.window.thickness_m,
        air=fit.window.air,
        glass=fit.window.glass,
        water=fit.window.water,
        rms_px=round(fit.rms_px, 4),
    )
    # A base found without the window has a wrong pose.
    update = {'window': block, 'base': None, 'created': _now()}
    write_calibration(output, calibration.model_copy(update=update))
    return [
        *_pairs_left_out(found, board, FEWEST_SHARED),
        f'window: {fit.rms_px:.3f} px rms, {fit.rms_start_px:.3f} px as guessed; distance '
        f'{1e3 * fit.window.distance_m:.2f} +- {1e3 * fit.distance_sd_m:.2f} mm, normal '
        f'{np.round(fit.window.normal, 4).tolist()} +- {np.degrees(fit.normal_sd_rad):.2f} deg',
        f'calibration: {output}',
    ]


def _require_sizes(
    file: Path, cameras: Sequence[Camera], sizes: Sequence[tuple[int, int]]
) -> None:
    """Raise CameraError if images have another size than their camera was calibrated with."""
    for camera, size in zip(cameras, sizes):
        if camera.size != size:
            raise CameraError(
                f'{file}: camera {camera.name} has images of {camera.size} px: these have {size}'
            )


def _live_images(sources: Sequence[FrameSource], wait_s: float) -> Iterator[tuple[Image, ...]]:
    """Yield images, or pairs with matching time stamps, for `wait_s`."""
    pairing: PairByStamp[Image] = PairByStamp(_LIVE_SKEW_S)
    end = time.monotonic() + wait_s
    failing: dict[str, float] = {}
    while time.monotonic() < end:
        if all(source.ended() for source in sources):
            return
        for side, source in zip(SIDES, sources):
            frame = source.read(_LIVE_WAIT_S)
            if frame is None:
                _require_tried(source, failing)
                continue
            failing.pop(source.name, None)
            if len(sources) == 1:
                yield (frame.image,)
            elif (pair := pairing.push(side, frame.stamp_ns, frame.image)) is not None:
                yield pair.left, pair.right
    missing = [f'{source.name}: {why}' for source in sources if (why := source.problem())]
    if missing:
        raise CameraError('; '.join(missing))


def _require_tried(source: FrameSource, failing: dict[str, float]) -> None:
    """Raise CameraError if a source has failed to deliver images for too long."""
    why = source.problem()
    if why in ('', NOT_YET) or source.ended():
        return
    now = time.monotonic()
    tried_s = now - failing.setdefault(source.name, now)
    if tried_s > _PLUGGED_IN_S:
        raise CameraError(f'{source.name}: no image for {tried_s:.0f} s: {why}')


def _camera_block(fit: CameraFit) -> CameraBlock:
    rows = [tuple(row) for row in fit.camera.matrix.tolist()]
    return CameraBlock(
        size_px=fit.camera.size,
        matrix=(rows[0], rows[1], rows[2]),
        distortion=fit.camera.distortion.tolist(),
        rms_px=round(fit.rms_px, 4),
        focal_sd_px=round(float(fit.focal_sd_px.max()), 4),
        coverage_percent=round(100.0 * float(fit.coverage.mean()), 1),
        largest_tilt_deg=round(max(fit.tilts_deg), 1),
        image_errors_px={v.name: round(float(e), 4) for v, e in zip(fit.views, fit.errors_px)},
        outliers=list(fit.outliers),
        dropped=list(fit.dropped),
    )


def _stereo_file(board: Board, fit: StereoFit) -> CalibrationFile:
    blocks: dict[Side, CameraBlock] = {}
    for one, used in ((fit.left, fit.cameras.left), (fit.right, fit.cameras.right)):
        rows = [tuple(row) for row in used.matrix.tolist()]
        side: Side = 'left' if used.name == 'left' else 'right'
        blocks[side] = _camera_block(one).model_copy(
            update={
                'matrix': (rows[0], rows[1], rows[2]),
                'distortion': used.distortion.tolist(),
            }
        )
    pair = StereoBlock(
        left_in_right=PoseBlock.of(fit.cameras.X_RL),
        baseline_mm=round(1e3 * fit.cameras.baseline_m, 4),
        rms_px=round(fit.rms_px, 4),
        board_misfit_mm=round(1e3 * float(np.sqrt((fit.flatness_m**2).mean())), 4),
        pair_errors_px={n: round(float(e), 4) for n, e in zip(fit.names, fit.errors_px)},
        outliers=list(fit.outliers),
        dropped=list(fit.dropped),
    )
    return CalibrationFile(created=_now(), board=board_block(board), cameras=blocks, stereo=pair)


def _camera_lines(fit: CameraFit) -> list[str]:
    K = fit.camera.matrix
    name = fit.camera.name
    focal, centre = (
        '' if fit.kept else f' +- {sd.max():.1f}' for sd in (fit.focal_sd_px, fit.centre_sd_px)
    )
    return [
        f'{name}: {fit.rms_px:.3f} px rms alone, {len(fit.views)} images, focal lengths '
        f'{K[0, 0]:.1f}, {K[1, 1]:.1f}{focal} px, centre {K[0, 2]:.1f}, {K[1, 2]:.1f}{centre} px'
        + (', kept' if fit.kept else ''),
        f'{name}: worst image {fit.views[int(np.argmax(fit.errors_px))].name} '
        f'{fit.errors_px.max():.3f} px, coverage {fit.coverage.mean():.0%}, tilt up to '
        f'{max(fit.tilts_deg):.0f} deg',
        *(f'outlier: {name} {image}' for image in fit.outliers),
        *(f'dropped: {name} {image}' for image in fit.dropped),
        *(f'warning: {text}' for text in fit.warnings),
    ]


def _left_out(sides: Sequence[Side], found: Collected) -> list[str]:
    """Return a line about each image that was not used, with the reason."""
    return [
        *(
            f'{side}: no board in {image}'
            for side, images in zip(sides, found.without_board)
            for image in images
        ),
        *(
            f'{side}: {path.name} is left out: no image of the other camera matches it'
            for side, paths in zip(sides, found.alone)
            for path in paths
        ),
    ]


def _pairs_left_out(found: Collected, board: Board, fewest: int) -> list[str]:
    """Return a line about each image and each pair of images that was not used."""
    return [
        *_left_out(SIDES, found),
        *(
            f'pair {left.name} is left out: the corners that both cameras see are fewer than '
            f'{fewest}, or on one line'
            for left, right in found.views
            if shared_corners(board, (left, right), fewest) is None
        ),
    ]


def _gone(before: CalibrationFile, fresh: CalibrationFile) -> list[str]:
    """Return a line about parts of the old file that do not hold for the new cameras."""
    parts = {'pair': 'stereo', 'base': 'base', 'window': 'window'}
    gone = [
        name
        for name, part in parts.items()
        if getattr(before, part) is not None and getattr(fresh, part) is None
    ]
    if not gone:
        return []
    each = ', '.join(gone)
    verb = 'is' if len(gone) == 1 else 'are'
    return [f'note: {each} of this file belonged to the previous cameras, and {verb} removed']


def _now() -> str:
    return datetime.now(timezone.utc).strftime('%Y-%m-%dT%H:%M:%SZ')
