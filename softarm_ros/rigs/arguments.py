"""Parse arguments of launch files and commands, which are text, and write settings as such."""

from __future__ import annotations

import math
from collections.abc import Iterable

from softarm_ros.rigs.errors import RigError

_YES, _NO = ('true', 'yes', 'on', '1'), ('false', 'no', 'off', '0')


def switch(name: str, text: str) -> bool:
    """Return a yes or no; raise RigError with the argument, its value and the allowed values."""
    value = text.strip().lower()
    if value in _YES or value in _NO:
        return value in _YES
    raise _refused(name, text, 'true or false')


def whole(name: str, text: str) -> int:
    """Return a whole number; raise RigError with the argument and its value otherwise."""
    try:
        return int(text)
    except ValueError:
        raise _refused(name, text, 'a whole number') from None


def number(name: str, text: str) -> float:
    """Return a finite number; raise RigError with the argument and its value otherwise."""
    try:
        value = float(text)
    except ValueError:
        raise _refused(name, text, 'a number') from None
    if not math.isfinite(value):
        raise _refused(name, text, 'a finite number')
    return value


def setting_options(settings: Iterable[str]) -> list[str]:
    """Return the words of a command line that give settings, as `--set` `field=value`."""
    return [word for setting in settings for word in ('--set', setting)]


def settings_of(
    texts: Iterable[str],
    *,
    controller: str | None = None,
    estimator: str | None = None,
    machine: str | None = None,
) -> list[str]:
    """
    Return the settings that a run applies to its rig file, for `load_rig`.

    Each text may hold several `field=value`, separated by semicolons. `controller` overrides
    `controller.kind`, also if the texts set it, and `estimator` overrides `estimator.kind`.
    `machine` is `nominal` or a number (`machine_setting`).
    """
    settings = [part.strip() for text in texts for part in text.split(';') if part.strip()]
    settings += [f'controller.kind={controller}'] if controller else []
    settings += [f'estimator.kind={estimator}'] if estimator else []
    return settings + ([machine_setting(machine)] if machine else [])


def machine_setting(text: str) -> str:
    """Return the setting that selects a machine, `nominal` or a number; RigError otherwise."""
    wanted = '0' if text.strip().lower() == 'nominal' else text.strip()
    if not wanted.isdigit():
        raise RigError('', f'--machine {text}: expected nominal or a whole number >= 0')
    return f'plant.machine.number={int(wanted)}'


def _refused(name: str, text: str, expected: str) -> RigError:
    return RigError('', f'{name}:={text}: expected {expected}')
