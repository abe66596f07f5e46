"""Fields of a pose sensor in a rig file."""

from __future__ import annotations

import numpy as np
import pytest
from pydantic import ValidationError

from softarm_ros.geometry.rotations import rotation_z
from softarm_ros.perception.config import PoseSensorConfig
from softarm_ros.perception.natnet.config import NatNetConfig
from softarm_ros.perception.qtm.config import QtmConfig

SECTIONS = ('proximal', 'distal')
BASE = {'name': 'base plate', 'section': 'base'}
TIP = {'name': 'tip', 'section': 'distal', 'offset_m': (0.0, 0.0, 0.01), 'turn_deg': (0, 0, 90)}


def test_places_of_bodies_and_points_follow_from_section_names() -> None:
    config = PoseSensorConfig(
        rate_hz=100.0, bodies=(BASE, TIP), points=({'name': 'm1', 'section': 'proximal'},)
    )
    places = config.places(SECTIONS)
    assert [places[name].section for name in ('base plate', 'tip', 'm1')] == [-1, 1, 0]
    np.testing.assert_allclose(places['tip'].offset[:3, :3], rotation_z(np.pi / 2), atol=1e-12)
    np.testing.assert_array_equal(places['tip'].offset[:3, 3], [0.0, 0.0, 0.01])
    assert config.base_body is not None and config.base_body.name == 'base plate'


def test_unknown_section_is_refused_with_the_known_ones() -> None:
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
def test_invalid_pose_sensor_fields_are_refused(fields: dict, what: str) -> None:
    with pytest.raises(ValidationError, match=what):
        PoseSensorConfig(rate_hz=100.0, **fields)


@pytest.mark.parametrize('name', ['192.168.1.10', 'motive', 'MOTIVE_PC.lab.', 'a.b-c.example'])
def test_server_accepts_a_host_name_or_an_ipv4_address(name: str) -> None:
    assert NatNetConfig(rate_hz=100.0, bodies=(BASE, TIP), server=name).server == name


@pytest.mark.parametrize(
    ('field', 'value', 'what'),
    [
        ('server', '192.168.1.300', 'four numbers of 0 to 255'),
        ('server', '192.168..10', 'name or address alone'),
        ('server', 'http://motive', 'name or address alone'),
        ('server', 'motive pc', 'name or address alone'),
        ('server', 'm' * 64, 'name or address alone'),
        ('server', '', 'at least 1 character'),
        ('server', 'fe80::1', 'an IPv4 address'),
        ('local', '192.168.1.10/24', 'name or address alone'),
        ('multicast_group', '192.168.1.10', '224.0.0.0 to 239.255.255.255'),
        ('multicast_group', 'motive', '224.0.0.0 to 239.255.255.255'),
    ],
)
def test_invalid_network_addresses_are_refused(field: str, value: str, what: str) -> None:
    fields = {'server': '192.168.1.10', field: value}
    with pytest.raises(ValidationError, match=what):
        NatNetConfig(rate_hz=100.0, bodies=(BASE, TIP), **fields)


def test_qtm_host_may_be_an_ipv6_address_but_have_no_port() -> None:
    assert QtmConfig(rate_hz=100.0, bodies=(BASE, TIP), host='fe80::1').host == 'fe80::1'
    with pytest.raises(ValidationError, match='name or address alone'):
        QtmConfig(rate_hz=100.0, bodies=(BASE, TIP), host='qtm:22223')
