"""Identification of a rig from recordings: first from measured actuators, then from poses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from softarm_ros.cli.identification.drives import drives_of, told_by_poses
from softarm_ros.cli.identification.fit import Fit, fit
from softarm_ros.cli.identification.recordings import Recorded
from softarm_ros.models.identifiable import Parameter
from softarm_ros.rigs.field_values import with_values
from softarm_ros.rigs.schema import Rig


@dataclass(frozen=True)
class Identified:
    """
    Result of identifying a rig from recordings.

    Attributes
    ----------
    rig : Rig
        The rig with all found values.
    drives : dict
        Fields of `recording` found from measured actuators (`drives.drives_of`).
    found : Fit, optional
        Fit to the poses; None if no parameter was left for it.

    """

    rig: Rig
    drives: dict[str, float]
    found: Fit | None

    @property
    def values(self) -> dict[str, float]:
        """Found values of all fields."""
        return {**self.drives, **({} if self.found is None else self.found.values)}


def identified(
    rig: Rig,
    recorded: Sequence[Recorded],
    parameters: Sequence[Parameter] | None,
    most_rows: int,
) -> Identified:
    """
    Return a rig identified from the rows `train` of recordings.

    If `parameters` is None, only drives are found and poses are not fitted.

    Raises
    ------
    UsageError
        If an actuator does not follow its command, or too little is measured (`fit.fit`).

    """
    drives = drives_of(rig, recorded)
    driven = with_values(rig, drives)
    if parameters is None:
        return Identified(driven, drives, None)
    left = told_by_poses(parameters, drives)
    if drives and not left:  # measured actuators determine all parameters
        return Identified(driven, drives, None)
    found = fit(driven, recorded, left, most_rows)
    return Identified(found.rig(driven), drives, found)
