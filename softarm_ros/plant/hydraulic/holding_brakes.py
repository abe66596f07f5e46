"""Holding brakes at the motors: dry friction, switched on and off with a delay."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softarm_ros.models.hydraulics.axes import WaterHydraulics
from softarm_ros.models.hydraulics.axes_kernels import COULOMB, STATIC
from softarm_ros.plant.hydraulic.config import HoldingBrakeConfig


class HoldingBrakes:
    """
    Brakes (m) that springs close and current opens; initially open.

    Parameters
    ----------
    config
        Holding torque, delays.
    hydraulics
        The axes on which they act; the brakes change their friction.

    """

    def __init__(self, config: HoldingBrakeConfig, hydraulics: WaterHydraulics) -> None:
        self.config = config
        self._parameters = hydraulics.parameters
        self._seals = hydraulics.parameters[:, [COULOMB, STATIC]].copy()
        leads = np.array([axis.lead_m_per_rad for axis in hydraulics.axes])
        self._force = config.torque_N_m / leads
        self.open = np.ones(len(leads), dtype=bool)
        self._waited_s = np.zeros(len(leads))

    def set(self, open_: ArrayLike) -> None:
        """Open or close the brakes (m,) at once."""
        self.open = np.array(open_, dtype=bool)
        self._waited_s[:] = 0.0
        added = np.where(self.open, 0.0, self._force)
        self._parameters[:, [COULOMB, STATIC]] = self._seals + added[:, None]

    def advance(self, lifted: NDArray[np.bool_], duration_s: float) -> None:
        """Advance by a duration [s], with or without current in the brakes (m,)."""
        moving = lifted != self.open
        self._waited_s = np.where(moving, self._waited_s + duration_s, 0.0)
        delay = np.where(lifted, self.config.open_s, self.config.close_s)
        done = moving & (self._waited_s >= delay - 1e-9)
        if done.any():
            waited = np.where(done, 0.0, self._waited_s)
            self.set(np.where(done, lifted, self.open))
            self._waited_s = waited
