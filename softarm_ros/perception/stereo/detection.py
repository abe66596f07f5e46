"""Markers in an image: bright, dark, coloured or ArUco; centres to a fraction of a pixel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, model_validator

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.configs import ConfigBlock, Positive
from softarm_ros.perception.stereo.camera import CameraError
from softarm_ros.perception.stereo.images import Image, grey, opencv

Level = Annotated[int, Field(ge=1, le=254)]
Degrees = Annotated[float, Field(ge=0.0, le=360.0)]

_EDGE_PX = 2  # around a blob its edge fades; beyond, the background is read
_RIM_PX = _EDGE_PX + 2
# How far the area of an ellipse is below what its second moments say: none. A digital one: some.
_FULLEST = 1.15
_LEAST_COVER = 0.2
_SMOOTHED = 5  # grey levels around a blob, of which the median is its background there


class MarkerLooks(ConfigBlock):
    """What a marker looks like in an image."""

    kind: Literal['bright', 'dark', 'colour', 'aruco'] = Field(
        default='bright',
        description='bright: retro-reflective balls or lamps; dark: black dots; colour: of a hue; '
        'aruco: where the arm is stiff enough to keep them flat',
    )
    threshold: Level = Field(
        default=128, description='grey level (bright, dark) or saturation (colour) of its edge'
    )
    hue_deg: tuple[Degrees, Degrees] | None = Field(
        default=None, description='of colour: from, to; red is 340 to 20'
    )
    smallest_px: Positive = Field(default=12.0, description='area; less is noise')
    largest_px: Positive = Field(
        default=4000.0, description='area; more is a lamp or a reflection'
    )
    elongation: Annotated[float, Field(ge=1.0)] = Field(
        default=1.35, description='longest by shortest width; more is partly hidden or no marker'
    )
    fullness: Annotated[float, Field(gt=0.0, le=1.0)] = Field(
        default=0.9,
        description='area by that of the ellipse of its moments; less is partly hidden',
    )
    noise_px: Positive = Field(
        default=0.1, description='standard deviation of a centre beyond that of the grey levels'
    )
    dictionary: str = Field(default='4X4_50', description='of aruco, as in OpenCV without DICT_')

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
    What was found in one image.

    Attributes
    ----------
    pixels : (n, 2)
        Centres.
    covariances : (n, 2, 2)
        [px2].
    areas : (n,)
        [px].
    names : tuple of str
        Numbers of ArUco markers; empty strings for others.
    rejected : tuple of str
        What looked like a marker and was not taken, with place and reason.

    """

    pixels: Array
    covariances: Array
    areas: Array
    names: tuple[str, ...]
    rejected: tuple[str, ...] = ()


def find_marks(image: Image, looks: MarkerLooks) -> Marks:
    """Return the markers in an image; those at its edge, or partly hidden, are not taken."""
    if looks.kind == 'aruco':
        return _aruco(grey(image), looks)
    return _blobs(_strength(image, looks), looks)


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
    # Hue of dark or grey pixels is noise; their saturation times brightness is small.
    chroma = saturation.astype(np.float32) * value / 255.0
    return np.where(right, np.rint(chroma), 0).astype(np.uint8)


def _blobs(strength: Image, looks: MarkerLooks) -> Marks:
    cv2 = opencv()
    level = looks.threshold if looks.kind != 'dark' else 255 - looks.threshold
    _, mask = cv2.threshold(strength, level, 255, cv2.THRESH_BINARY)
    count, labels, stats, _ = cv2.connectedComponentsWithStats(mask, connectivity=8)
    height, width = strength.shape
    pixels, covariances, areas, rejected = [], [], [], []
    for number in range(1, count):
        x, y, w, h, area = (int(v) for v in stats[number])
        if area < looks.smallest_px:
            continue
        place = f'{x + w // 2}, {y + h // 2}'
        if area > looks.largest_px:
            rejected.append(f'{place}: area {area} px: more than {looks.largest_px:g}')
            continue
        box = (x - _RIM_PX, y - _RIM_PX, x + w + _RIM_PX, y + h + _RIM_PX)
        if min(box[:2]) < 0 or box[2] > width or box[3] > height:
            rejected.append(f'{place}: at the edge of the image')
            continue
        part = slice(box[1], box[3]), slice(box[0], box[2])
        own = labels[part] == number
        shape = _shape(own)
        if shape[0] > looks.elongation:
            rejected.append(f'{place}: {shape[0]:.2f} times as long as wide')
            continue
        if not looks.fullness <= shape[1] <= _FULLEST:
            rejected.append(f'{place}: fills {shape[1]:.0%} of its ellipse')
            continue
        other = (labels[part] > 0) & ~own
        centre, spread, size = _centre(strength[part].astype(np.float64), own, other)
        pixels.append(centre + box[:2])
        covariances.append(spread + looks.noise_px**2 * np.eye(2))
        areas.append(size)
    return _marks(pixels, covariances, areas, [''] * len(pixels), rejected)


