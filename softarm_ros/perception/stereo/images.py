"""Images, and the import of OpenCV."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softarm_ros.perception.stereo.camera import CameraError
from softarm_ros.requirements import SENSING

Image = NDArray[np.uint8]  # (rows, columns) grey, or (rows, columns, 3) blue, green, red

_DARK = 16  # grey level that 12 bits in the lower part of 16 do not reach


def opencv() -> Any:
    """
    Return OpenCV's module.

    Raises
    ------
    CameraError
        If it is not installed; the message says how to install it.

    """
    try:
        import cv2
    except ImportError as error:
        raise CameraError(f"OpenCV is missing ({error}): pip install '{SENSING['cv2']}'") from None
    return cv2


def decoded(data: NDArray[np.uint8], mode: int) -> NDArray[Any] | None:
    """
    Return the image in the bytes of a file, with a mode of OpenCV; None if they are no image.

    Its rows are those of the camera's sensor, whichever way up EXIF says that it was held: the
    calibration holds for the sensor. OpenCV raises an error of its own if a damaged header states
    too many pixels.
    """
    cv2 = opencv()
    try:
        mode |= cv2.IMREAD_IGNORE_ORIENTATION
        image: NDArray[Any] | None = cv2.imdecode(data, mode) if data.size else None
    except cv2.error:
        return None
    return image


def read_image(path: Path) -> Image:
    """Return an image file as (rows, columns[, 3]); raise CameraError if it is not an image."""
    cv2 = opencv()
    data = np.frombuffer(path.read_bytes(), np.uint8) if path.is_file() else np.empty(0, np.uint8)
    image = decoded(data, cv2.IMREAD_UNCHANGED)
    if image is None:
        raise CameraError(f'{path}: not an image that OpenCV reads')
    return as_8_bit(image, str(path))


def as_8_bit(image: NDArray[Any], what: str) -> Image:
    """Convert an 8 or 16 bit image to 8 bit without alpha; raise CameraError for other types."""
    if image.dtype == np.uint16:
        image = image >> 8
    if image.dtype not in (np.uint8, np.uint16) or image.ndim not in (2, 3):
        raise CameraError(
            f'{what}: {image.dtype} of shape {image.shape} is not an 8 or 16 bit image'
        )
    if image.ndim == 3:
        image = image[..., 0] if image.shape[2] == 1 else image[..., :3]
    return np.ascontiguousarray(image, dtype=np.uint8)


def why_dark(image: Image) -> str:
    """
    Return that an image is nearly black, or ''.

    The usual cause is a camera of 10 or 12 bits whose driver stores them in the lower bits of 16.
    """
    brightest = int(image.max(initial=0))
    if brightest >= _DARK:
        return ''
    return (
        f'no pixel is brighter than {brightest} of 255; of an image of 16 bits the upper 8 are '
        'used: values of 10 or 12 bits must be shifted up to 16'
    )


def grey(image: Image) -> Image:
    """Return the brightness (rows, columns) of an image."""
    if image.ndim == 2:
        return image
    cv2 = opencv()
    flat: Image = cv2.cvtColor(image, cv2.COLOR_BGR2GRAY)
    return flat
