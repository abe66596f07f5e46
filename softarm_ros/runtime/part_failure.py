"""Describe an exception: which part of another package failed, where, and its traceback."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import tempfile
import traceback
from pathlib import Path
from types import FrameType

from softarm_ros.control.controller import AnswerError
from softarm_ros.control.limits import LimitError
from softarm_ros.models.arm_model import ModelError
from softarm_ros.plant.errors import PlantError
from softarm_ros.rigs.errors import RigError
from softarm_ros.rigs.part_registry import BUILT_IN, registrations

# What code of other packages may raise. `sys.exit` in it would end a program without a message.
FAILURES = (Exception, SystemExit)
# REFUSALS: a part refuses, but has not failed. OURS: likewise, if raised by this package.
REFUSALS = (ModelError, AnswerError, PlantError, LimitError, RigError)
OURS = (ValueError, RuntimeError, OSError)
_COLOUR = re.compile(r'\x1b\[[0-9;]*m')


def part_at_fault(error: BaseException) -> str:
    """
    Return the part of another package whose code raised an exception, with the place.

    Example: 'part model.own (OwnModel.posture_of, own_model.py:31)'. Empty if no such code was
    running. Code of such a package outside its parts is named by the package.
    """
    others = [entry for entry in registrations() if not entry.built_in]
    packages = {entry.target.partition('.')[0].partition(':')[0]: entry for entry in others}
    under_way = traceback.walk_tb(error.__traceback__)  # the innermost frame is last
    frames = [found for found in under_way if _module(found[0]).split('.')[0] in packages]
    if not frames:
        return ''
    for frame, line in reversed(frames):
        module = _module(frame)
        names = [entry.name for entry in others if entry.target.partition(':')[0] == module]
        if names:
            return f'part {" or ".join(names)} ({_place(frame, line)})'
    package = packages[_module(frames[-1][0]).split('.')[0]].distribution
    return f'package {package} ({_place(*frames[-1])})'


def refuses_or_fails(error: BaseException) -> bool:
    """Return whether a part refuses or a part of another package fails: no bug of this package."""
    return isinstance(error, REFUSALS) or bool(part_at_fault(error))


def no_bug(model: str, error: BaseException) -> bool:
    """
    Return whether the failure of a model, by name, is no bug of this package.

    A wrong answer of another package's model may make code of this package raise.
    """
    return f'model.{model}' not in BUILT_IN or refuses_or_fails(error)


def failure_text(error: BaseException) -> str:
    """
    Return one line that says what has failed and why.

    A refusal keeps its own message, which is written for users. For any other exception, the line
    names the part at fault and a file that holds the traceback.
    """
    part = '' if isinstance(error, REFUSALS) else part_at_fault(error)
    if isinstance(error, REFUSALS) or (not part and isinstance(error, OURS)):
        return str(error)
    lines = _COLOUR.sub('', str(error)).strip().splitlines()
    why = f'{type(error).__name__}: {lines[0]}' if lines else type(error).__name__
    text = f'{part} failed: {why}' if part else why
    path = _kept(error)
    return text if path is None else f'{text} (traceback: {path})'


class FailureWords:
    """Describes failures; keeps one traceback file for a failure that repeats."""

    def __init__(self) -> None:
        self._last = '', ''

    def of(self, error: BaseException) -> str:
        """Return `failure_text` of an exception."""
        said = repr(error)
        if said != self._last[0]:
            self._last = said, failure_text(error)
        return self._last[1]


def _place(frame: FrameType, line: int) -> str:
    """Return class, function, file and line of a frame."""
    owner, function = frame.f_locals.get('self'), frame.f_code.co_name
    named = function if owner is None else f'{type(owner).__name__}.{function}'
    return f'{named}, {Path(frame.f_code.co_filename).name}:{line}'


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get('__name__', ''))


def _kept(error: BaseException) -> Path | None:
    """
    Write the traceback to a file; return its path, or None if it cannot be written.

    There is one file for each place of failure, with the last traceback: they do not pile up.
    """
    place = f'{type(error).__name__} {"".join(traceback.format_tb(error.__traceback__))}'
    mark = hashlib.sha256(place.encode(errors='replace')).hexdigest()[:8]
    with contextlib.suppress(OSError):
        handle, name = tempfile.mkstemp(prefix='softarm-', suffix='.traceback')
        with os.fdopen(handle, 'w', encoding='utf-8', errors='replace') as file:
            file.write(''.join(traceback.format_exception(error)))
        return Path(name).replace(Path(name).with_name(f'softarm-{os.getuid()}-{mark}.traceback'))
    return None
