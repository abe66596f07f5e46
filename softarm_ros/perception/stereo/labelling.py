"""Identification of points with markers of the arm, by expected positions or by order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.perception.stereo.matching import Candidates

# Quantile of chi-square with three degrees of freedom: 1 in 1000 true points is lost.
GATE = 16.27
# The best candidate must be so much better than the next one: 20 times as likely.
CLEAR = 6.0


def label(
    found: Candidates,
    expected: Mapping[str, Array],
    spread: Mapping[str, Array] | float,
) -> dict[str, int]:
    """
    Return the index of each marker's candidate; omit markers without a candidate.

    The most likely pairs of marker and candidate are taken first; each mark of an image is used
    once. The cost is the squared Mahalanobis distance from the expected position, plus the
    candidate's own epipolar misfit. A marker is omitted if two candidates explain it about
    equally well: a missing point is better than a wrong one.

    Parameters
    ----------
    found : Candidates
        Candidates in any frame.
    expected : mapping
        Predicted position (3,) of each marker in the same frame.
    spread : mapping or float
        Covariance (3, 3) of each prediction, or a common standard deviation [m].

    """
    names = list(expected)
    cost = np.full((len(names), len(found.left)), np.inf)
    for row, name in enumerate(names):
        prior = spread**2 * np.eye(3) if isinstance(spread, int | float) else spread[name]
        away = found.points - expected[name]
        near = np.linalg.solve(found.covariances + prior, away[..., None])[..., 0]
        distance = np.einsum('ni,ni->n', away, near)
        own = np.array([not n or n == name for n in found.names], dtype=bool)
        fits = (distance < GATE) & own
        cost[row, fits] = distance[fits] + found.misfit[fits]
    taken: dict[str, int] = {}
    used: tuple[set[int], set[int]] = (set(), set())
    for flat in np.argsort(cost, axis=None):
        row, which = map(int, np.unravel_index(flat, cost.shape))
        if not np.isfinite(cost[row, which]):
            break
        left, right = int(found.left[which]), int(found.right[which])
        if names[row] in taken or left in used[0] or right in used[1]:
            continue
        taken[names[row]] = int(which)
        used[0].add(left)
        used[1].add(right)
    return {
        name: which
        for name, which in taken.items()
        if not _rival(cost, names.index(name), which, found, taken)
    }


def _rival(cost: Array, row: int, which: int, found: Candidates, taken: Mapping[str, int]) -> bool:
    """Return whether another candidate that no other marker uses explains a marker as well."""
    for other in np.flatnonzero(cost[row] < cost[row, which] + CLEAR):
        if other == which:
            continue
        owners = [
            name
            for name, each in taken.items()
            if each != which
            and (found.left[each] == found.left[other] or found.right[each] == found.right[other])
        ]
        if not owners:
            return True
    return False


def in_order(
    points: Array, names: Sequence[str], start: Array, spacing_m: float
) -> dict[str, int]:
    """
    Return the index of each marker's point, from base to tip, without any prediction.

    The first marker is the point nearest to `start` (3,), the base; each further marker is the
    point nearest to the previous one. The result is empty unless there is exactly one point per
    marker and every step is short: at most twice `spacing_m`, the largest distance of neighbours,
    and clearly shorter (by a factor of 1.2) than the step to any other point.
    """
    if len(points) != len(names) or not len(points):
        return {}
    left, here, order = set(range(len(points))), np.asarray(start, dtype=np.float64), []
    while left:
        away = sorted((float(np.linalg.norm(points[n] - here)), n) for n in left)
        step, nearest = away[0]
        if step > 2.0 * spacing_m or (len(away) > 1 and away[1][0] < 1.2 * step):
            return {}
        order.append(nearest)
        left.remove(nearest)
        here = points[nearest]
    return dict(zip(names, order))
