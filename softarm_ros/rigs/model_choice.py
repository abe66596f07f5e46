"""Select the models of an arm: those that can be built on the mechanics it provides."""

from __future__ import annotations

from softarm_ros.rigs.errors import RigError, did_you_mean, listed
from softarm_ros.rigs.part_registry import find_part, kinds_of, parts


def models_of(mechanics: str) -> tuple[str, ...]:
    """Return the names of the models that can be built on these mechanics."""
    return tuple(part.kind for part in parts('model') if mechanics in part.builders)


def why_no_model(name: str, mechanics: str) -> str | None:
    """Return why an arm of these mechanics cannot use the named model; None if it can."""
    part, broken = None, ''
    if name in kinds_of('model'):
        try:
            part = find_part('model', name)
        except RigError as error:
            broken = f'; {error}'
    if part is not None and mechanics in part.builders:
        return None  # no need to import other models, some of other packages
    known = models_of(mechanics)
    expected = f'expected {"one of " if len(known) > 1 else ""}{listed(known)}'
    if part is None:
        return f'{expected}{broken or did_you_mean(name, known)}'
    needed = listed(part.builders)
    return f'{expected}: {name!r} is built on {needed}, and this arm provides {mechanics!r}'
