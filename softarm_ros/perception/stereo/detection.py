"""Detection of markers in an image: bright, dark, coloured or ArUco; subpixel centres."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator, model_validator

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.configs import ConfigBlock, Positive
from softarm_ros.perception.stereo.blob_kernels import direction_table, find_blobs, split_blobs
from softarm_ros.perception.stereo.camera import CameraError
from softarm_ros.perception.stereo.images import Image, grey, opencv
from softarm_ros.perception.stereo.region_kernels import joined_regions

Level = Annotated[int, Field(ge=1, le=254)]
Degrees = Annotated[float, Field(ge=0.0, le=360.0)]

Region = tuple[int, int, int, int]

_EDGE_PX = 2  # width of the faded edge around a blob; beyond, the background is read
_RIM_PX = _EDGE_PX + 2
_TABLE_PX = 48  # width of the largest blob, with its rim, whose directions are tabulated
# An ideal ellipse has fullness 1; that of a pixelated one may be somewhat larger.
_FULLEST = 1.15
_DICTIONARIES = (
    r'(4X4|5X5|6X6|7X7)_(50|100|250|1000)|ARUCO_ORIGINAL|APRILTAG_(16h5|25h9|36h10|36h11)'
)


class MarkerLooks(ConfigBlock):
    """Appearance of a marker in an image."""

    kind: Literal['bright', 'dark', 'colour', 'aruco'] = Field(
        default='bright',
        description='bright: retro-reflective balls or lamps; dark: black dots; colour: dots of '
        'one hue; aruco: only if the arm is stiff enough to keep them flat',
    )
    threshold: Level = Field(
        default=128, description='grey level (bright, dark) or saturation (colour) of its edge'
    )
    hue_deg: tuple[Degrees, Degrees] | None = Field(
        default=None, description='hue range for colour: from, to; red is 340 to 20'
    )
    smallest_px: Positive = Field(
        default=12.0, description='smallest area; smaller blobs are noise'
    )
    largest_px: Positive = Field(
        default=4000.0, description='largest area; larger blobs are lamps or reflections'
    )
    elongation: Annotated[float, Field(ge=1.0)] = Field(
        default=1.35,
        description='largest ratio of length to width; beyond, a blob is partly hidden',
    )
    fullness: Annotated[float, Field(gt=0.0, le=1.0)] = Field(
        default=0.9,
        description='smallest ratio of area to that of the ellipse of its moments; below, a '
        'blob is partly hidden',
    )
    noise_px: Positive = Field(
        default=0.1,
        description='standard deviation of a centre in addition to that from the grey levels',
    )
    dictionary: str = Field(
        default='4X4_50', description='dictionary of aruco markers, as in OpenCV without DICT_'
    )

    @field_validator('dictionary')
    @classmethod
    def _in_opencv(cls, name: str) -> str:
        if re.fullmatch(_DICTIONARIES, name) is None:
            raise ValueError(
                'expected 4X4_50 to 7X7_1000, ARUCO_ORIGINAL, or APRILTAG_16h5 to APRILTAG_36h11'
            )
        return name

    @model_validator(mode='after')
    def _fits(self) -> MarkerLooks:
        if self.largest_px <= self.smallest_px:
            raise ValueError(f'largest_px = {self.largest_px}: expected more than smallest_px')
        if (self.kind == 'colour') != (self.hue_deg is not None):
            raise ValueError('hue_deg goes with kind: colour, and only with it')
        return self


@dataclass(frozen=True)
class Marks:
    """
    Markers found in one image.

    Attributes
    ----------
    pixels : (n, 2)
        Centres.
    covariances : (n, 2, 2)
        Covariances of the centres [px2].
    areas : (n,)
        Areas [px].
    names : tuple of str
        Numbers of ArUco markers; '' for others.
    rejected : tuple of str
        Place of each rejected blob or marker, with the reason.

    """

    pixels: Array
    covariances: Array
    areas: Array
    names: tuple[str, ...]
    rejected: tuple[str, ...] = ()


def find_marks(
    image: Image, looks: MarkerLooks, regions: Array | Sequence[Region] | None = None
) -> Marks:
    """
    Return the markers in an image, except those at its edge or partly hidden.

    With `regions` (n, 4), ranges of columns and rows (from x, from y, to x, to y), only these are
    searched, without those with nan; ArUco markers are always searched for in the whole image.
    """
    if looks.kind == 'aruco':
        return _aruco(grey(image), looks)
    height, width = image.shape[:2]
    places = (
        np.array([[0, 0, width, height]])
        if regions is None
        else joined_regions(
            np.ascontiguousarray(regions, dtype=np.float64).reshape(-1, 4), width, height
        )
    )
    if looks.kind == 'bright':
        return _blobs(_plain(grey(image)), places, looks, (width, height))
    strength = np.zeros((height, width), dtype=np.uint8)
    for x0, y0, x1, y1 in places.tolist():
        strength[y0:y1, x0:x1] = _strength(image[y0:y1, x0:x1], looks)
    return _blobs(strength, places, looks, (width, height))


def _plain(image: Image) -> Image:
    """Return an image as compiled code takes it: contiguous and writable."""
    flags = image.flags
    return image if flags.c_contiguous and flags.writeable else image.copy(order='C')


def _strength(image: Image, looks: MarkerLooks) -> Image:
    """Return an image in which markers are bright; their edge is at the threshold."""
    if looks.hue_deg is None:
        flat = grey(image)
        return flat if looks.kind == 'bright' else np.asarray(255 - flat, dtype=np.uint8)
    if image.ndim != 3:
        raise CameraError('markers of kind colour: the image is grey: expected three channels')
    cv2 = opencv()
    hue, saturation, value = cv2.split(cv2.cvtColor(image, cv2.COLOR_BGR2HSV_FULL))
    low, high = (degrees / 360.0 * 255.0 for degrees in looks.hue_deg)
    right = (hue >= low) & (hue <= high) if low <= high else (hue >= low) | (hue <= high)
    # The hue of dark or grey pixels is noise, but their saturation times brightness is small.
    chroma = saturation.astype(np.float32) * value / 255.0
    return np.where(right, np.rint(chroma), 0).astype(np.uint8)


def _blobs(
    strength: Image, regions: NDArray[np.int64], looks: MarkerLooks, size: tuple[int, int]
) -> Marks:
    """Return the marks in disjoint regions (n, 4) of an image."""
    level = looks.threshold if looks.kind != 'dark' else 255 - looks.threshold
    near_disc, beyond_disc, turns = _tables()
    rows = find_blobs(
        strength,
        regions,
        level,
        looks.smallest_px,
        looks.largest_px,
        _RIM_PX,
        near_disc,
        beyond_disc,
        turns,
    )
    pixels, covariances, areas, others = split_blobs(
        rows, looks.elongation, (looks.fullness, _FULLEST), looks.noise_px
    )
    rejected = []
    for row in others:
        whole = tuple(regions[int(row[13])].tolist()) == (0, 0, *size)
        text = _why_rejected(row, looks, whole)
        if text:
            rejected.append(text)
    return Marks(pixels, covariances, areas, ('',) * len(areas), tuple(rejected))


def _why_rejected(row: Array, looks: MarkerLooks, whole: bool) -> str:
    """Return the place of a blob, a row of `find_blobs`, and why it is no marker."""
    x, y, w, h, area = (int(v) for v in row[8:13])
    place = f'{x + w // 2}, {y + h // 2}'
    if area > looks.largest_px:
        return f'{place}: area {area} px: more than {looks.largest_px:g}'
    if np.isnan(row[0]):
        # A blob cut by the border of a region is not worth reporting.
        return f'{place}: at the edge of the image' if whole else ''
    if row[6] > looks.elongation:
        return f'{place}: {row[6]:.2f} times as long as wide'
    return f'{place}: fills {row[7]:.0%} of its ellipse'


@lru_cache(maxsize=1)
def _tables() -> tuple[Image, Image, Array]:
    """Return `near_disc`, `beyond_disc` and `turns` of `measure_blob`."""
    return _disc(_EDGE_PX), _disc(_EDGE_PX + 1), direction_table(_TABLE_PX)


def _disc(radius_px: int) -> Image:
    cv2 = opencv()
    size = 2 * radius_px + 1
    disc: Image = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (size, size))
    return disc


def load_code() -> None:
    """Load compiled code, so that the first image does not wait for it."""
    blob = np.zeros((15, 15), dtype=np.uint8)
    blob[5:10, 5:10] = 200
    wide = np.zeros((40, 40), dtype=np.uint8)
    wide[10:25, 10:25] = blob
    find_marks(wide, MarkerLooks(), [(5, 5, 35, 35)])


def _aruco(image: Image, looks: MarkerLooks) -> Marks:
    cv2 = opencv()
    number = getattr(cv2.aruco, f'DICT_{looks.dictionary}')
    settings = cv2.aruco.DetectorParameters()
    settings.cornerRefinementMethod = cv2.aruco.CORNER_REFINE_SUBPIX
    detector = cv2.aruco.ArucoDetector(cv2.aruco.getPredefinedDictionary(number), settings)
    corners, ids, _ = detector.detectMarkers(image)
    pixels, covariances, areas, names, rejected = [], [], [], [], []
    found = [] if ids is None else [str(i) for i in np.ravel(ids)]
    for name, corner in zip(found, corners):
        quad = np.asarray(corner, dtype=np.float64).reshape(4, 2)
        if found.count(name) > 1:
            rejected.append(f'marker {name} occurs more than once')
            continue
        # In any perspective, the diagonals of a square cross at its centre.
        a, b = quad[2] - quad[0], quad[3] - quad[1]
        s = np.linalg.solve(np.column_stack([a, -b]), quad[1] - quad[0])[0]
        pixels.append(quad[0] + s * a)
        covariances.append(looks.noise_px**2 * np.eye(2))
        areas.append(0.5 * abs(a[0] * b[1] - a[1] * b[0]))
        names.append(name)
    return _marks(pixels, covariances, areas, names, rejected)


def _marks(
    pixels: list[Array],
    covariances: list[Array],
    areas: list[float],
    names: list[str],
    rejected: list[str],
) -> Marks:
    return Marks(
        np.array(pixels, dtype=np.float64).reshape(-1, 2),
        np.array(covariances, dtype=np.float64).reshape(-1, 2, 2),
        np.array(areas, dtype=np.float64),
        tuple(names),
        tuple(rejected),
    )
