"""Fields of a pose sensor in a rig file."""

from __future__ import annotations

import numpy as np
import pytest
from pydantic import ValidationError

from softarm_ros.geometry.rotations import rotation_z
from softarm_ros.perception.config import PoseSensorConfig
from softarm_ros.perception.natnet.config import NatNetConfig
from softarm_ros.perception.qtm.config import QtmConfig
from softarm_ros.perception.vrpn.config import VrpnConfig

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


@pytest.mark.parametrize(
    'label', ['0', '07', 'tip:0', 'tip:', ':1', 'loose', '65536', 'tip:65536']
)
def test_a_label_that_no_natnet_server_has_is_refused_by_name(label: str) -> None:
    points = ({'name': '7', 'section': 'distal'}, {'name': label, 'section': 'distal'})
    with pytest.raises(ValidationError, match=rf"points\[1\].name = '{label}': .* 1 to 65535"):
        NatNetConfig(server='127.0.0.1', rate_hz=100.0, bodies=(BASE, TIP), points=points)


@pytest.mark.parametrize('label', ['7', 'tip:1', 'tip:20', 'tip:Marker3', 'a:b:2', 'hand:thumb'])
def test_a_label_that_a_natnet_server_may_have_is_taken(label: str) -> None:
    points = ({'name': label, 'section': 'distal'},)
    NatNetConfig(server='127.0.0.1', rate_hz=100.0, bodies=(), points=points, base_from='sensor')


@pytest.mark.parametrize(
    ('point', 'why'),
    [
        ({'name': 'tpi:1'}, "points[0].name = 'tpi:1': body 'tpi': expected one of `bodies`"),
        ({'name': 'tip:21'}, "points[0].name = 'tip:21': marker '21': expected 1 to 20"),
        ({'name': 'tip:thumb'}, "points[0].name = 'tip:thumb': marker 'thumb': expected 1 to 20"),
        (
            {'name': '7', 'fraction': 0.5},
            'points[0].fraction = 0.5 (7, section distal): expected 1',
        ),
        ({'name': 'tip:20'}, ''),
        ({'name': '7', 'fraction': 0.0}, ''),  # the tip of the previous section
    ],
)
def test_what_no_emulated_server_sees_is_named(point: dict, why: str) -> None:
    points = ({'section': 'distal', **point},)
    config = NatNetConfig(server='127.0.0.1', rate_hz=100.0, bodies=(BASE, TIP), points=points)
    found = config.not_emulated(SECTIONS)
    assert found.startswith(why) and bool(found) == bool(why)


def test_points_of_a_vrpn_server_are_refused() -> None:
    points = ({'name': 'm1', 'section': 'distal'},)
    with pytest.raises(ValidationError, match=r"points\[0\].name = 'm1': VRPN sends poses"):
        VrpnConfig(host='127.0.0.1', rate_hz=100.0, bodies=(BASE, TIP), points=points)