def _shape(own: Any) -> tuple[float, float]:
    """Return length by width of a blob, and its area by that of the ellipse of its moments."""
    y, x = np.asarray(own).nonzero()
    # Each pixel is a square, whose own second moment is 1/12.
    moments = np.cov(np.stack([x, y]), bias=True) + np.eye(2) / 12.0
    sizes = np.linalg.eigvalsh(moments)
    return float(np.sqrt(sizes[1] / sizes[0])), len(x) / (4.0 * np.pi * np.sqrt(sizes.prod()))


def _centre(strength: Array, own: Any, other: Any) -> tuple[Array, Array, float]:
    """
    Return centre (2,) of a blob by its grey levels, its covariance (2, 2), and its area [px].

    Each pixel weighs what it is covered by: between the background, read around the blob in the
    direction of the pixel, and the blob's own level. One background for all would shift a marker
    at the edge of the arm by a tenth of a pixel, towards the brighter side. Neighbours do not
    count. The covariance is what the noise of the grey levels does to the centre.
    """
    y, x = np.mgrid[: strength.shape[0], : strength.shape[1]]
    near, beyond = (_grown(own, by) for by in (_EDGE_PX, _EDGE_PX + 1))
    edge = beyond & ~near & ~other
    if edge.sum() < 2 * _SMOOTHED:
        edge = beyond & ~near
    middle = 0.5 * (np.array(strength.shape[::-1]) - 1.0)
    angle = np.arctan2(y - middle[1], x - middle[0])
    rank = np.argsort(angle[edge])
    around = strength[edge][rank]
    noise = _noise(around)
    wrapped = np.concatenate([around[-(_SMOOTHED // 2) :], around, around[: _SMOOTHED // 2]])
    smooth = np.median(np.lib.stride_tricks.sliding_window_view(wrapped, _SMOOTHED), axis=1)
    ground = np.interp(angle, angle[edge][rank], smooth, period=2.0 * np.pi)
    # From a little above the ground: it may be brighter between the blob and where it was read.
    whole = np.maximum(np.percentile(strength[own], 90.0) - ground, 1.0)
    height = (1.0 - _LEAST_COVER) * whole
    cover = np.clip((strength - ground - _LEAST_COVER * whole) / height, 0.0, 1.0)
    cover = np.where(near & ~other, cover, 0.0)
    area = float(np.clip((strength - ground) / whole, 0.0, 1.0)[near & ~other].sum())
    total = float(cover.sum())
    centre = np.array([(cover * x).sum(), (cover * y).sum()]) / total
    counted = cover > 0.0
    arm = np.stack([x[counted] - centre[0], y[counted] - centre[1]]) * noise / height[counted]
    return centre, arm @ arm.T / total**2, area


def _noise(around: Array) -> float:
    """Return the standard deviation of grey levels, by those of neighbours: at least rounding."""
    if around.size < 8:
        return 1.0
    steps = np.abs(np.diff(around)) / np.sqrt(2.0)
    return max(1.4826 * float(np.median(steps)), 0.5)


def _grown(own: Any, by_px: int) -> Any:
    """Return a blob with all pixels that are so near to it."""
    cv2 = opencv()
    size = 2 * by_px + 1
    disc = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (size, size))
    return cv2.dilate(own.astype(np.uint8), disc) > 0


def _aruco(image: Image, looks: MarkerLooks) -> Marks:
    cv2 = opencv()
    number = getattr(cv2.aruco, f'DICT_{looks.dictionary}', None)
    if number is None:
        raise CameraError(f'dictionary = {looks.dictionary!r}: OpenCV has none of this name')
    settings = cv2.aruco.DetectorParameters()
    settings.cornerRefinementMethod = cv2.aruco.CORNER_REFINE_SUBPIX
    detector = cv2.aruco.ArucoDetector(cv2.aruco.getPredefinedDictionary(number), settings)
    corners, ids, _ = detector.detectMarkers(image)
    pixels, covariances, areas, names, rejected = [], [], [], [], []
    found = [] if ids is None else [str(i) for i in np.ravel(ids)]
    for name, corner in zip(found, corners):
        quad = np.asarray(corner, dtype=np.float64).reshape(4, 2)
        if found.count(name) > 1:
            rejected.append(f'marker {name} is there more than once')
            continue
        # Where the diagonals cross is the middle of a square, in any perspective.
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
