"""Gripper of the simulated pneumatic arm: taking, carrying and putting down objects."""

import math

import numpy as np
import pytest
from pneumatic_cases import CONFIG, TARGET, plant

from softarm_ros.plant.pneumatic.gripper import GrippedObject, SoftFingers


def close(p, pressure=5e4):
    p.command_gripper(pressure)
    p.step(np.zeros(6), 1.5)


def test_gripped_object_is_carried_loads_the_base_and_is_put_down():
    p = plant()
    p.command_gripper(-3e4)
    p.step(np.zeros(6), 1.0)
    assert p.gripper_pressure() == pytest.approx(-3e4, rel=0.01)
    place = p.body.fingers()[:3, 3] + [0.005, -0.004, 0.003]
    p.drives.place_object(GrippedObject(tuple(place), 0.05))
    bare = p.body.base_wrench()[2]
    close(p)
    assert p.drives.holds_object
    assert p.body.base_wrench()[2] - bare == pytest.approx(0.05 * 9.81, abs=0.01)
    for _ in range(4):
        p.step(TARGET, 0.5)
    carried = p.drives.object_position()
    assert np.linalg.norm(carried - p.body.fingers()[:3, 3]) == pytest.approx(math.sqrt(50) * 1e-3)
    assert np.linalg.norm(carried - place) > 0.025
    p.command_gripper(-3e4)
    p.step(TARGET, 1.0)
    assert not p.drives.holds_object
    where = p.drives.object_position()
    p.step(np.zeros(6), 1.0)
    np.testing.assert_array_equal(p.drives.object_position(), where)


@pytest.mark.parametrize(
    ('offset', 'mass', 'pressure'),
    [(0.025, 0.05, 5e4), (0.0, 0.6, 5e4), (0.0, 0.05, 1e4)],
    ids=['too far', 'too heavy', 'not closed'],
)
def test_object_that_cannot_be_gripped_stays_in_place(offset, mass, pressure):
    p = plant()
    place = p.body.fingers()[:3, 3] + [offset, 0.0, 0.0]
    p.drives.place_object(GrippedObject(tuple(place), mass))
    close(p, pressure)
    assert not p.drives.holds_object
    np.testing.assert_allclose(p.drives.object_position(), place)


def test_invalid_objects_are_refused():
    for wrong in ({'mass_kg': -1.0}, {'mass_kg': 0.1, 'volume_m3': math.nan}):
        with pytest.raises(ValueError, match=r'mass_kg|volume_m3'):
            GrippedObject((0.0, 0.0, 0.2), **wrong)
    with pytest.raises(ValueError, match='position'):
        GrippedObject((0.0, math.inf, 0.2), 0.1)
    assert not SoftFingers(CONFIG.gripper).holds
