"""The kinds of arms a rig file may describe."""

from __future__ import annotations

from softarm_ros.rigs.cable_rig import CableRig
from softarm_ros.rigs.errors import Problem, RigError, did_you_mean, listed
from softarm_ros.rigs.hydraulic_rig import HydraulicRig
from softarm_ros.rigs.muscle_rig import MuscleRig
from softarm_ros.rigs.pneumatic_rig import PneumaticRig
from softarm_ros.rigs.schema import Rig
from softarm_ros.rigs.tendon_rod_rig import TendonRodRig
from softarm_ros.rigs.yaml_document import YamlDocument

DEFAULT_KIND = 'cable_driven'
RIG_KINDS: dict[str, type[Rig]] = {
    'cable_driven': CableRig,
    'hydraulic': HydraulicRig,
    'tendon_rod': TendonRodRig,
    'pneumatic': PneumaticRig,
    'muscle': MuscleRig,
}


def kind_of(document: YamlDocument) -> type[Rig]:
    """
    Return the schema for a rig file; without `kind` it is a cable-driven arm.

    Raises
    ------
    RigError
        If there is no such kind; lists those there are.

    """
    data = document.data if isinstance(document.data, dict) else {}
    kind = data.get('kind', DEFAULT_KIND)
    if isinstance(kind, str) and kind in RIG_KINDS:
        return RIG_KINDS[kind]
    hint = did_you_mean(kind, RIG_KINDS) if isinstance(kind, str) else ''
    problem = Problem(
        ('kind',),
        f'no such kind of arm{hint}; known: {listed(RIG_KINDS)}',
        repr(kind),
        document.line_of(('kind',)),
    )
    raise RigError(document.source, [problem])
