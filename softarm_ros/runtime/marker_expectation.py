"""Where the model has the markers that cameras look for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.section_curve import along_sections
from softarm_ros.geometry.sightings import Place
from softarm_ros.models.arm_model import ArmModel


class MarkerExpectation:
    """
    Markers where the controller's model has them.

    Parameters
    ----------
    model : ArmModel
    places : mapping
        Where each marker sits, by name.

    """

    def __init__(self, model: ArmModel, places: Mapping[str, Place]) -> None:
        self._model = model
        self._places = dict(places)

    def positions(
        self, names: Sequence[str] = (), values: Array | None = None
    ) -> dict[str, Array]:
        """
        Return positions (3,) in the base frame [m], by marker.

        Parameters
        ----------
        names, values : (dof,), optional
            A configuration as it was commanded. At rest without one, or with one that is not of
            this model or not finite.

        """
        configuration = self._model.rest_configuration
        if (
            values is not None
            and tuple(names) == self._model.configuration_names
            and np.isfinite(values).all()
        ):
            configuration = values
        tips = self._model.posture_of(configuration).section_tips
        found = {}
        for name, place in self._places.items():
            at = np.eye(4)
            if place.section >= 0 and place.fraction == 1.0:
                at = tips[place.section]
            elif place.section >= 0:
                at = along_sections(tips, place.section, np.array([place.fraction]))[0]
            found[name] = (at @ place.offset)[:3, 3]
        return found
