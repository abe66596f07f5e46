"""What a part is: a small typed config and one builder per role, under one name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from softarm_ros.geometry.configs import ConfigBlock

FAMILIES: Mapping[str, str] = {
    'arm': 'sections and actuators: what models and drives are built on',
    'model': 'mechanics the controller believes: actuation, configuration, shape',
    'drives': 'a group of actuators on one device',
    'sensors': 'what measures the arm',
    'estimator': 'from measurements to the state of the arm',
    'controller': 'from state and reference to the motion of the actuators',
    'body': 'of the simulated arm: what moves under the drives',
    'medium': 'of the simulated arm: what surrounds it',
    'gripper': 'what the tip carries to take hold of things',
}


class PartError(ValueError):
    """A part is malformed, or has no such role."""


@dataclass(frozen=True)
class Part:
    """
    One thing an arm may be composed of; it does not know which arm it is in.

    Attributes
    ----------
    family : str
        One of `FAMILIES`.
    kind : str
        Its name within the family, as rig files write it.
    config : type of ConfigBlock
        The fields that a rig file gives it.
    builders : mapping
        Role -> 'module:function'; a module is imported when its role is built, not before.
    summary : str
        One line for users who choose among parts.
    checks : tuple of str
        'module:NAME' of what must hold between its fields and the rest of a rig: a tuple of
        `softarm_ros.rigs.checks.Check`.
    needs, takes : mapping
        Of drives: the devices beside theirs that they cannot be without, and those that they may
        have; name in the block `drives` -> 'module:Config'. The driver's builder takes them all.
        Of a gripper, `takes`: block of a rig (`drives`, `plant`) -> fields of `gripper` in it.

    Raises
    ------
    PartError
        If the family is none of `FAMILIES`, or a field is of another type.

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

    def builder(self, role: str) -> Callable[..., Any]:
        """
        Import and return what builds this part in a role.

        Raises
        ------
        PartError
            If the part has no such role, or its module no such function.
        ImportError
            If the module cannot be imported: what it needs is not installed.

        """
        if role not in self.builders:
            known = ', '.join(map(repr, self.builders)) or 'none'
            raise PartError(f'part {self.name} has no role {role!r}; it has: {known}')
        module, _, function = self.builders[role].partition(':')
        found = getattr(import_module(module), function, None)
        if not callable(found):
            raise PartError(f'part {self.name}: {module} has no function {function!r}')
        build: Callable[..., Any] = found
        return build
