"""Quality of a set of board images: coverage, tilt, outliers, and warnings about them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.perception.stereo.boards import BoardView
from softarm_ros.perception.stereo.camera import Mask

GRID = (8, 6)  # cells of the image, across and down
FEWEST_IMAGES = 10  # with the board at different places
LEAST_COVERAGE = 0.6
LEAST_TILT_DEG = 20.0
# Between two boards. Below the first, the focal length is often wrong by several percent, and by
# tens of percent if all boards are parallel, whatever their common tilt; residuals do not show it.
LEAST_TURN_DEG = 5.0
GOOD_TURN_DEG = 20.0
# An image is an outlier if its error exceeds this multiple of the median and this many pixels.
OUTLIER_OF_MEDIAN = 3.0
OUTLIER_PX = 0.3
# A board is at another place if a corner has moved by this share of the image's width.
MOVED = 0.01


def coverage(views: Sequence[BoardView], size: tuple[int, int]) -> Mask:
    """Return which cells (6, 8) of the image contain a corner in any of the views."""
    seen = np.zeros(GRID[::-1], dtype=bool)
    for view in views:
        cell = np.floor((view.pixels + 0.5) / size * GRID).astype(int)
        inside = ((cell >= 0) & (cell < GRID)).all(axis=1)
        seen[cell[inside, 1], cell[inside, 0]] = True
    return seen


def places(views: Sequence[BoardView], width_px: int) -> int:
    """Return the number of different places of the board in the views."""
    kept: list[BoardView] = []
    for view in views:
        if all(_apart_px(view, old) > MOVED * width_px for old in kept):
            kept.append(view)
    return len(kept)


def _apart_px(view: BoardView, other: BoardView) -> float:
    """Return the largest distance between the positions of a corner in two views."""
    _, here, there = np.intersect1d(view.ids, other.ids, return_indices=True)
    if not len(here):
        return np.inf
    return float(np.linalg.norm(view.pixels[here] - other.pixels[there], axis=1).max())


def tilt_deg(rotation: Array) -> float:
    """Return the angle between the view and the normal of a board with a rotation (3, 3)."""
    return float(np.degrees(np.arccos(np.clip(abs(rotation[2, 2]), 0.0, 1.0))))


def turn_deg(rotations: Array) -> float:
    """Return the largest angle between the normals of two boards with rotations (n, 3, 3)."""
    normals = rotations[:, :, 2] * np.where(rotations[:, 2, 2] < 0.0, -1.0, 1.0)[:, None]
    return float(np.degrees(np.arccos(np.clip(normals @ normals.T, -1.0, 1.0).min())))


def outliers(errors_px: Array) -> Mask:
    """Return which images (n,) are outliers by their root-mean-square error (n,)."""
    limit = max(OUTLIER_OF_MEDIAN * float(np.median(errors_px)), OUTLIER_PX)
    return np.asarray(errors_px > limit)


def few_images(camera: str, images: int, places: int) -> list[str]:
    """Return a warning if there are too few images, or places of the board in them."""
    if images < FEWEST_IMAGES:
        return [f'{camera}: {images} images: expected at least {FEWEST_IMAGES}; take more']
    if places < FEWEST_IMAGES:
        return [
            f'{camera}: the board lies at {places} places in {images} images: expected at least '
            f'{FEWEST_IMAGES}; move it between images'
        ]
    return []


def lens_warnings(
    camera: str, seen: Mask, tilts_deg: Sequence[float], turn_deg: float
) -> list[str]:
    """Return what the images of a camera lack to determine its lens, each with a remedy."""
    found = []
    if seen.mean() < LEAST_COVERAGE:
        cells = f'{int(seen.sum())} of {seen.size}'
        found.append(
            f'{camera}: corners in {cells} cells of the image: expected {LEAST_COVERAGE:.0%}; '
            'move the board into edges and corners, otherwise the lens is unknown there'
        )
    if max(tilts_deg) < LEAST_TILT_DEG:
        found.append(
            f'{camera}: largest tilt {max(tilts_deg):.0f} deg: expected {LEAST_TILT_DEG:.0f}; '
            'tilt the board, otherwise focal length and distance cannot be separated'
        )
    elif turn_deg < GOOD_TURN_DEG:
        found.append(
            f'{camera}: the boards are parallel to within {turn_deg:.0f} deg: expected '
            f'{GOOD_TURN_DEG:.0f}; tilt the board each way, otherwise focal length and distance '
            'cannot be separated'
        )
    return found
