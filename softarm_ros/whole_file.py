"""Files that a program writes: under their name there is a whole file, or still the old one."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from softarm_ros.leftovers import mark, remove_leftovers

_KEPT = 40  # characters of a name in that of its half file, which may not be longer than 255


class NotWrittenError(OSError):
    """A file cannot be written; the message names the file and the reason."""

    def __str__(self) -> str:
        return f'{self.filename}: cannot be written ({self.strerror})'


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """
    Give the block a path to write to; if the block succeeds, that file takes the place of `path`.

    Otherwise, also after Ctrl-C, the half file is removed, and `path` stays as it was. Half files
    of the same name that killed processes left are removed at the beginning. What is no
    file, as /dev/stdout or a pipe, is written directly, and so is a file in a read-only folder.

    Raises
    ------
    NotWrittenError
        For an OSError, also one of the block.

    """
    try:
        goal = path.resolve()  # a symbolic link stays one
        if goal.exists():
            if not (goal.is_file() and os.access(goal.parent, os.W_OK)):
                yield path
                return
            goal.open('r+b').close()  # a read-only file is not replaced
        part = half_of(goal)
        remove_leftovers(goal.parent, f'{goal.name[:_KEPT]}.', r'\.part')
        try:
            yield part
            if goal.exists():
                shutil.copymode(goal, part)
            part.replace(goal)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise NotWrittenError(error.errno, error.strerror or str(error), str(path)) from None


def half_of(path: Path) -> Path:
    """Return the path of a half file of this process."""
    return path.with_name(f'{path.name[:_KEPT]}.{mark()}.part')


def write_text(path: Path, text: str) -> None:
    """Write a text in UTF-8 as a `whole_file`; NotWrittenError if it cannot be written."""
    with whole_file(path) as part:
        part.write_text(text, encoding='utf-8')


def require_writable(path: Path) -> None:
    """
    Make sure that a file can be written; call it before an arm moves for long.

    A pipe is not opened: its reader would take the end of this check for the end of the results.

    Raises
    ------
    NotWrittenError
        If it cannot.

    """
    try:
        there = path.exists()
        if there and path.is_fifo():
            if not os.access(path, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            return
        path.open('a', encoding='utf-8').close()
        if not there:
            path.resolve().unlink()  # not a symbolic link to it
    except OSError as error:
        raise NotWrittenError(error.errno, error.strerror or str(error), str(path)) from None
