"""A rig identified from recordings: what actuators make of commands, then what poses tell."""

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
    What recordings tell of a rig.

    Attributes
    ----------
    rig : Rig
        With all values that were found.
    drives : dict
        Fields of `recording` that measured actuators told (`drives.drives_of`).
    found : Fit, optional
        What poses told; None where nothing was asked of them.

    """

    rig: Rig
    drives: dict[str, float]
    found: Fit | None

    @property
    def values(self) -> dict[str, float]:
        """All fields that were found."""
        return {**self.drives, **({} if self.found is None else self.found.values)}


def identified(
    rig: Rig,
    recorded: Sequence[Recorded],
    parameters: Sequence[Parameter] | None,
    most_rows: int,
) -> Identified:
    """
    Return a rig identified from the rows `train` of recordings.

    Without parameters poses are asked nothing, and drives alone are found.

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
    if drives and not left:  # measured actuators told all that was asked for
        return Identified(driven, drives, None)
    found = fit(driven, recorded, left, most_rows)
    return Identified(found.rig(driven), drives, found)
