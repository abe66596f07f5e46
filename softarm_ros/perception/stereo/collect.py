"""Views of a board from files or live images."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from softarm_ros.perception.stereo.boards import Board, BoardView
from softarm_ros.perception.stereo.camera import CameraError
from softarm_ros.perception.stereo.images import Image, read_image, why_dark

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
    without_board : tuple of tuple of str
        For each camera, the names of its images without a board.
    alone : tuple of tuple of Path
        For each camera, its files without a file of the other camera.
    dark : tuple of str
        For each camera, `why_dark` of its first image, if all its images are nearly black.

    """

    sizes: tuple[tuple[int, int], ...]
    views: tuple[tuple[BoardView, ...], ...]
    without_board: tuple[tuple[str, ...], ...]
    alone: tuple[tuple[Path, ...], ...] = ()
    dark: tuple[str, ...] = ()


def image_files(where: str) -> list[Path]:
    """
    Return the image files of a folder or pattern, or a single file, in the order of their names.

    Numbers in names are compared as numbers: `left_9` comes before `left_10`.

    Hidden files are left out: macOS adds one, which is no image, to each file on other disks.

    Raises
    ------
    CameraError
        If there are none.

    """
    path = Path(where)
    if path.is_dir():
        found = [
            p
            for p in path.iterdir()
            if p.suffix.lower() in SUFFIXES and not p.name.startswith('.')
        ]
    elif path.is_file():  # its name may look like a pattern
        found = [path]
    else:
        found = [Path(p) for p in glob.glob(where)]  # noqa: PTH207 - may be absolute
    if not found:
        raise CameraError(f'{where}: no image files ({", ".join(SUFFIXES)})')
    return sorted(found, key=lambda path: _in_order(str(path)))


def matched_files(places: Sequence[str]) -> Iterator[tuple[str, tuple[Path, ...]]]:
    """
    Yield a name and the files of each image, one file per camera, matched by number.

    Incomplete pairs are omitted (`files_alone`); names and errors are those of `aligned_files`.
    """
    for name, paths in aligned_files(places):
        complete = tuple(path for path in paths if path is not None)
        if len(complete) == len(paths):
            yield name, complete


def files_alone(places: Sequence[str]) -> tuple[tuple[Path, ...], ...]:
    """Return the files of each camera that `matched_files` omits; its errors are the same."""
    alone = [paths for _, paths in aligned_files(places) if None in paths]
    return tuple(
        tuple(path for paths in alone if (path := paths[k]) is not None)
        for k in range(len(places))
    )


def aligned_files(places: Sequence[str]) -> list[tuple[str, tuple[Path | None, ...]]]:
    """
    Return a name and the files of each image, in order: one file per camera, None if it has none.

    The number at the end of the file name tells which files belong together. Without numbers,
    files of the same name match; if there are none, equally many files match in their order, and
    the pair's name shows both.

    Raises
    ------
    CameraError
        If no files match, two files of a camera match alike, or only some have a number.

    """
    files = [image_files(place) for place in places]
    if len(places) == 1:
        return [(name, (path,)) for name, path in zip(_names(files[0]), files[0])]
    each = [_all_numbered(place, own) for place, own in zip(places, files)]
    numbered = all(each)
    keyed = [_keyed(place, own, numbered) for place, own in zip(places, files)]
    if set(keyed[0]).intersection(*keyed[1:]):
        keys = sorted(set().union(*keyed), key=_in_order)
        return [(key, tuple(own.get(key) for own in keyed)) for key in keys]
    if not numbered and len(files[0]) == len(files[1]):
        return [(' with '.join(path.stem for path in paths), paths) for paths in zip(*files)]
    alike = 'number' if numbered else 'name, and not all names end in a number'
    raise CameraError(f'{" and ".join(places)}: no files of the same {alike}')


def _keyed(place: str, files: Sequence[Path], numbered: bool) -> dict[str, Path]:
    keys = [str(_number(path.stem)).zfill(3) if numbered else path.stem for path in files]
    if len(set(keys)) < len(keys):
        alike = 'end in the same number' if numbered else 'have the same name'
        raise CameraError(f'{place}: two files {alike}: expected one per pair')
    return dict(zip(keys, files))


def _names(files: Sequence[Path]) -> list[str]:
    """Return the stems of files, or paths from their common folder if stems repeat."""
    stems = [path.stem for path in files]
    if len(set(stems)) == len(stems):
        return stems
    folder = os.path.commonpath([path.parent for path in files])
    return [str(path.relative_to(folder)) for path in files]


def _all_numbered(place: str, files: Sequence[Path]) -> bool:
    """Return whether the names end in numbers; raise CameraError if only some of them do."""
    without = [path for path in files if _number(path.stem) is None]
    if 0 < len(without) < len(files):
        raise CameraError(
            f'{without[0]}: no number at the end of the name, as the other files of {place} '
            'have: leave it out'
        )
    return not without


def collect(board: Board, images: Iterable[tuple[str, Sequence[Image]]]) -> Collected:
    """
    Find the board in images, each given as a name and one image per camera.

    Raises
    ------
    CameraError
        If images of one camera have different sizes, or a nearly black image shows the board: its
        corners would be inexact.

    """
    sizes: list[tuple[int, int]] = []
    darkness: list[list[str]] = []
    views = []
    without: list[list[str]] = []
    for name, shown in images:
        each = [(image.shape[1], image.shape[0]) for image in shown]
        sizes = sizes or each
        if each != sizes:
            raise CameraError(f'{name}: size {each}: the images before have {sizes}')
        found = tuple(board.find(image, name) for image in shown)
        darkness.append([why_dark(image) for image in shown])
        for view, why in zip(found, darkness[-1]):
            if view is not None and why:
                raise CameraError(f'{name}: too dark: {why}')
        complete = tuple(view for view in found if view is not None)
        if len(complete) == len(found):
            views.append(complete)
        without = without or [[] for _ in shown]
        for names, view in zip(without, found):
            if view is None:
                names.append(name)
    dark = tuple(own[0] if all(own) else '' for own in zip(*darkness))
    return Collected(tuple(sizes), tuple(views), tuple(map(tuple, without)), dark=dark)


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


def _in_order(text: str) -> list[str | int]:
    parts = re.split('([0-9]+)', text)
    return [int(part) if k % 2 else part for k, part in enumerate(parts)]


def _number(stem: str) -> int | None:
    digits = stem[len(stem.rstrip('0123456789')) :]
    return int(digits) if digits else None
