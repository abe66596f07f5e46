"""Compiled drawing of tubes and balls: outlines, pixel coverage and noise."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel
from softarm_ros.perception.stereo.pair_kernels import project_through


@kernel
def paint_arm(
    line: Array,
    balls: Array,
    away: Array,
    boxes: Array,
    matrix: Array,
    lens: Array,
    X_LC: Array,
    window: Array,
    size: tuple[int, int],
    radii_m: tuple[float, float],
    greys: tuple[float, float, float],
    outline: int,
    rim_px: int,
) -> tuple[NDArray[np.float32], int, int]:
    """
    Return the part of an image that shows an arm (rows, columns), and its first column and row.

    The part is empty if the image does not show the arm.

    Parameters
    ----------
    line, balls, boxes : (n, 3), (m, 3), (b, 4, 3)
        Centreline, centres of the balls, and corners of rectangles before the arm, in the left
        camera's frame [m].
    away : (m, 3)
        As for `ball_outlines`.
    matrix, lens, X_LC, window
        As for `project_through`.
    size : (int, int)
        Width and height of the image.
    radii_m : (float, float)
        Radii of the tube and of the balls.
    greys : (float, float, float)
        Grey levels of the background, the tube and the boxes, and the balls.
    outline : int
        Number of points on the outline of a ball.
    rim_px : int
        Width of the background around the arm.

    """
    n, m, b = line.shape[0], balls.shape[0], boxes.shape[0]
    eye = X_LC[:3, 3].copy()
    first_box = 2 * n + m * outline
    points = np.empty((first_box + 4 * b, 3))
    tube_edges(line, eye, radii_m[0], points[: 2 * n])
    ball_outlines(balls, away, radii_m[1], points[2 * n : first_box].reshape((m, outline, 3)))
    points[first_box:] = boxes.reshape((4 * b, 3))
    pixels = np.empty((points.shape[0], 2))
    project_through(points, matrix, lens, X_LC, window, pixels)
    ends = limits(pixels)
    left = top = right = bottom = 0
    if math.isfinite(ends[0]):
        left, top = max(math.floor(ends[0]) - rim_px, 0), max(math.floor(ends[1]) - rim_px, 0)
        right = min(math.ceil(ends[2]) + rim_px + 1, size[0])
        bottom = min(math.ceil(ends[3]) + rim_px + 1, size[1])
    image = np.full((max(bottom - top, 0), max(right - left, 0)), np.float32(greys[0]))
    if image.size == 0:
        return image, left, top
    for k in range(pixels.shape[0]):
        pixels[k, 0] -= left
        pixels[k, 1] -= top
    flats, depths = np.empty((n - 1 + b, 4, 2)), np.empty(n - 1 + b + m)
    for k in range(n - 1):
        flats[k, 0], flats[k, 1] = pixels[k], pixels[n + k]
        flats[k, 2], flats[k, 3] = pixels[k + 1], pixels[n + k + 1]
        depths[k] = _depth(0.5 * (line[k + 1] + line[k]), X_LC)
    for k in range(b):
        flats[n - 1 + k] = pixels[first_box + 4 * k : first_box + 4 * k + 4]
        middle = 0.25 * (boxes[k, 0] + boxes[k, 1] + boxes[k, 2] + boxes[k, 3])
        depths[n - 1 + k] = _depth(middle, X_LC)
    for k in range(m):
        depths[n - 1 + b + k] = _depth(balls[k], X_LC)
    order = np.argsort(-depths)  # the farthest first
    paint(
        image,
        order,
        flats,
        greys[1],
        pixels[2 * n : first_box].reshape((m, outline, 2)),
        greys[2],
    )
    return image, left, top


@kernel
def _depth(point: Array, X_LC: Array) -> float:
    """Return the distance of a point (3,) along a camera's view, from the left one's centre."""
    return point[0] * X_LC[0, 2] + point[1] * X_LC[1, 2] + point[2] * X_LC[2, 2]


@kernel
def unit_circle(count: int) -> Array:
    """Return the cosine and sine (n, 2) of evenly spaced directions."""
    turns = np.empty((count, 2))
    for k in range(count):
        turn = 2.0 * math.pi * k / count
        turns[k, 0], turns[k, 1] = math.cos(turn), math.sin(turn)
    return turns


@kernel
def cover_ellipse(image: NDArray[np.float32], outline: Array, turns: Array, grey: float) -> None:
    """
    Draw an ellipse with partial coverage of edge pixels; clip it to the image.

    Parameters
    ----------
    image : (rows, columns)
        Modified in place.
    outline : (n, 2)
        Evenly spaced points on the ellipse [px].
    turns : (n, 2)
        As from `unit_circle`.
    grey : float
        Grey level of the ellipse.

    """
    count = outline.shape[0]
    cx = cy = 0.0
    for k in range(count):
        cx += outline[k, 0] / count
        cy += outline[k, 1] / count
    # An ellipse is an affine image of the unit circle, whose points have a variance of 1/2.
    a = b = c = d = 0.0
    reach_x = reach_y = 0.0
    for k in range(count):
        x, y = outline[k, 0] - cx, outline[k, 1] - cy
        a += 2.0 * x * turns[k, 0] / count
        b += 2.0 * x * turns[k, 1] / count
        c += 2.0 * y * turns[k, 0] / count
        d += 2.0 * y * turns[k, 1] / count
        reach_x, reach_y = max(reach_x, abs(x)), max(reach_y, abs(y))
    size = a * d - b * c
    if size == 0.0:
        return
    ia, ib, ic, id_ = d / size, -b / size, -c / size, a / size
    # Beyond these radii, a pixel is certainly covered whole or not at all.
    edge = 0.500001 * math.sqrt(ia * ia + ib * ib + ic * ic + id_ * id_)
    inner, outer = max(1.0 - edge, 0.0) ** 2, (1.0 + edge) ** 2
    height, width = image.shape
    for y in range(max(int(cy - reach_y - 1.5), 0), min(int(cy + reach_y + 3.5), height)):
        for x in range(max(int(cx - reach_x - 1.5), 0), min(int(cx + reach_x + 3.5), width)):
            u = ia * (x - cx) + ib * (y - cy)
            v = ic * (x - cx) + id_ * (y - cy)
            square = u * u + v * v
            if square > outer:
                continue
            if square < inner:
                image[y, x] += grey - image[y, x]
                continue
            r = max(math.hypot(u, v), 1e-9)
            # Distance to the outline [px], to first order: (r - 1) by the length of its gradient.
            slope = math.hypot(u * ia + v * ic, u * ib + v * id_)
            covered = min(max(0.5 - (r - 1.0) * r / max(slope, 1e-12), 0.0), 1.0)
            image[y, x] += covered * (grey - image[y, x])


@kernel
def cover_hull(image: NDArray[np.float32], corners: Array, grey: float) -> None:
    """
    Fill the pixels whose centre lies in the convex hull of the corners.

    Parameters
    ----------
    image : (rows, columns)
        Modified in place.
    corners : (n, 2)
        Corners in any order [px].
    grey : float
        Grey level of the hull.

    """
    height, width = image.shape
    count = corners.shape[0]
    low = high = corners[0, 1]
    for k in range(1, count):
        low, high = min(low, corners[k, 1]), max(high, corners[k, 1])
    for y in range(max(math.ceil(low), 0), min(math.floor(high), height - 1) + 1):
        # A row meets the hull between the outermost connecting lines of any two corners.
        first, last = math.inf, -math.inf
        for i in range(count):
            for j in range(i):
                xi, yi, xj, yj = corners[i, 0], corners[i, 1], corners[j, 0], corners[j, 1]
                if min(yi, yj) <= y <= max(yi, yj):
                    if yi == yj:
                        first, last = min(first, xi, xj), max(last, xi, xj)
                    else:
                        x = xi + (xj - xi) * ((y - yi) / (yj - yi))
                        first, last = min(first, x), max(last, x)
        for x in range(max(math.ceil(first), 0), min(math.floor(last), width - 1) + 1):
            image[y, x] = grey


@kernel
def paint(
    image: NDArray[np.float32],
    order: NDArray[np.int64],
    flats: Array,
    flat_grey: float,
    balls: Array,
    ball_grey: float,
) -> None:
    """
    Paint flat shapes and balls over one another; skip any with a NaN corner.

    Parameters
    ----------
    image : (rows, columns)
        Modified in place.
    order : (n,)
        Painting order, farthest first: indices of flat shapes, then of balls (from p on).
    flats : (p, 4, 2)
        Corners of the flat shapes [px].
    flat_grey, ball_grey : float
        Grey levels.
    balls : (m, k, 2)
        Evenly spaced points on the outlines of the balls [px].

    """
    turns = unit_circle(balls.shape[1])
    for number in order:
        if number < flats.shape[0]:
            if _finite(flats[number]):
                cover_hull(image, flats[number], flat_grey)
        elif _finite(balls[number - flats.shape[0]]):
            cover_ellipse(image, balls[number - flats.shape[0]], turns, ball_grey)


@kernel
def add_noise(
    image: NDArray[np.float32], noise: NDArray[np.float32], shown: NDArray[np.uint8]
) -> None:
    """Write an image (rows, columns) with noise to `shown`, rounded and clipped as by a sensor."""
    for y in range(image.shape[0]):
        for x in range(image.shape[1]):
            level = min(max(image[y, x] + noise[y, x], np.float32(0.0)), np.float32(255.0))
            shown[y, x] = np.uint8(np.rint(level))


@kernel
def tube_edges(line: Array, eye: Array, radius_m: float, edges: Array) -> None:
    """
    Compute both edges of a tube as seen from an eye.

    Parameters
    ----------
    line : (n, 3)
        Centreline of the tube [m].
    eye : (3,)
        Position of the eye [m].
    radius_m : float
        Radius of the tube.
    edges : (2 n, 3)
        Output: one edge, then the other [m].

    """
    count = line.shape[0]
    for k in range(count):
        before, after = max(k - 1, 0), min(k + 1, count - 1)
        ax, bx = line[after, 0] - line[before, 0], line[k, 0] - eye[0]
        ay, by = line[after, 1] - line[before, 1], line[k, 1] - eye[1]
        az, bz = line[after, 2] - line[before, 2], line[k, 2] - eye[2]
        cx, cy, cz = ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx
        wide = radius_m / math.sqrt(cx * cx + cy * cy + cz * cz)
        for axis, across in enumerate((cx, cy, cz)):
            edges[k, axis] = line[k, axis] + wide * across
            edges[count + k, axis] = line[k, axis] - wide * across


@kernel
def ball_outlines(balls: Array, away: Array, radius_m: float, outlines: Array) -> None:
    """
    Compute points on the outline of each ball, where rays from the eye touch it.

    Parameters
    ----------
    balls : (m, 3)
        Centres of the balls [m].
    away : (m, 3)
        From the start of the rays to the centre of each ball [m].
    radius_m : float
        Radius of the balls.
    outlines : (m, k, 3)
        Output: points on the outlines [m].

    """
    count = outlines.shape[1]
    turns = unit_circle(count)
    for m in range(balls.shape[0]):
        distance = math.sqrt(away[m, 0] ** 2 + away[m, 1] ** 2 + away[m, 2] ** 2)
        x, y, z = away[m, 0] / distance, away[m, 1] / distance, away[m, 2] / distance
        # Two directions perpendicular to the ray: a horizontal one, and one perpendicular to both.
        level = math.sqrt(x * x + z * z)
        first = (-z / level, 0.0, x / level)
        second = (y * first[2], z * first[0] - x * first[2], -y * first[0])
        sine = radius_m / distance
        back, wide = radius_m * sine, radius_m * math.sqrt(1.0 - sine * sine)
        for k in range(count):
            c, s = wide * turns[k, 0], wide * turns[k, 1]
            for axis, ray in enumerate((x, y, z)):
                outlines[m, k, axis] = (
                    balls[m, axis] - back * ray + c * first[axis] + s * second[axis]
                )


@kernel
def limits(points: Array) -> Array:
    """Return least x, y and largest x, y of the finite points (n, 2); infinite without any."""
    found = np.array([math.inf, math.inf, -math.inf, -math.inf])
    for k in range(points.shape[0]):
        x, y = points[k, 0], points[k, 1]
        if math.isfinite(x) and math.isfinite(y):
            found[0], found[1] = min(found[0], x), min(found[1], y)
            found[2], found[3] = max(found[2], x), max(found[3], y)
    return found


@kernel
def _finite(points: Array) -> bool:
    for k in range(points.shape[0]):
        if not (math.isfinite(points[k, 0]) and math.isfinite(points[k, 1])):
            return False
    return True
