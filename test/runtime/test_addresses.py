"""The address of an emulated device replaces the one of the rig file, or is refused."""

import re

import pytest
from pydantic import Field

from softarm_ros.emulation.emulated_sensor import write_address
from softarm_ros.geometry.configs import ConfigBlock
from softarm_ros.rigs.errors import RigError
from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.addresses import addressed, addressed_sensor


class CoilConfig(ConfigBlock):
    """Fields of a sensor of another package, with the address of a real device."""

    where: str = '192.168.7.2'
    channel: int = Field(default=1, ge=1)


def test_an_emulated_device_replaces_the_address_and_nothing_else(tmp_path):
    devices = load_rig('hydraulic_arm').required_devices('emulated')
    for name in devices.names:
        (tmp_path / f'{name}.port').write_text('4711')
    found = addressed(devices, tmp_path)
    assert (found.servo.host, found.servo.port) == ('127.0.0.1', 4711)
    assert (found.daq.host.host, found.daq.host.port) == ('127.0.0.1', 4711)
    assert found.servo.model_dump(exclude={'host', 'port'}) == devices.servo.model_dump(
        exclude={'host', 'port'}
    )


@pytest.mark.parametrize(
    ('address', 'what'),
    [
        ({'were': '127.0.0.1'}, "were = '127.0.0.1': Extra inputs are not permitted"),
        ({'where': 7}, 'where = 7: Input should be a valid string'),
        ({'where': '127.0.0.1', 'channel': 0}, 'channel = 0: Input should be greater than or'),
    ],
)
def test_an_address_that_does_not_fit_does_not_leave_that_of_the_real_device(
    tmp_path, address, what
):
    write_address(tmp_path, 'coil', address)
    refused = f"the address of the emulated sensor 'coil' does not fit: {what}"
    with pytest.raises(RigError, match=re.escape(refused)):
        addressed_sensor('coil', CoilConfig(), tmp_path)


def test_an_address_that_fits_is_taken(tmp_path):
    write_address(tmp_path, 'coil', {'where': '127.0.0.1'})
    assert addressed_sensor('coil', CoilConfig(channel=2), tmp_path) == CoilConfig(
        where='127.0.0.1', channel=2
    )


def test_a_device_without_fields_for_a_tcp_port_is_refused(tmp_path):
    devices = load_rig('cable_arm').required_devices('emulated')
    odd = devices.model_copy(update={'steppers': CoilConfig()})
    (tmp_path / 'steppers').touch()
    with pytest.raises(RigError, match=r"emulated device 'steppers' does not fit: port = .*Extra"):
        addressed(odd, tmp_path)
