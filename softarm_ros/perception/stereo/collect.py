"""Views of a board from files or live images."""

from __future__ import annotations

import glob
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from softarm_ros.perception.stereo.boards import Board, BoardView
from softarm_ros.perception.stereo.camera import CameraError
from softarm_ros.perception.stereo.images import Image, read_image

SUFFIXES = ('.png', '.jpg', '.jpeg', '.tif', '.tiff', '.bmp', '.pgm', '.ppm', '.webp')
# A live view counts as new if the board has moved by this share of the image's width.
_MOVED = 0.04
# The board counts as still if it has moved by less than this since the previous image.
_STILL_PX = 1.0


@dataclass(frozen=True)
class Collected:
    """
    Image sizes of one or two cameras, and the views of the board found in the images.

    Attributes
    ----------
    sizes : tuple of (int, int)
        Width and height of the images of each camera.
    views : tuple of tuple
        One view per camera, for all images in which every camera found the board.
    without_board : tuple of str
        Names of the other images.

    """

    sizes: tuple[tuple[int, int], ...]
    views: tuple[tuple[BoardView, ...], ...]
    without_board: tuple[str, ...]


def image_files(where: str) -> list[Path]:
    """
    Return the image files of a folder or pattern, or a single file, sorted by name.

    Raises
    ------
    CameraError
        If there are none.

    """
    path = Path(where)
    if path.is_dir():
        found = sorted(p for p in path.iterdir() if p.suffix.lower() in SUFFIXES)
    else:
        found = sorted(Path(p) for p in glob.glob(where))  # noqa: PTH207 - may be absolute
    if not found:
        raise CameraError(f'{where}: no image files ({", ".join(SUFFIXES)})')
    return found


def matched_files(places: Sequence[str]) -> Iterator[tuple[str, tuple[Path, ...]]]:
    """
    Yield a name and the files of each image, one file per camera, matched by number.

    The number is that at the end of the file name; if a file has none, the index in the list.
    Incomplete pairs are omitted.

    Raises
    ------
    CameraError
        If no files match, two files of a camera have the same number, or only some have one.

    """
    keyed = []
    for place in places:
        files = image_files(place)
        keys = [_number(path.stem) for path in files]
        without = [path for path, key in zip(files, keys) if key is None]
        if len(places) > 1 and 0 < len(without) < len(files):
            raise CameraError(
                f'{without[0]}: no number at the end of the name, as the other files of {place} '
                'have: leave it out'
            )
        if len(places) == 1 or without:
            keyed.append({f'{i:03d}': path for i, path in enumerate(files)})
            continue
        if len(set(keys)) < len(keys):
            raise CameraError(f'{place}: two files end in the same number: expected one per pair')
        keyed.append({str(key).zfill(3): path for key, path in zip(keys, files)})
    common = set(keyed[0]).intersection(*keyed[1:])
    if not common:
        raise CameraError(f'{" and ".join(places)}: no files of the same number')
    for key in sorted(common, key=int):
        yield (keyed[0][key].stem if len(places) == 1 else key), tuple(k[key] for k in keyed)


def collect(board: Board, images: Iterable[tuple[str, Sequence[Image]]]) -> Collected:
    """
    Find the board in images, each given as a name and one image per camera.

    Raises
    ------
    CameraError
        If images of one camera have different sizes.

    """
    sizes: list[tuple[int, int]] = []
    views, without = [], []
    for name, shown in images:
        each = [(image.shape[1], image.shape[0]) for image in shown]
        sizes = sizes or each
        if each != sizes:
            raise CameraError(f'{name}: size {each}: the images before have {sizes}')
        found = tuple(board.find(image, name) for image in shown)
        complete = tuple(view for view in found if view is not None)
        if len(complete) == len(found):
            views.append(complete)
        else:
            without.append(name)
    return Collected(tuple(sizes), tuple(views), tuple(without))


def from_files(places: Sequence[str]) -> Iterator[tuple[str, tuple[Image, ...]]]:
    """Yield names and images, one image per camera, of the files from `matched_files`."""
    for name, paths in matched_files(places):
        yield name, tuple(read_image(path) for path in paths)


def worth_keeping(
    board: Board, images: Iterable[Sequence[Image]], count: int, *, one_place: bool = False
) -> Iterator[tuple[str, tuple[Image, ...]]]:
    """
    Yield `count` live images that show the board held still, each time at another place.

    With `one_place`, the place does not matter: on the base of an arm, the board must not move.

    A moving board is blurred, and cameras that expose at slightly different times see it at two
    places.
    """
    kept: list[np.ndarray] = []
    last: np.ndarray | None = None
    for shown in images:
        views = [board.find(image, 'live') for image in shown]
        complete = [view for view in views if view is not None]
        if len(complete) < len(views):
            last = None
            continue
        here = np.concatenate([np.append(v.pixels.mean(0), v.pixels.std(0)) for v in complete])
        still = last is not None and np.abs(here - last).max() < _STILL_PX
        last = here
        new = one_place or all(
            np.abs(here - old).max() > _MOVED * shown[0].shape[1] for old in kept
        )
        if still and new:
            kept.append(here)
            yield f'live_{len(kept):03d}', tuple(shown)
            if len(kept) == count:
                return


def _number(stem: str) -> int | None:
    digits = stem[len(stem.rstrip('0123456789')) :]
    return int(digits) if digits else None
