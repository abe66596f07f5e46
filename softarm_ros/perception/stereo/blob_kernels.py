"""Compiled measure of one blob: where its middle is, how sure that is, and what shape it has."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel

# How much of a pixel must be covered to count: the ground may be brighter next to the blob.
_LEAST_COVER = 0.2
_SMOOTHED = 5  # grey levels around a blob, of which the median is its background there
_BRIGHT = 0.9  # share of the blob's levels that are below its own level


@kernel
def measure_blob(
    strength: NDArray[np.uint8],
    labels: NDArray[np.int32],
    number: int,
    near_disc: NDArray[np.uint8],
    beyond_disc: NDArray[np.uint8],
) -> Array:
    """
    Return (8,): centre x, y [px], its covariance xx, xy, yy [px2], area [px], length by width,
    fullness.

    Each pixel weighs what it is covered by: between the background, read around the blob in the
    direction of the pixel, and the blob's own level. One background for all would shift a marker
    at the edge of the arm by a tenth of a pixel, towards the brighter side. Neighbours do not
    count. The covariance is what the noise of the grey levels does to the centre. Fullness is the
    blob's area by that of the ellipse of its moments.

    Parameters
    ----------
    strength : (h, w)
        Markers are bright; the blob with its rim.
    labels : (h, w)
        0 for background, `number` for this blob, others for its neighbours.
    number : int
        Of the blob.
    near_disc, beyond_disc : (k, k)
        1 where a pixel is so near to the blob that its edge fades there; 1 up to where the
        background is read.

    """
    height, width = strength.shape
    out = np.empty(8)
    levels = np.empty(height * width)
    count = 0
    sx = sy = sxx = sxy = syy = 0.0
    for y in range(height):
        for x in range(width):
            if labels[y, x] == number:
                levels[count] = strength[y, x]
                count += 1
                sx += x
                sy += y
                sxx += x * x
                sxy += x * y
                syy += y * y
    mx, my = sx / count, sy / count
    # Each pixel is a square, whose own second moment is 1/12.
    a = sxx / count - mx * mx + 1.0 / 12.0
    b = sxy / count - mx * my
    c = syy / count - my * my + 1.0 / 12.0
    middle, spread = 0.5 * (a + c), math.sqrt(0.25 * (a - c) ** 2 + b * b)
    large, small = middle + spread, max(middle - spread, 1e-9)
    out[6] = math.sqrt(large / small)
    out[7] = count / (4.0 * math.pi * math.sqrt(large * small))

    near = _grown(labels, number, near_disc)
    beyond = _grown(labels, number, beyond_disc)
    angles, around = _rim(strength, labels, number, near, beyond, True)
    if len(around) < 2 * _SMOOTHED:
        angles, around = _rim(strength, labels, number, near, beyond, False)
    noise = _noise(around)
    smooth = _smoothed(around)
    top = _share_below(np.sort(levels[:count]), _BRIGHT)

    total = area = wx = wy = 0.0
    cover = np.zeros((height, width))
    tall = np.ones((height, width))
    x0, y0 = 0.5 * (width - 1), 0.5 * (height - 1)
    for y in range(height):
        for x in range(width):
            other = labels[y, x] > 0 and labels[y, x] != number
            if not near[y, x] or other:
                continue
            ground = _between(math.atan2(y - y0, x - x0), angles, smooth)
            # From a little above the ground: it may be brighter between the blob and its rim.
            whole = max(top - ground, 1.0)
            step = (1.0 - _LEAST_COVER) * whole
            over = strength[y, x] - ground
            part = min(max((over - _LEAST_COVER * whole) / step, 0.0), 1.0)
            cover[y, x], tall[y, x] = part, step
            area += min(max(over / whole, 0.0), 1.0)
            total += part
            wx += part * x
            wy += part * y
    cx, cy = wx / total, wy / total
    xx = xy = yy = 0.0
    for y in range(height):
        for x in range(width):
            if cover[y, x] > 0.0:
                arm_x = (x - cx) * noise / tall[y, x]
                arm_y = (y - cy) * noise / tall[y, x]
                xx += arm_x * arm_x
                xy += arm_x * arm_y
                yy += arm_y * arm_y
    out[0], out[1] = cx, cy
    out[2], out[3], out[4] = xx / total**2, xy / total**2, yy / total**2
    out[5] = area
    return out


@kernel
def _grown(labels: NDArray[np.int32], number: int, disc: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Return the blob with all pixels that a disc around one of its own covers."""
    height, width = labels.shape
    half = disc.shape[0] // 2
    grown = np.zeros((height, width), dtype=np.bool_)
    for y in range(height):
        for x in range(width):
            if labels[y, x] != number:
                continue
            for j in range(max(-half, -y), min(half, height - 1 - y) + 1):
                for i in range(max(-half, -x), min(half, width - 1 - x) + 1):
                    if disc[j + half, i + half]:
                        grown[y + j, x + i] = True
    return grown


@kernel
def _rim(
    strength: NDArray[np.uint8],
    labels: NDArray[np.int32],
    number: int,
    near: NDArray[np.bool_],
    beyond: NDArray[np.bool_],
    alone: bool,
) -> tuple[Array, Array]:
    """Return direction [rad] and grey levels of the background around a blob, in order."""
    height, width = labels.shape
    angles = np.empty(height * width)
    levels = np.empty(height * width)
    x0, y0 = 0.5 * (width - 1), 0.5 * (height - 1)
    count = 0
    for y in range(height):
        for x in range(width):
            other = labels[y, x] > 0 and labels[y, x] != number
            if beyond[y, x] and not near[y, x] and not (alone and other):
                angles[count] = math.atan2(y - y0, x - x0)
                levels[count] = strength[y, x]
                count += 1
    rank = np.argsort(angles[:count])
    return angles[:count][rank], levels[:count][rank]


@kernel
def _noise(around: Array) -> float:
    """Return the standard deviation of grey levels, by those of neighbours: at least rounding."""
    if around.size < 8:
        return 1.0
    steps = np.sort(np.abs(around[1:] - around[:-1])) / math.sqrt(2.0)
    return max(1.4826 * _share_below(steps, 0.5), 0.5)


@kernel
def _smoothed(around: Array) -> Array:
    """Return the median of each level and its neighbours on the closed rim."""
    count, half = around.size, _SMOOTHED // 2
    smooth = np.empty(count)
    few = np.empty(_SMOOTHED)
    for k in range(count):
        for j in range(_SMOOTHED):
            few[j] = around[(k + j - half) % count]
        smooth[k] = np.sort(few)[half]
    return smooth


@kernel
def _share_below(ordered: Array, share: float) -> float:
    """Return the level that a share of ordered levels is below, interpolated."""
    place = share * (ordered.size - 1)
    low = int(place)
    high = min(low + 1, ordered.size - 1)
    return float(ordered[low] + (place - low) * (ordered[high] - ordered[low]))


@kernel
def _between(angle: float, angles: Array, values: Array) -> float:
    """Return a periodic function of an angle between where it is known, by straight lines."""
    count = angles.size
    after = int(np.searchsorted(angles, angle))
    low, high = (after - 1) % count, after % count
    gap = (angles[high] - angles[low]) % (2.0 * math.pi)
    if gap <= 0.0:
        return float(values[low])
    share = ((angle - angles[low]) % (2.0 * math.pi)) / gap
    return float(values[low] + min(share, 1.0) * (values[high] - values[low]))
