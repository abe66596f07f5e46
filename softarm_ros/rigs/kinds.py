"""The kinds of arms a rig file may describe."""

from __future__ import annotations

from importlib import import_module

from softarm_ros.rigs.composition import composed
from softarm_ros.rigs.errors import Problem, RigError, did_you_mean, listed
from softarm_ros.rigs.schema import Rig
from softarm_ros.rigs.yaml_document import YamlDocument

DEFAULT_KIND = 'cable_driven'
# Module and class of each; what a rig does not use is not imported.
RIG_KINDS = {
    'cable_driven': ('cable_rig', 'CableRig'),
    'hydraulic': ('hydraulic_rig', 'HydraulicRig'),
    'tendon_rod': ('tendon_rod_rig', 'TendonRodRig'),
    'pneumatic': ('pneumatic_rig', 'PneumaticRig'),
    'muscle': ('muscle_rig', 'MuscleRig'),
}


def kind_of(document: YamlDocument) -> type[Rig]:
    """
    Return the schema for a rig file; without `kind` it is a cable-driven arm.

    Parts that the file names take the place of the usual ones.

    Raises
    ------
    RigError
        If there is no such kind or part; lists those there are.

    """
    data = document.data if isinstance(document.data, dict) else {}
    kind = data.get('kind', DEFAULT_KIND)
    if isinstance(kind, str) and kind in RIG_KINDS:
        module, name = RIG_KINDS[kind]
        schema: type[Rig] = getattr(import_module(f'softarm_ros.rigs.{module}'), name)
        return composed(schema, document)
    hint = did_you_mean(kind, RIG_KINDS) if isinstance(kind, str) else ''
    problem = Problem(
        ('kind',),
        f'no such kind of arm{hint}; known: {listed(RIG_KINDS)}',
        repr(kind),
        document.line_of(('kind',)),
    )
    raise RigError(document.source, [problem])
