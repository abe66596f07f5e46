"""Muscles as gas springs: stiffness against the force of a closed amount of gas."""

import numpy as np
import pytest

from softarm_ros.plant.pam_arm.muscle_kernels import muscle_state_into
from softarm_ros.rigs.loader import load_rig

OUTSIDE_PA = 101.325e3


def pull(length, unloaded, config):
    """Return the pull [N] of a muscle at a length, its gas that which it has at `unloaded`."""
    most, span = config.pneumatics.max_pull_N, config.full_length_m - config.min_length_m
    area = most / OUTSIDE_PA  # a perfect pump pulls as hard as the air presses
    skeleton = most / span
    amount = (OUTSIDE_PA - skeleton * (config.full_length_m - unloaded) / area) * unloaded
    inside = amount / length  # isothermal
    return (OUTSIDE_PA - inside) * area - skeleton * (config.full_length_m - length)


@pytest.fixture(scope='module')
def gas():
    return load_rig('pam_arm', ['plant.gas_springs=true']).plant


@pytest.mark.parametrize('unloaded', [0.055, 0.075, 0.095, 0.109])
def test_stiffness_is_that_of_closed_gas_and_skeleton(gas, unloaded):
    assert pull(unloaded, unloaded, gas) == pytest.approx(0.0, abs=1e-9)
    h = 1e-6
    exact = (pull(unloaded + h, unloaded, gas) - pull(unloaded - h, unloaded, gas)) / (2.0 * h)
    full, softening = gas.full_stiffness_and_softening()
    limits = np.array([gas.min_length_m, gas.full_length_m])
    acting, stiffness = np.empty(1), np.empty(1)
    muscle_state_into(
        np.array([unloaded]), np.zeros(1), np.array([full]), softening, limits, acting, stiffness
    )
    assert stiffness[0] == pytest.approx(exact, rel=0.08)  # linear in length between its ends


def test_the_ends_are_exact_and_the_rig_has_them_off(gas):
    assert gas.full_stiffness_and_softening() == pytest.approx((556.4, 0.353), rel=1e-3)
    plain = load_rig('pam_arm').plant
    assert plain.full_stiffness_and_softening() == (plain.muscle_stiffness_N_m, plain.softening)
