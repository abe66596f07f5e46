"""Predict where the cameras should see the markers, from the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.section_curve import along_sections
from softarm_ros.geometry.sightings import Place
from softarm_ros.models.arm_model import ArmModel


class MarkerExpectation:
    """
    Predicts marker positions from the controller's model.

    Parameters
    ----------
    model : ArmModel
    places : mapping
        Place of each marker on the arm, by name.

    """

    def __init__(self, model: ArmModel, places: Mapping[str, Place]) -> None:
        self._model = model
        self._places = dict(places)

    def positions(
        self, names: Sequence[str] = (), values: Array | None = None
    ) -> dict[str, Array]:
        """
        Return the marker positions (3,) [m] in the base frame, by name.

        Parameters
        ----------
        names, values : (dof,), optional
            A commanded configuration. Without one, or if it is not finite or belongs to another
            model, the arm is at rest.

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
