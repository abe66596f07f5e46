"""`softarm render`: draw a motion to a picture (PNG) or an animation (GIF, MP4), off-screen."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import SubprocessError
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softarm_ros.cli.arm_picture import draw_moment, draw_moments, sections_of, set_axes
from softarm_ros.cli.cli_errors import UsageError
from softarm_ros.cli.motion import Motion
from softarm_ros.cli.report_plotting import SMALL_SIZE, canvas_of, new_figure, save
from softarm_ros.rigs.schema import Rig
from softarm_ros.whole_file import whole_file

Frame = NDArray[np.uint8]  # (height, width, 3)
_HEIGHT_IN = 5.0
_SIZE_IN = (4.8, 3.2)
_GIF_DPI, _MP4_DPI = 100, 200  # they give multiples of 16 pixels, which video needs
_GIF_RATE_HZ, _MP4_RATE_HZ = 10, 25
_GIF_COLOURS = 64
_UNCHANGED = _GIF_COLOURS - 1  # the colour index of pixels that do not change
_LAST_FRAME_S = 1.0  # a GIF loops: show the end for a moment


def check_output(path: Path) -> None:
    """Raise UsageError if a file name's ending is not supported, or a program is missing."""
    if path.suffix.lower() not in _WRITERS:
        raise UsageError(f'--output {path}: expected a name that ends in {", ".join(_WRITERS)}')
    if path.suffix.lower() == '.mp4':
        _ffmpeg()


def render(rig: Rig, motion: Motion, path: Path, seconds: float) -> Path:
    """
    Write a motion to a file of the type in its name's ending; animations last `seconds`.

    Raises
    ------
    UsageError
        If the name does not end in .png, .gif or .mp4.
    NotWrittenError
        If the file cannot be written.

    """
    check_output(path)
    with whole_file(path) as part:
        _WRITERS[path.suffix.lower()](rig, motion, part, seconds)
    return path


def frames(rig: Rig, motion: Motion, count: int, dpi: int) -> Iterator[Frame]:
    """Draw `count` moments, evenly spread in time, as images of the same size."""
    figure = new_figure(_SIZE_IN[1], _SIZE_IN[0], dpi)
    ax, section = set_axes(figure, rig, motion), sections_of(rig, motion)
    note = figure.text(0.03, 0.95, '', fontsize=SMALL_SIZE, va='top', family='monospace')
    for index in motion.at(count):
        drawn = draw_moment(ax, rig, motion, int(index), section)
        errors = motion.errors_m[: index + 1]
        errors = errors[np.isfinite(errors)]  # sensors may be slower than the loop
        known = f'error {1e3 * errors[-1]:5.2f} mm' if len(errors) else ''
        note.set_text(f'{rig.name}\n{motion.times_s[index]:5.1f} s  {known}')
        canvas = canvas_of(figure)
        canvas.draw()
        yield np.asarray(canvas.buffer_rgba())[..., :3].copy()
        for artist in drawn:
            artist.remove()


def _png(rig: Rig, motion: Motion, path: Path, seconds: float) -> None:
    figure = new_figure(_HEIGHT_IN)
    draw_moments(figure, rig, motion)
    save(figure, path)


def _gif(rig: Rig, motion: Motion, path: Path, seconds: float) -> None:
    """
    Write a GIF with few colours, the same for all frames; unchanged pixels take no space.

    Pillow's `save` keeps all frames until the last; long animations would fill the memory.
    """
    from PIL import GifImagePlugin, Image

    count = max(2, round(seconds * _GIF_RATE_HZ))
    last = Image.fromarray(next(frames(rig, motion, 1, _GIF_DPI)))
    palette = last.quantize(_GIF_COLOURS - 1)  # the last frame shows the whole path
    colours = (palette.getpalette() or [])[: 3 * (_GIF_COLOURS - 1)]
    palette.putpalette(colours + colours[:3] * (256 - len(colours) // 3))
    table = colours + colours[:3] * (_GIF_COLOURS - len(colours) // 3)
    step_ms = round(1000 / _GIF_RATE_HZ)
    before: NDArray[np.uint8] | None = None
    with path.open('wb') as file:
        for k, frame in enumerate(frames(rig, motion, count, _GIF_DPI)):
            whole = Image.fromarray(frame).quantize(palette=palette, dither=Image.Dither.NONE)
            reduced = np.asarray(whole)
            reduced = np.where(reduced < _UNCHANGED, reduced, np.uint8(0))  # same as colour 0
            part, at = _changed(before, reduced)
            image = Image.fromarray(part).convert('P')
            image.putpalette(table)
            if before is None:
                file.writelines(GifImagePlugin.getheader(image, info={'loop': 0})[0])
            file.writelines(
                GifImagePlugin.getdata(
                    image,
                    at,
                    duration=step_ms if k < count - 1 else round(1000 * _LAST_FRAME_S),
                    transparency=_UNCHANGED,
                    disposal=1,
                )
            )
            before = reduced
        file.write(b';')


def _changed(
    before: NDArray[np.uint8] | None, after: NDArray[np.uint8]
) -> tuple[NDArray[np.uint8], tuple[int, int]]:
    """Return the part of an image that differs from the one before, and its (left, top) corner."""
    if before is None:
        return after, (0, 0)
    differs = before != after
    rows, columns = np.flatnonzero(differs.any(axis=1)), np.flatnonzero(differs.any(axis=0))
    if not len(rows):
        return np.full((1, 1), _UNCHANGED, dtype=np.uint8), (0, 0)
    box = np.s_[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    part = np.where(differs[box], after[box], np.uint8(_UNCHANGED))
    return part, (int(columns[0]), int(rows[0]))


def _mp4(rig: Rig, motion: Motion, path: Path, seconds: float) -> None:
    count = max(2, round(seconds * _MP4_RATE_HZ))
    size = tuple(round(side * _MP4_DPI) for side in _SIZE_IN)
    # ffmpeg reads `12:30.mp4` as the name of a protocol, and `-a.mp4` as an option.
    name = str(path.absolute())
    ffmpeg = _ffmpeg()
    writer = ffmpeg.write_frames(
        name, size, fps=_MP4_RATE_HZ, macro_block_size=16, output_params=['-f', 'mp4']
    )
    try:
        writer.send(None)
    except RuntimeError as error:
        raise UsageError(f'MP4: {error}; a GIF needs nothing') from None
    try:
        for frame in frames(rig, motion, count, _MP4_DPI):
            writer.send(np.ascontiguousarray(frame))
        writer.close()
        written, _ = ffmpeg.count_frames_and_secs(name)
        whole = written == count
    except (OSError, RuntimeError):  # their text is the whole command of ffmpeg
        whole = False
    finally:
        writer.close()
    if not whole:
        raise OSError(errno.EIO, 'ffmpeg ended early; if it gave a reason, it is above')


def _ffmpeg() -> Any:
    try:
        import imageio_ffmpeg
    except ImportError as error:
        raise UsageError(
            f"MP4 needs imageio-ffmpeg ({error}): pip install 'softarm_ros[video]'; "
            'a GIF needs nothing'
        ) from None
    try:
        imageio_ffmpeg.get_ffmpeg_version()
    except (OSError, RuntimeError, SubprocessError) as error:
        raise UsageError(
            f'MP4 needs ffmpeg, which does not run ({str(error).splitlines()[0]}); '
            'a GIF needs nothing'
        ) from None
    return imageio_ffmpeg


_WRITERS: dict[str, Callable[[Rig, Motion, Path, float], None]] = {
    '.png': _png,
    '.gif': _gif,
    '.mp4': _mp4,
}
