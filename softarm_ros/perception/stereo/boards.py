"""Calibration boards: positions of their corners on the board and in images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from softarm_ros.geometry.arrays import Array
from softarm_ros.perception.stereo.camera import CameraError
from softarm_ros.perception.stereo.images import Image, grey, opencv

Ids = NDArray[np.int64]

# The search window of a corner must show only its own four squares. If it includes the next
# corner, the result is shifted towards that one, by pixels if the board is far or tilted.
_WINDOW_OF_SPACING = 0.45
_LARGEST_WINDOW_PX = 11
_FEWEST_CORNERS = 6
_MOST = 100  # columns or rows; cameras cannot resolve smaller squares
_SQUARE_MM = (0.1, 1000.0)  # of any printed board; others are given in another unit


@dataclass(frozen=True)
class BoardView:
    """
    The corners of a board in one image.

    Attributes
    ----------
    name : str
        Name of the image.
    ids : (n,)
        Numbers of the corners, ascending.
    pixels : (n, 2)
        Positions of the corners; the centre of the first pixel is (0, 0).

    """

    name: str
    ids: Ids
    pixels: Array


@dataclass(frozen=True)
class Board:
    """
    A flat board; its frame has the first corner as origin, x along a row, y along a column.

    Attributes
    ----------
    kind : str
        'chessboard': `columns` by `rows` *inner corners*, all of which must be seen.
        'charuco': `columns` by `rows` *squares* with ArUco markers in the white ones; any part
        of it suffices, so this board is better near image edges and behind obstacles.
    square_m : float
        Side of a square.
    marker_m : float
        Side of a marker; for 'charuco' only.
    dictionary : str
        Name of the markers' dictionary in OpenCV, without DICT_.

    Raises
    ------
    CameraError
        If the attributes do not define a board.

    """

    kind: Literal['chessboard', 'charuco']
    columns: int
    rows: int
    square_m: float
    marker_m: float = 0.0
    dictionary: str = '4X4_250'

    def __post_init__(self) -> None:
        if self.kind not in ('chessboard', 'charuco'):
            raise CameraError(f'board: kind = {self.kind!r}: expected chessboard or charuco')
        if min(self.columns, self.rows) < 3:
            raise CameraError(
                f'board: {self.columns} x {self.rows}: expected at least 3 columns and rows'
            )
        if max(self.columns, self.rows) > _MOST:
            raise CameraError(
                f'board: {self.columns} x {self.rows}: expected at most {_MOST} columns and rows'
            )
        least, most = _SQUARE_MM
        if not least <= 1e3 * self.square_m <= most:
            raise CameraError(
                f'board: square = {1e3 * self.square_m:g} mm: expected {least:g} to {most:g} mm'
            )
        if self.kind == 'charuco' and not 0.0 < self.marker_m < self.square_m:
            raise CameraError(
                f'board: marker = {1e3 * self.marker_m:g} mm: expected more than 0 and less than '
                f'the square, {1e3 * self.square_m:g} mm'
            )

    @property
    def described(self) -> str:
        """What an image must show, for messages."""
        if self.kind == 'chessboard':
            return f'{self.columns} x {self.rows} inner corners'
        return f'{self.columns} x {self.rows} squares, markers of {self.dictionary}'

    @property
    def told_apart(self) -> bool:
        """Whether the board looks different after half a turn."""
        return self.kind == 'charuco' or (self.columns + self.rows) % 2 == 1

    def require_told_apart(self) -> None:
        """Raise CameraError if the board looks the same after half a turn."""
        if not self.told_apart:
            raise CameraError(
                f'board: {self.columns} x {self.rows} inner corners look the same upside down, so '
                'the two images cannot be matched: expected one odd and one even number, or '
                'charuco'
            )

    @property
    def _across(self) -> int:
        return self.columns if self.kind == 'chessboard' else self.columns - 1

    @property
    def _down(self) -> int:
        return self.rows if self.kind == 'chessboard' else self.rows - 1

    @property
    def corners(self) -> int:
        """Number of corners."""
        return self._across * self._down

    def points(self, ids: Ids | None = None) -> Array:
        """Return the corners (n, 3) with given numbers, or all, in the board's frame [m]."""
        which = np.arange(self.corners) if ids is None else np.asarray(ids)
        grid = np.column_stack([which % self._across, which // self._across, 0 * which])
        return self.square_m * grid.astype(np.float64)

    def define_pose(self, ids: Ids) -> bool:
        """Return whether corners with these numbers do not all lie on one line."""
        points = self.points(ids)[:, :2] / self.square_m
        return len(ids) > 2 and int(np.linalg.matrix_rank(points - points[0])) == 2

    def find(self, image: Image, name: str) -> BoardView | None:
        """Return the corners in an image, with subpixel accuracy; None if it shows no board."""
        flat = grey(image)
        if self.kind == 'chessboard':
            return self._find_chessboard(flat, name)
        return self._find_charuco(flat, name)

    def draw(self, pixels_per_square: int) -> Image:
        """Return a picture of the board to print, with a white margin of one square."""
        side = pixels_per_square
        if self.kind == 'charuco':
            size = ((self.columns + 2) * side, (self.rows + 2) * side)
            picture: Image = self._charuco().generateImage(size, marginSize=side)
            return picture
        squares = np.indices((self.rows + 1, self.columns + 1)).sum(axis=0) % 2
        return np.pad(
            np.kron(255 * squares, np.ones((side, side))).astype(np.uint8),
            side,
            constant_values=255,
        )

    def _find_chessboard(self, image: Image, name: str) -> BoardView | None:
        cv2 = opencv()
        shape = (self.columns, self.rows)
        flags = cv2.CALIB_CB_ADAPTIVE_THRESH | cv2.CALIB_CB_NORMALIZE_IMAGE
        found, corners = cv2.findChessboardCorners(image, shape, flags=flags)
        if not found:  # slower, but better with blur and noise
            found, corners = cv2.findChessboardCornersSB(image, shape)
        if not found:
            return None
        pixels = _refined(image, corners.reshape(-1, 2).astype(np.float64), self._spacing(corners))
        if self.told_apart and self._is_turned(image, pixels):
            pixels = pixels[::-1].copy()
        return BoardView(name, np.arange(self.corners), pixels)

    def _spacing(self, corners: Any) -> float:
        grid = corners.reshape(self.rows, self.columns, 2)
        return float(
            min(
                np.linalg.norm(np.diff(grid, axis=0), axis=2).min(),
                np.linalg.norm(np.diff(grid, axis=1), axis=2).min(),
            )
        )

    def _is_turned(self, image: Image, pixels: Array) -> bool:
        """Return whether the first square between corners is brighter than the last one."""
        grid = pixels.reshape(self.rows, self.columns, 2)
        centres = [grid[:2, :2].reshape(-1, 2).mean(0), grid[-2:, -2:].reshape(-1, 2).mean(0)]
        first, last = (_brightness(image, c, 0.2 * self._spacing(pixels)) for c in centres)
        return first > last

    def _charuco(self, *, legacy: bool = False) -> Any:
        """Return OpenCV's board; `legacy` has the first square white, as before OpenCV 4.6."""
        cv2 = opencv()
        number = getattr(cv2.aruco, f'DICT_{self.dictionary}', None)
        if number is None:
            raise CameraError(
                f'board: dictionary = {self.dictionary!r}: OpenCV has no dictionary of this name; '
                'expected 4X4_50 to 7X7_1000, ARUCO_ORIGINAL or APRILTAG_36h11'
            )
        board = cv2.aruco.CharucoBoard(
            (self.columns, self.rows),
            self.square_m,
            self.marker_m,
            cv2.aruco.getPredefinedDictionary(number),
        )
        board.setLegacyPattern(legacy)
        return board

    def _find_charuco(self, image: Image, name: str) -> BoardView | None:
        cv2 = opencv()
        # Both patterns are the same if the number of rows is odd.
        for legacy in (False,) if self.rows % 2 else (False, True):
            detector = cv2.aruco.CharucoDetector(self._charuco(legacy=legacy))
            corners, ids, _, _ = detector.detectBoard(image)
            if ids is not None:
                break
        if ids is None or len(ids) < _FEWEST_CORNERS:
            return None
        numbers = np.ravel(ids).astype(np.int64)
        rank = np.argsort(numbers)
        numbers, pixels = numbers[rank], corners.reshape(-1, 2).astype(np.float64)[rank]
        if not self.define_pose(numbers):
            return None
        grid = np.column_stack([numbers % self._across, numbers // self._across])
        # Least distance of corners that are neighbours on the board.
        next_to = np.abs(grid[:, None] - grid[None]).sum(axis=2) == 1
        if not next_to.any():
            return None
        spacing = float(np.linalg.norm(pixels[:, None] - pixels[None], axis=2)[next_to].min())
        # The corners of markers in the white squares are nearer than the next board corners.
        margin = 0.5 * (1.0 - self.marker_m / self.square_m) / _WINDOW_OF_SPACING
        return BoardView(name, numbers, _refined(image, pixels, min(margin, 1.0) * spacing))


def _refined(image: Image, corners: Array, spacing_px: float) -> Array:
    """Refine corners (n, 2) to subpixel accuracy by the gradients around each."""
    cv2 = opencv()
    half = int(np.clip(round(_WINDOW_OF_SPACING * spacing_px), 2, _LARGEST_WINDOW_PX))
    stop = (cv2.TERM_CRITERIA_EPS | cv2.TERM_CRITERIA_MAX_ITER, 100, 1e-4)
    start = corners.astype(np.float32).reshape(-1, 1, 2).copy()
    refined = cv2.cornerSubPix(image, start, (half, half), (-1, -1), stop)
    pixels: Array = refined.reshape(-1, 2).astype(np.float64)
    return pixels


def _brightness(image: Image, centre: Array, reach_px: float) -> float:
    reach = max(int(reach_px), 1)
    x, y = np.rint(centre).astype(int)
    return float(
        image[max(y - reach, 0) : y + reach + 1, max(x - reach, 0) : x + reach + 1].mean()
    )
