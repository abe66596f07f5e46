"""Build the firmware and the program that emulates its board, once per version of sources."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from softarm_ros.emulation.emulated_arm import EmulationError
from softarm_ros.leftovers import temporary_folder
from softarm_ros.share_folder import share_folder

Board = Literal['steppers', 'valves']
Emulator = Literal['auto', 'native', 'simavr', 'qemu']

EMULATORS: dict[str, str] = {'steppers': 'simavr', 'valves': 'qemu'}
_SOURCES = ('Makefile', 'core/*', 'steppers/*.*', 'valves/*', 'emulation/*.[ch]')
_SIMAVR_HEADER = Path('/usr/include/simavr/sim_avr.h')
_ARDUINO = Path('/usr/share/arduino/hardware/arduino/avr/cores')
# Requirements of each emulator: program or file -> package of Debian and Ubuntu.
_NEEDS: dict[str, dict[str | Path, str]] = {
    'native': {},
    'simavr': {
        'avr-gcc': 'gcc-avr',
        Path('/usr/lib/avr/include/avr/io.h'): 'avr-libc',
        _ARDUINO: 'arduino-core-avr',
        _SIMAVR_HEADER: 'libsimavr-dev',
    },
    'qemu': {'arm-none-eabi-gcc': 'gcc-arm-none-eabi', 'qemu-system-arm': 'qemu-system-arm'},
}
_OF_MAKE = {'MAKEFLAGS', 'MFLAGS', 'MAKELEVEL'}  # variables of a make that may run this process
_COMPILER: dict[str | Path, str] = {'make': 'make', 'cc': 'gcc libc6-dev'}


class FirmwareBuildError(EmulationError):
    """An emulated board cannot be built; the message says what is missing or has failed."""


@dataclass(frozen=True)
class FirmwareBinaries:
    """
    Programs that emulate a board.

    Attributes
    ----------
    runner :
        The program that puts the board behind a pseudo-terminal (firmware/emulation/README.md).
    elf :
        The board's own binary; None if the core is compiled for this computer.
    emulator :
        native, simavr or qemu.
    why :
        Reason for this emulator.

    """

    runner: Path
    elf: Path | None
    emulator: str
    why: str


def built(board: Board, emulator: Emulator = 'auto') -> FirmwareBinaries:
    """
    Return the programs of a board; build them unless they exist for the present sources.

    `auto` selects the board's own binary in its emulator (simavr for the steppers, QEMU for the
    valves) if compiler and emulator are installed, else the core compiled for this computer. The
    first build takes some seconds. Several processes may call it at once.

    Raises
    ------
    ValueError
        For an unknown board, or an emulator that it does not have.
    FirmwareBuildError
        If a requirement is not installed, or the build fails.

    """
    if board not in EMULATORS:
        raise ValueError(f'board {board!r} is not known; there are {", ".join(EMULATORS)}')
    own = EMULATORS[board]
    if emulator not in ('auto', 'native', own):
        raise ValueError(f'emulator {emulator!r} does not run the {board}: auto, {own} or native')
    sources = _sources()
    if emulator != 'auto':
        return _built(board, emulator, sources, 'as asked for')
    missing = _missing(own)
    if missing:
        return _built(board, 'native', sources, f'{own} needs {_apt(missing)}')
    try:
        return _built(board, own, sources, f"the board's own binary in {own}")
    except FirmwareBuildError as error:
        return _built(board, 'native', sources, f'{own}: {error}')


def cache_folder() -> Path:
    """Return the folder of the builds: `$XDG_CACHE_HOME/softarm_ros/firmware`."""
    home = Path(os.environ.get('XDG_CACHE_HOME', ''))
    root = home if home.is_absolute() else Path.home() / '.cache'
    return root / 'softarm_ros' / 'firmware'


def _built(board: Board, emulator: str, sources: Path, why: str) -> FirmwareBinaries:
    missing = _missing(emulator)
    if missing:
        raise FirmwareBuildError(f'the emulated {board} ({emulator}) need {_apt(missing)}')
    names = [f'{emulator}_runner'] + ([] if emulator == 'native' else [f'{board}.elf'])
    folder = cache_folder() / _fingerprint(sources, names, emulator)
    if not folder.is_dir():
        _build(sources, names, folder)
    elf = None if emulator == 'native' else folder / names[1]
    return FirmwareBinaries(folder / names[0], elf, emulator, why)


def _build(sources: Path, names: list[str], folder: Path) -> None:
    """Build the files `names` into `folder`, which appears complete or not at all."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        place = temporary_folder(folder.parent)
    except OSError as error:
        raise FirmwareBuildError(f'no place to build the firmware: {error}') from error
    with place:
        work = Path(place.name)
        make = work / 'make'
        targets = [f'{make}/{name}' for name in names]
        done = subprocess.run(
            ['make', '-C', str(sources), f'BUILD={make}', 'CC=cc', 'VALVES_FLAGS=', *targets],
            env={name: value for name, value in os.environ.items() if name not in _OF_MAKE},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise FirmwareBuildError(f'building {", ".join(names)}: {_first_error(done.stderr)}')
        kept = work / 'kept'
        kept.mkdir()
        for name in names:
            (make / name).replace(kept / name)
        try:
            kept.rename(folder)
        except OSError:
            if not folder.is_dir():  # else another process finished first, from the same sources
                raise


def _sources() -> Path:
    try:
        return share_folder('firmware/Makefile') / 'firmware'
    except FileNotFoundError as error:
        raise FirmwareBuildError(str(error)) from None


def _fingerprint(sources: Path, names: list[str], emulator: str) -> str:
    """Return a hash of all inputs of a build: its sources and the installed tools."""
    digest = hashlib.sha256(' '.join(names).encode())
    for pattern in _SOURCES:
        for path in sorted(p for p in sources.glob(pattern) if p.is_file()):
            digest.update(f'{path.relative_to(sources)}\0'.encode() + path.read_bytes() + b'\0')
    for tool in (*_COMPILER, *_NEEDS[emulator]):
        found = shutil.which(tool) if isinstance(tool, str) else tool
        if found is not None:
            status = Path(found).stat()
            digest.update(f'{found} {status.st_size} {status.st_mtime_ns}'.encode())
    return digest.hexdigest()[:20]


def _missing(emulator: str) -> list[str]:
    """Return the packages that are missing for an emulator, or for any build."""
    return [
        package
        for tool, package in (_COMPILER | _NEEDS[emulator]).items()
        if not (tool.exists() if isinstance(tool, Path) else shutil.which(tool))
    ]


def _apt(packages: list[str]) -> str:
    return (
        f'{", ".join(packages)}: sudo apt-get install --no-install-recommends {" ".join(packages)}'
    )


def _first_error(output: str) -> str:
    lines = output.strip().splitlines() or ['make reports no reason']
    return next((line for line in lines if 'error' in line.lower()), lines[-1])
