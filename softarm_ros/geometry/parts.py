"""Parts of an arm: each has a name, a small typed config and one builder per role."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from importlib import import_module
from inspect import signature
from typing import Any

from softarm_ros.geometry.configs import ConfigBlock

FAMILIES: Mapping[str, str] = {
    'arm': 'sections and actuators, from which models and drives are built',
    'model': 'mechanics assumed by the controller: actuation, configuration, shape',
    'drives': 'a group of actuators on one device',
    'sensors': 'devices that measure the arm',
    'estimator': 'computes the state of the arm from measurements',
    'controller': 'computes the motion of the actuators from state and reference',
    'body': 'mechanics of the simulated arm, moved by the drives',
    'medium': 'surroundings of the simulated arm, such as water',
    'gripper': 'device at the tip that grasps objects',
}


class PartError(ValueError):
    """A part is malformed, or has no such role."""


@dataclass(frozen=True)
class Part:
    """
    Component of which arms are composed; it does not depend on any particular arm.

    Attributes
    ----------
    family : str
        One of `FAMILIES`.
    kind : str
        Name within the family, as written in rig files.
    config : type of ConfigBlock
        Class of the part's fields in a rig file.
    builders : mapping
        Role -> 'module:function'; a module is imported only when its role is built.
    summary : str
        One line for users who choose among parts.
    checks : tuple of str
        'module:NAME' of a tuple of `softarm_ros.rigs.checks.Check`: conditions between the part's
        fields and the rest of a rig.
    needs, takes : mapping
        For drives: the further devices that they require, and those that they may have, as name in
        the block `drives` -> 'module:Config'; the driver's builder takes all of them. For a
        gripper, `takes`: block of a rig (`drives`, `plant`) -> fields of `gripper` in it.

    Raises
    ------
    PartError
        If the family is not in `FAMILIES`, `config` is no `ConfigBlock`, or a builder is not
        written as 'module:function'.

    """

    family: str
    kind: str
    config: type[ConfigBlock]
    builders: Mapping[str, str]
    summary: str
    checks: tuple[str, ...] = ()
    needs: Mapping[str, str] = field(default_factory=dict)
    takes: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.family not in FAMILIES:
            raise PartError(f'family = {self.family!r}: expected one of {", ".join(FAMILIES)}')
        if not (isinstance(self.config, type) and issubclass(self.config, ConfigBlock)):
            raise PartError(f'part {self.name}: config = {self.config!r}: expected a ConfigBlock')
        for role, target in self.builders.items():
            module, colon, function = target.partition(':')
            if not (module and colon and function):
                raise PartError(
                    f'part {self.name}: builders[{role!r}] = {target!r}: expected module:function'
                )

    @property
    def name(self) -> str:
        """Family and kind, as in `drives.stepper_board`."""
        return f'{self.family}.{self.kind}'

    def named(self, target: str) -> Any:
        """
        Import and return what 'module:NAME' names.

        Raises
        ------
        PartError
            If the import fails, or the module has no such name.
        ImportError
            If a module of this package needs a package that is not installed.

        """
        module, _, name = target.partition(':')
        try:
            found = import_module(module)
        except (Exception, SystemExit) as error:  # code of other packages may raise anything
            if module.partition('.')[0] == __name__.partition('.')[0]:
                raise
            why = f'{type(error).__name__}: {error}'
            raise PartError(f'part {self.name}: {module} cannot be imported: {why}') from error
        if not hasattr(found, name):
            raise PartError(f'part {self.name}: {module} has no {name!r}')
        return getattr(found, name)

    def builder(self, role: str) -> Callable[..., Any]:
        """
        Import and return the builder of this part for a role.

        The builder raises PartError if its function does not take the arguments of the role.

        Raises
        ------
        PartError
            If the part has no such role, or as for `named`.
        ImportError
            If a module of this package needs a package that is not installed.

        """
        if role not in self.builders:
            known = ', '.join(map(repr, self.builders)) or 'none'
            raise PartError(f'part {self.name} has no role {role!r}; it has: {known}')
        module, _, function = self.builders[role].partition(':')
        found = self.named(self.builders[role])
        if not callable(found):
            raise PartError(f'part {self.name}: {function!r} of {module} is no function')

        # Otherwise, the TypeError would come from the caller, and not name the part.
        @wraps(found)
        def build(*arguments: Any, **named: Any) -> Any:
            try:
                taken = signature(found)
            except (ValueError, TypeError):  # compiled code may not state its arguments
                return found(*arguments, **named)
            try:
                taken.bind(*arguments, **named)
            except TypeError as error:
                raise PartError(
                    f'part {self.name}: {module}:{function}{taken}, builder of the role {role!r}, '
                    f'does not take the {len(arguments) + len(named)} arguments of this role: '
                    f'{error}; docs/parts.md lists them'
                ) from None
            return found(*arguments, **named)

        return build
