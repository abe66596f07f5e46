"""Compiled drawing of tubes and balls: outlines, pixel coverage and noise."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel


@kernel
def cover_ellipse(image: NDArray[np.float32], outline: Array, grey: float) -> None:
    """
    Draw an ellipse with partial coverage of edge pixels; clip it to the image.

    Parameters
    ----------
    image : (rows, columns)
        Modified in place.
    outline : (n, 2)
        Evenly spaced points on the ellipse [px].
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
        turn = 2.0 * math.pi * k / count
        x, y = outline[k, 0] - cx, outline[k, 1] - cy
        a += 2.0 * x * math.cos(turn) / count
        b += 2.0 * x * math.sin(turn) / count
        c += 2.0 * y * math.cos(turn) / count
        d += 2.0 * y * math.sin(turn) / count
        reach_x, reach_y = max(reach_x, abs(x)), max(reach_y, abs(y))
    size = a * d - b * c
    if size == 0.0:
        return
    ia, ib, ic, id_ = d / size, -b / size, -c / size, a / size
    height, width = image.shape
    for y in range(max(int(cy - reach_y - 1.5), 0), min(int(cy + reach_y + 3.5), height)):
        for x in range(max(int(cx - reach_x - 1.5), 0), min(int(cx + reach_x + 3.5), width)):
            u = ia * (x - cx) + ib * (y - cy)
            v = ic * (x - cx) + id_ * (y - cy)
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
    for number in order:
        if number < flats.shape[0]:
            if _finite(flats[number]):
                cover_hull(image, flats[number], flat_grey)
        elif _finite(balls[number - flats.shape[0]]):
            cover_ellipse(image, balls[number - flats.shape[0]], ball_grey)


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
            turn = 2.0 * math.pi * k / count
            c, s = wide * math.cos(turn), wide * math.sin(turn)
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
