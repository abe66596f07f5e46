"""Compiled search for blobs: centre of each blob, its covariance, and its shape."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel

# Smallest cover of a pixel that counts: the background may be brighter next to the blob.
_LEAST_COVER = 0.2
_SMOOTHED = 5  # number of rim pixels whose median grey level is the local background
_BRIGHT = 0.9  # the blob's own level is this quantile of its grey levels
_COLUMNS = 14  # number of results per blob


@kernel
def find_blobs(
    strength: NDArray[np.uint8],
    regions: NDArray[np.int64],
    level: int,
    smallest_px: float,
    largest_px: float,
    rim_px: int,
    near_disc: NDArray[np.uint8],
    beyond_disc: NDArray[np.uint8],
    turns: Array,
) -> Array:
    """
    Return the blobs (n, 14) of regions of an image. The first eight columns are those of
    `measure_blob`, nan if not measured, with the centre in the image. The others are the box x, y,
    width, height in the image, the number of pixels, and the index of the region.

    A blob is a set of bright pixels that touch one another, at corners too. It is not measured if
    it has more than `largest_px` pixels, or if the region ends within its rim.

    Parameters
    ----------
    strength : (h, w)
        Image in which markers are bright.
    regions : (r, 4)
        Regions in the image: from x, from y, to x, to y.
    level : int
        Brighter pixels belong to blobs.
    smallest_px, largest_px : float
        Number of pixels of a blob; smaller blobs are omitted.
    rim_px : int
        Width of the rim around a blob that `measure_blob` reads.
    near_disc, beyond_disc : (k, k)
        As for `measure_blob`.
    turns : (t, t)
        As for `measure_blob`.

    """
    found = np.empty((0, _COLUMNS))
    for number in range(regions.shape[0]):
        x0, y0 = regions[number, 0], regions[number, 1]
        x1, y1 = regions[number, 2], regions[number, 3]
        left, right, top, bottom, size = _bright(strength[y0:y1, x0:x1], level)
        if size == 0:
            continue
        # Only this part has blobs or their rims; it ends where a rim is cut by the region.
        x0, x1 = x0 + max(left - rim_px, 0), min(x0 + right + rim_px + 1, x1)
        y0, y1 = y0 + max(top - rim_px, 0), min(y0 + bottom + rim_px + 1, y1)
        rows = _blobs_of_part(
            strength[y0:y1, x0:x1],
            size,
            level,
            smallest_px,
            largest_px,
            rim_px,
            near_disc,
            beyond_disc,
            turns,
        )
        for k in range(rows.shape[0]):
            rows[k, 0] += x0 + rows[k, 8] - rim_px
            rows[k, 1] += y0 + rows[k, 9] - rim_px
            rows[k, 8] += x0
            rows[k, 9] += y0
            rows[k, 13] = number
        found = np.concatenate((found, rows)) if found.shape[0] else rows
    return found


@kernel
def split_blobs(
    rows: Array, elongation: float, fullness: tuple[float, float], noise_px: float
) -> tuple[Array, Array, Array, Array]:
    """
    Return the centres (k, 2) of the blobs of markers, their covariances (k, 2, 2), and areas (k,);
    then the rows (m, 14) of the other blobs.

    Parameters
    ----------
    rows : (n, 14)
        Blobs as from `find_blobs`.
    elongation : float
        Largest ratio of length to width of a marker.
    fullness : (float, float)
        Its least and largest fullness.
    noise_px : float
        Standard deviation of a centre in addition to that of the row.

    """
    count = rows.shape[0]
    pixels, covariances = np.empty((count, 2)), np.empty((count, 2, 2))
    areas, others = np.empty(count), np.empty((count, _COLUMNS))
    good = other = 0
    for n in range(count):
        row = rows[n]
        # A comparison with nan, of a blob that was not measured, is false.
        if row[6] <= elongation and fullness[0] <= row[7] <= fullness[1]:
            pixels[good, 0], pixels[good, 1] = row[0], row[1]
            covariances[good, 0, 0] = row[2] + noise_px * noise_px
            covariances[good, 0, 1] = covariances[good, 1, 0] = row[3]
            covariances[good, 1, 1] = row[4] + noise_px * noise_px
            areas[good] = row[5]
            good += 1
        else:
            others[other] = row
            other += 1
    return (
        pixels[:good].copy(),
        covariances[:good].copy(),
        areas[:good].copy(),
        others[:other].copy(),
    )


@kernel
def _bright(part: NDArray[np.uint8], level: int) -> tuple[int, int, int, int, int]:
    """Return the first and last column and row with a brighter pixel, and their number."""
    height, width = part.shape
    left, right, top, bottom, size = width, -1, height, -1, 0
    for y in range(height):
        most = np.uint8(0)
        for x in range(width):
            most = max(most, part[y, x])
        if not most > level:
            continue
        top, bottom = min(top, y), y
        for x in range(width):
            if part[y, x] > level:
                left, right = min(left, x), max(right, x)
                size += 1
    return left, right, top, bottom, size


@kernel
def _blobs_of_part(
    strength: NDArray[np.uint8],
    size: int,
    level: int,
    smallest_px: float,
    largest_px: float,
    rim_px: int,
    near_disc: NDArray[np.uint8],
    beyond_disc: NDArray[np.uint8],
    turns: Array,
) -> Array:
    """Return the blobs (n, 14) of a part with `size` bright pixels, relative to its corner."""
    height, width = strength.shape
    labels = np.zeros((height, width), dtype=np.int32)
    waiting = np.empty(size, dtype=np.int64)
    boxes = np.empty((size, 6), dtype=np.int64)
    count = number = 0
    for y in range(height):
        for x in range(width):
            if not strength[y, x] > level or labels[y, x] != 0:
                continue
            number += 1
            boxes[count, 5] = number
            _fill(strength, level, labels, number, y * width + x, waiting, boxes[count, :5])
            if boxes[count, 4] >= smallest_px:
                count += 1
    rows = np.full((count, _COLUMNS), math.nan)
    for k in range(count):
        rows[k, 8:13] = boxes[k, :5]
        x0, y0 = boxes[k, 0] - rim_px, boxes[k, 1] - rim_px
        x1, y1 = x0 + boxes[k, 2] + 2 * rim_px, y0 + boxes[k, 3] + 2 * rim_px
        if boxes[k, 4] > largest_px or x0 < 0 or y0 < 0 or x1 > width or y1 > height:
            continue
        measure_blob(
            strength[y0:y1, x0:x1],
            labels[y0:y1, x0:x1],
            boxes[k, 5],
            near_disc,
            beyond_disc,
            turns,
            rows[k, :8],
        )
    return rows


@kernel
def _fill(
    strength: NDArray[np.uint8],
    level: int,
    labels: NDArray[np.int32],
    number: int,
    start: int,
    waiting: NDArray[np.int64],
    box: NDArray[np.int64],
) -> None:
    """Label the pixels of the blob at `start`; write box x, y, width, height, and pixel count."""
    height, width = strength.shape
    left, right, top, bottom = width, 0, height, 0
    labels[start // width, start % width] = number
    waiting[0] = start
    done, seen = 0, 1
    while done < seen:
        y, x = waiting[done] // width, waiting[done] % width
        done += 1
        left, right, top, bottom = min(left, x), max(right, x), min(top, y), max(bottom, y)
        for j in range(max(y - 1, 0), min(y + 2, height)):
            for i in range(max(x - 1, 0), min(x + 2, width)):
                if strength[j, i] > level and labels[j, i] == 0:
                    labels[j, i] = number
                    waiting[seen] = j * width + i
                    seen += 1
    box[0], box[1], box[2], box[3] = left, top, right - left + 1, bottom - top + 1
    box[4] = seen


@kernel
def measure_blob(
    strength: NDArray[np.uint8],
    labels: NDArray[np.int32],
    number: int,
    near_disc: NDArray[np.uint8],
    beyond_disc: NDArray[np.uint8],
    turns: Array,
    out: Array,
) -> None:
    """
    Write (8,): centre x, y [px], its covariance xx, xy, yy [px2], area [px], length by width,
    fullness.

    The weight of a pixel is its cover: its grey level between the background, read around the blob
    in the direction of the pixel, and the blob's own level. A common background would shift a
    marker at the edge of the arm by a tenth of a pixel, towards the brighter side. Neighbouring
    blobs do not count. The covariance propagates the noise of the grey levels to the centre.
    Fullness is the ratio of the blob's area to that of the ellipse with the same moments.

    Parameters
    ----------
    strength : (h, w)
        Image of the blob with its rim, in which markers are bright.
    labels : (h, w)
        0 for background, `number` for this blob, others for its neighbours.
    number : int
        Label of the blob.
    near_disc, beyond_disc : (k, k)
        Discs by which the blob is grown: to the end of its faded edge, and to the outer end of the
        background that is read.
    turns : (t, t)
        Table of `direction_table`; directions beyond its range are computed.
    out : (8,)
        Output.

    """
    height, width = strength.shape
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
    # Each pixel is a square, with a second moment of 1/12.
    a = sxx / count - mx * mx + 1.0 / 12.0
    b = sxy / count - mx * my
    c = syy / count - my * my + 1.0 / 12.0
    middle, spread = 0.5 * (a + c), math.sqrt(0.25 * (a - c) ** 2 + b * b)
    large, small = middle + spread, max(middle - spread, 1e-9)
    out[6] = math.sqrt(large / small)
    out[7] = count / (4.0 * math.pi * math.sqrt(large * small))

    near = np.zeros((height, width), dtype=np.bool_)
    beyond = np.zeros((height, width), dtype=np.bool_)
    _grow(labels, number, near_disc, near, beyond_disc, beyond)
    angles, around = _rim(strength, labels, number, near, beyond, turns, True)
    if len(around) < 2 * _SMOOTHED:
        angles, around = _rim(strength, labels, number, near, beyond, turns, False)
    noise = _noise(around)
    smooth = _smoothed(around)
    top = _share_below(np.sort(levels[:count]), _BRIGHT)

    total = area = wx = wy = 0.0
    cover = np.zeros((height, width))
    tall = np.ones((height, width))
    for y in range(height):
        for x in range(width):
            other = labels[y, x] > 0 and labels[y, x] != number
            if not near[y, x] or other:
                continue
            turn = _direction(2 * y - height + 1, 2 * x - width + 1, turns)
            ground = _between(turn, angles, smooth)
            # Start above the background, which may be brighter between the blob and its rim.
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


@kernel
def direction_table(size: int) -> Array:
    """Return the direction [rad] of half a row and half a column each, from -size to size."""
    turns = np.empty((2 * size + 1, 2 * size + 1))
    for i in range(-size, size + 1):
        for j in range(-size, size + 1):
            turns[i + size, j + size] = math.atan2(0.5 * i, 0.5 * j)
    return turns


@kernel
def _direction(half_rows: int, half_columns: int, turns: Array) -> float:
    """Return the direction [rad] of half rows and half columns, from a table if it has it."""
    size = turns.shape[0] // 2
    if max(abs(half_rows), abs(half_columns)) > size:
        return math.atan2(0.5 * half_rows, 0.5 * half_columns)
    return float(turns[half_rows + size, half_columns + size])


@kernel
def _grow(
    labels: NDArray[np.int32],
    number: int,
    near_disc: NDArray[np.uint8],
    near: NDArray[np.bool_],
    beyond_disc: NDArray[np.uint8],
    beyond: NDArray[np.bool_],
) -> None:
    """Write the masks of a blob, dilated by each of two discs."""
    height, width = labels.shape
    for y in range(height):
        for x in range(width):
            if labels[y, x] != number:
                continue
            # A disc around an inner pixel lies in those around the pixels of the outline.
            if (
                0 < y < height - 1
                and 0 < x < width - 1
                and labels[y - 1, x] == number
                and labels[y + 1, x] == number
                and labels[y, x - 1] == number
                and labels[y, x + 1] == number
            ):
                near[y, x] = beyond[y, x] = True
            else:
                _stamp(near_disc, y, x, near)
                _stamp(beyond_disc, y, x, beyond)


@kernel
def _stamp(disc: NDArray[np.uint8], y: int, x: int, mask: NDArray[np.bool_]) -> None:
    """Set the pixels of a mask that a disc around a pixel covers."""
    height, width = mask.shape
    half = disc.shape[0] // 2
    for j in range(max(-half, -y), min(half, height - 1 - y) + 1):
        for i in range(max(-half, -x), min(half, width - 1 - x) + 1):
            if disc[j + half, i + half]:
                mask[y + j, x + i] = True


@kernel
def _rim(
    strength: NDArray[np.uint8],
    labels: NDArray[np.int32],
    number: int,
    near: NDArray[np.bool_],
    beyond: NDArray[np.bool_],
    turns: Array,
    alone: bool,
) -> tuple[Array, Array]:
    """Return directions [rad] and grey levels of the background around a blob, by direction."""
    height, width = labels.shape
    angles = np.empty(height * width)
    levels = np.empty(height * width)
    count = 0
    for y in range(height):
        for x in range(width):
            other = labels[y, x] > 0 and labels[y, x] != number
            if beyond[y, x] and not near[y, x] and not (alone and other):
                angles[count] = _direction(2 * y - height + 1, 2 * x - width + 1, turns)
                levels[count] = strength[y, x]
                count += 1
    rank = np.argsort(angles[:count])
    return angles[:count][rank], levels[:count][rank]


@kernel
def _noise(around: Array) -> float:
    """Return the noise of grey levels from differences of neighbours; at least 0.5 (rounding)."""
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
            level = around[(k + j - half) % count]
            i = j
            while i > 0 and few[i - 1] > level:
                few[i] = few[i - 1]
                i -= 1
            few[i] = level
        smooth[k] = few[half]
    return smooth


@kernel
def _share_below(ordered: Array, share: float) -> float:
    """Return a quantile of ordered levels, interpolated."""
    place = share * (ordered.size - 1)
    low = int(place)
    high = min(low + 1, ordered.size - 1)
    return float(ordered[low] + (place - low) * (ordered[high] - ordered[low]))


@kernel
def _between(angle: float, angles: Array, values: Array) -> float:
    """Interpolate a periodic function of an angle linearly between its samples."""
    count = angles.size
    after, end = 0, count
    while after < end:  # the first sample that is not before the angle
        middle = (after + end) // 2
        if angles[middle] < angle:
            after = middle + 1
        else:
            end = middle
    low, high = after - 1 if after > 0 else count - 1, after if after < count else 0
    gap = _positive_turn(angles[high] - angles[low])
    if gap <= 0.0:
        return float(values[low])
    share = _positive_turn(angle - angles[low]) / gap
    return float(values[low] + min(share, 1.0) * (values[high] - values[low]))


@kernel
def _positive_turn(turn: float) -> float:
    """Return a difference of two directions, from -2 pi to 2 pi, as 0 to 2 pi."""
    return turn + 2.0 * math.pi if turn < 0.0 else turn
