"""Find parts by name: those of this package, and those of other installed packages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from inspect import Parameter, getmembers, isfunction, signature
from pkgutil import iter_modules
from typing import Any

from softarm_ros.geometry.parts import FAMILIES, Part
from softarm_ros.rigs.errors import RigError, did_you_mean, listed

# Other packages register parts as entry points of this group: `family.kind = module:PART`.
GROUP = 'softarm.parts'


def _files_of(family: str, package: str) -> dict[str, str]:
    """Return the parts of a family in which each module of a package defines one `PART`."""
    spec = find_spec(package)
    folders = spec.submodule_search_locations if spec else None
    names = [module.name for module in iter_modules(folders)]
    return {f'{family}.{name}': f'{package}.{name}:PART' for name in names}


# 'family.kind' -> 'module:PART'; a table, not entry points, so that a source tree needs no
# installed metadata.
BUILT_IN: Mapping[str, str] = {
    **{
        f'arm.{kind}': f'softarm_ros.rigs.arms.{kind}:PART'
        for kind in ('cable_driven', 'hydraulic', 'muscle', 'pneumatic', 'tendon_rod')
    },
    'body.cable_chain': 'softarm_ros.plant.cable_chain_part:PART',
    'body.chamber_chain': 'softarm_ros.plant.pneumatic.part:PART',
    'body.muscle_chain': 'softarm_ros.plant.pam_arm.part:PART',
    'body.tendon_chain': 'softarm_ros.plant.tendon_rod.part:PART',
    'body.water_chain': 'softarm_ros.plant.hydraulic.part:PART',
    'drives.daq': 'softarm_ros.drivers.daq_part:PART',
    'drives.dynamixel': 'softarm_ros.drivers.dynamixel.part:PART',
    'drives.servo': 'softarm_ros.drivers.servo_part:PART',
    'drives.steppers': 'softarm_ros.drivers.steppers_part:PART',
    'drives.valves': 'softarm_ros.drivers.valves_part:PART',
    'model.angle_correction': 'softarm_ros.models.parts:ANGLE_CORRECTION',
    'model.cable_statics': 'softarm_ros.models.parts:CABLE_STATICS',
    'model.constant_curvature': 'softarm_ros.models.parts:CONSTANT_CURVATURE',
    'model.cosserat': 'softarm_ros.models.parts:COSSERAT',
    'model.heavy_cable_statics': 'softarm_ros.models.parts:HEAVY_CABLE_STATICS',
    'model.hydraulic_statics': 'softarm_ros.models.parts:HYDRAULIC_STATICS',
    'model.minimum_energy': 'softarm_ros.models.parts:MINIMUM_ENERGY',
    'sensors.pose_topic': 'softarm_ros.control.pose_topic:PART',
    'sensors.em_tracker': 'softarm_ros.perception.em_tracker.part:PART',
    'sensors.motion_capture': 'softarm_ros.plant.motion_capture_part:PART',
    'sensors.natnet': 'softarm_ros.perception.natnet.part:PART',
    'sensors.qtm': 'softarm_ros.perception.qtm.part:PART',
    'sensors.tf': 'softarm_ros.perception.tf.part:PART',
    'sensors.vrpn': 'softarm_ros.perception.vrpn.part:PART',
    'sensors.stereo_cameras': 'softarm_ros.perception.stereo.part:PART',
    **_files_of('controller', 'softarm_ros.control.controllers'),
    **_files_of('estimator', 'softarm_ros.control.estimators'),
    **_files_of('gripper', 'softarm_ros.control.grippers'),
    **_files_of('medium', 'softarm_ros.plant.media'),
}
_OURS = 'softarm_ros'


@dataclass(frozen=True)
class Registration:
    """
    A registered part, which `load` imports.

    Attributes
    ----------
    name : str
        'family.kind'.
    target : str
        'module:PART'.
    distribution : str
        Installed package that provides it.

    """

    name: str
    target: str
    distribution: str

    @property
    def built_in(self) -> bool:
        """Whether the part comes with this package."""
        return BUILT_IN.get(self.name) == self.target

    def load(self) -> Part:
        """
        Import the part.

        Raises
        ------
        RigError
            If the import fails, or finds no such part; the message names the distribution.

        """
        place = f'part {self.name!r} of the package {self.distribution} ({self.target})'
        module, _, attribute = self.target.partition(':')
        if not attribute:
            raise RigError('', f'{place}: expected module:NAME')
        try:
            found = getattr(import_module(module), attribute)
        except (Exception, SystemExit) as error:  # code of other packages may raise anything
            why = f'{type(error).__name__}: {error}'
            raise RigError('', f'{place} cannot be imported: {why}') from error
        if not isinstance(found, Part):
            raise RigError('', f'{place}: expected a Part, found {type(found).__name__}')
        if found.name != self.name:
            raise RigError('', f'{place} calls itself {found.name!r}; expected {self.name!r}')
        return found


@cache  # installed packages do not change while a process runs
def registrations() -> tuple[Registration, ...]:
    """Return all registered parts, sorted by name, without importing them."""
    from importlib.metadata import entry_points  # slow to import

    ours = [Registration(name, target, _OURS) for name, target in BUILT_IN.items()]
    others = [
        Registration(entry.name, entry.value, entry.dist.name if entry.dist else '?')
        for entry in entry_points(group=GROUP)
    ]
    return tuple(sorted([*ours, *others], key=lambda part: (part.name, part.distribution)))


def find_part(family: str, kind: str) -> Part:
    """
    Return a part by family and kind.

    Raises
    ------
    RigError
        If there is none (the message lists the known ones) or more than one, or the import fails.

    """
    check_family(family)
    name = f'{family}.{kind}'
    found = [entry for entry in registrations() if entry.name == name]
    if len(found) > 1:
        packages = ', '.join(entry.distribution for entry in found)
        raise RigError('', f'part {name!r} is provided more than once, by: {packages}')
    if found:
        return found[0].load()
    kinds = kinds_of(family)
    hint = did_you_mean(kind, kinds)
    raise RigError('', f'unknown {family} {kind!r}{hint}; known: {listed(kinds) or "none"}')


def built_part(part: Part, built: Any, *methods: str, like: type | None = None) -> Any:
    """
    Return an object that a part has built.

    Raises
    ------
    RigError
        If it lacks one of the methods, is a class, or has a method that does not take the
        arguments of the same method of `like`: the caller's TypeError would not name the part.

    """
    missing = [name for name in methods if not hasattr(built, name)]
    if missing:
        found = f'{type(built).__name__} without {listed(missing)}'
    elif isinstance(built, type):
        found = f'the class {built.__name__} itself; expected an object'
    else:
        found = next(_misfits(built, like), '')
    if found:
        raise RigError('', f'part {part.name} has built {found}; docs/parts.md describes it')
    return built


def _misfits(built: Any, like: type | None) -> Iterator[str]:
    """Yield each method that does not take the arguments of the same method of a class."""
    methods = {} if like is None else dict(getmembers(like, isfunction))
    for name, wanted in methods.items():
        if name.startswith('_') or not hasattr(built, name):
            continue
        found = getattr(built, name)
        taken = list(signature(wanted).parameters.values())[1:]  # without self
        try:
            known = signature(found)
        except (ValueError, TypeError):  # no function, or compiled code without a signature
            if callable(found):
                continue
            yield f'{type(built).__name__} whose {name!r} is no method'
            continue
        named = {one.name: None for one in taken if one.kind is Parameter.KEYWORD_ONLY}
        try:
            known.bind(*[None] * (len(taken) - len(named)), **named)
        except TypeError as error:
            asked = ', '.join(one.name for one in taken)
            yield f'{type(built).__name__} with {name}{known}; expected {name}({asked}): {error}'


def parts(family: str | None = None) -> tuple[Part, ...]:
    """Return all usable parts (of a family): importable, with a unique name."""
    found, _ = parts_and_problems(family)
    return found


def parts_and_problems(family: str | None = None) -> tuple[tuple[Part, ...], tuple[RigError, ...]]:
    """Return all usable parts (of a family), and the problems of the others."""
    if family is not None:
        check_family(family)
    found: list[Part] = []
    problems: list[RigError] = []
    known = registrations()
    for name in sorted({entry.name for entry in known}):
        own, _, kind = name.partition('.')
        if family not in (None, own):
            continue
        try:
            if own not in FAMILIES or not kind:
                packages = ', '.join(e.distribution for e in known if e.name == name)
                message = f'part {name!r} of the package {packages}: expected FAMILY.KIND'
                raise RigError('', f'{message}, the family one of {listed(FAMILIES)}')
            found.append(find_part(own, kind))
        except RigError as error:
            problems.append(error)
    return tuple(found), tuple(problems)


def kinds_of(family: str) -> list[str]:
    """Return the kinds that are registered in a family, whether or not they can be imported."""
    beginning = f'{family}.'
    names = {entry.name for entry in registrations() if entry.name.startswith(beginning)}
    return sorted(name.removeprefix(beginning) for name in names)


def check_family(family: str) -> None:
    """Raise RigError, listing the families, if the family is unknown."""
    if family not in FAMILIES:
        hint = did_you_mean(family, FAMILIES)
        raise RigError('', f'unknown family of parts {family!r}{hint}; known: {listed(FAMILIES)}')
