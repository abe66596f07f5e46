"""Picture of both camera views, with detected markers and bodies."""

from __future__ import annotations

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.perception.stereo.cameras import SIDES, StereoCameras
from softarm_ros.perception.stereo.images import Image, opencv
from softarm_ros.perception.stereo.tracking import Seen

_FOUND, _NAMED = (0, 190, 255), (80, 220, 80)  # blue, green, red


def marked(images: tuple[Image, Image], seen: Seen, cameras: StereoCameras) -> Image:
    """
    Return both images side by side (rows, columns, 3), with marks and names of markers drawn.

    A mark without a name was seen by one camera only, or is not a marker of the arm. The axes of
    bodies are drawn at their origin, 30 mm long: x red, y green, z blue.
    """
    cv2 = opencv()
    X_LB = cameras.base_pose()
    shown = []
    for side, image, marks in zip(SIDES, images, seen.marks):
        picture = image.copy() if image.ndim == 3 else cv2.cvtColor(image, cv2.COLOR_GRAY2BGR)

        def at(points_B: Array, side: str = side) -> Array:
            flat = np.reshape(points_B, (-1, 3)) @ X_LB[:3, :3].T + X_LB[:3, 3]
            return cameras.project('left' if side == 'left' else 'right', flat)

        for (x, y), area in zip(marks.pixels, marks.areas):
            radius = round(float(np.sqrt(area / np.pi))) + 4
            cv2.circle(picture, (round(float(x)), round(float(y))), radius, _FOUND, 1, cv2.LINE_AA)
        for point in seen.points:
            _write(picture, at(point.position)[0], point.name)
        for body in seen.bodies:
            ends = body.pose[:3, 3] + 0.03 * np.concatenate(
                [np.zeros((1, 3)), body.pose[:3, :3].T]
            )
            corners = at(ends)
            if not np.isfinite(corners).all():
                continue
            start, *tips = [(round(float(x)), round(float(y))) for x, y in corners]
            for tip, colour in zip(tips, ((0, 0, 255), (0, 255, 0), (255, 80, 80))):
                cv2.line(picture, start, tip, colour, 1, cv2.LINE_AA)
        shown.append(picture)
    both: Image = np.hstack(shown)
    return both


def _write(picture: Image, place: Array, text: str) -> None:
    cv2 = opencv()
    if np.isfinite(place).all():
        where = round(float(place[0])) + 8, round(float(place[1])) + 4
        cv2.putText(picture, text, where, cv2.FONT_HERSHEY_SIMPLEX, 0.35, _NAMED, 1, cv2.LINE_AA)
