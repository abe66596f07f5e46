"""What a rig file may say about a sensor of poses."""

from __future__ import annotations

import numpy as np
import pytest
from pydantic import ValidationError

from softarm_ros.geometry.rotations import rotation_z
from softarm_ros.perception.config import PoseSensorConfig

SECTIONS = ('proximal', 'distal')
BASE = {'name': 'base plate', 'section': 'base'}
TIP = {'name': 'tip', 'section': 'distal', 'offset_m': (0.0, 0.0, 0.01), 'turn_deg': (0, 0, 90)}


def test_places_are_found_by_the_names_of_sections() -> None:
    config = PoseSensorConfig(
        rate_hz=100.0, bodies=(BASE, TIP), points=({'name': 'm1', 'section': 'proximal'},)
    )
    places = config.places(SECTIONS)
    assert [places[name].section for name in ('base plate', 'tip', 'm1')] == [-1, 1, 0]
    np.testing.assert_allclose(places['tip'].offset[:3, :3], rotation_z(np.pi / 2), atol=1e-12)
    np.testing.assert_array_equal(places['tip'].offset[:3, 3], [0.0, 0.0, 0.01])
    assert config.base_body is not None and config.base_body.name == 'base plate'


def test_an_unknown_section_is_named_with_those_there_are() -> None:
    config = PoseSensorConfig(rate_hz=100.0, bodies=(BASE, {'name': 'tip', 'section': 'dist'}))
    with pytest.raises(ValueError, match="'dist': expected one of base, proximal, distal"):
        config.places(SECTIONS)


@pytest.mark.parametrize(
    ('fields', 'what'),
    [
        ({'bodies': (BASE, {**TIP, 'name': 'base plate'})}, 'named more than once: base plate'),
        ({'bodies': ()}, 'expected at least one'),
        ({'bodies': (TIP,)}, 'expected a body with section: base'),
        ({'bodies': (TIP,), 'base_from': 'calibration'}, 'base_calibration goes with'),
        ({'bodies': (BASE,), 'base_calibration': 'a.yaml'}, 'base_calibration goes with'),
        ({'bodies': (BASE, {**TIP, 'fraction': 1.1})}, 'less than or equal to 1'),
    ],
)
def test_what_cannot_be_is_refused(fields: dict, what: str) -> None:
    with pytest.raises(ValidationError, match=what):
        PoseSensorConfig(rate_hz=100.0, **fields)
