"""Simulates water hydraulics under given torques."""

from __future__ import annotations

import numpy as np


def run(hydraulics, torque, dt, steps, state=None, flow=None):
    """Return the states (steps + 1, m, width) under constant or time-dependent torque."""
    state = hydraulics.rest_state() if state is None else state
    states = [state]
    for k in range(steps):
        command = torque(k * dt) if callable(torque) else torque
        result = hydraulics.step(states[-1], np.atleast_1d(command), dt, flow)
        assert result.converged, result.message
        states.append(result.state)
    return np.array(states)
