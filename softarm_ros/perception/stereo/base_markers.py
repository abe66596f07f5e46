"""Markers on the arm's base: places given in a file, and places seen by both cameras."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from ruamel.yaml import YAML, YAMLError

from softarm_ros.geometry.arrays import Array
from softarm_ros.perception.stereo.camera import CameraError
from softarm_ros.perception.stereo.cameras import StereoCameras
from softarm_ros.perception.stereo.detection import MarkerLooks, find_marks
from softarm_ros.perception.stereo.images import Image
from softarm_ros.perception.stereo.matching import candidates, unambiguous


def read_markers(path: Path) -> dict[str, list[float]]:
    """
    Return places [m] in the base frame by name, from a file `name: [x, y, z]` in millimetres.

    Raises
    ------
    CameraError
        If the file is invalid; the message names the marker.

    """
    try:
        data = YAML(typ='safe').load(path.read_text(encoding='utf-8'))
    except (OSError, YAMLError, UnicodeDecodeError) as error:
        raise CameraError(f'{path}: {" ".join(str(error).split())}') from None
    if not isinstance(data, dict) or not data:
        raise CameraError(f'{path}: expected lines of name: [x, y, z] in mm')
    places = {}
    for name, place in data.items():
        # A text in quotes or `yes` is no number, although numpy converts both.
        numbers = isinstance(place, list) and all(type(each) in (int, float) for each in place)
        if not numbers or len(place) != 3 or not np.isfinite(place).all():
            raise CameraError(f'{path}: {name} = {place!r}: expected three numbers [mm]')
        places[str(name)] = [1e-3 * each for each in place]
    return places


def seen_markers(cameras: StereoCameras, left: Image, right: Image, threshold: int) -> Array:
    """Return the bright markers (n, 3) that both cameras see and that match unambiguously."""
    looks = MarkerLooks(kind='bright', threshold=threshold)
    found = candidates(cameras, find_marks(left, looks), find_marks(right, looks))
    return unambiguous(found).points
