"""`softarm ports`: which ports are tested, the report, and the exit status."""

import os
import re
import subprocess
import time

import pytest
from typer.testing import CliRunner

pytest.importorskip('serial')

from serial.tools import list_ports
from serial.tools.list_ports_common import ListPortInfo

from softarm_ros.cli.main import app
from softarm_ros.drivers import port_list
from softarm_ros.drivers.port_list import access_trouble, list_serial_ports
from softarm_ros.emulation.firmware_build import FirmwareBuildError, built
from softarm_ros.rigs.rig_files import find_rig


def ports(*words):
    result = CliRunner().invoke(app, ['ports', *map(str, words)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


def plugged(monkeypatch, tmp_path, device, vid=None, pid=None, link=None):
    """Make the system list one port, with a link as from udev."""
    info = ListPortInfo(str(device))
    info.vid, info.pid, info.description = vid, pid, 'Arduino Mega 2560'
    monkeypatch.setattr(list_ports, 'comports', lambda: [info])
    links = tmp_path / 'dev'
    links.mkdir()
    monkeypatch.setattr(port_list, '_LINK_FOLDERS', (links, links / 'by-id'))
    if link is not None:
        (links / link).symlink_to(device)


@pytest.fixture
def board(tmp_path):
    try:
        runner = built('steppers', 'native').runner
    except FirmwareBuildError as error:
        pytest.skip(str(error))
    link = tmp_path / 'port'
    process = subprocess.Popen(
        [runner, '--kind', 'steppers', '--port', link], stdout=subprocess.PIPE, text=True
    )
    assert 'ready\n' in iter(process.stdout.readline, '')
    yield link.resolve()
    process.terminate()
    process.wait(10)
    process.stdout.close()


def test_ports_without_a_serial_port_succeeds(monkeypatch):
    monkeypatch.setattr(list_ports, 'comports', list)
    assert ports() == (0, 'no serial port\n')


def test_arduino_mega_is_tested_by_default(monkeypatch, tmp_path, board):
    plugged(monkeypatch, tmp_path, board, 0x2341, 0x0042)
    status, said = ports()
    assert status == 0
    assert f'{board}  2341:0042  Arduino Mega 2560' in said
    assert 'OK      steppers, firmware 0.1; boot id' in said
    assert 'zeroed: none; ping' in said


def test_port_with_a_softarm_udev_link_is_tested_by_default(monkeypatch, tmp_path, board):
    plugged(monkeypatch, tmp_path, board, link='softarm_steppers')
    status, said = ports()
    assert status == 0
    assert str(tmp_path / 'dev' / 'softarm_steppers') in said
    assert 'OK      steppers' in said


def test_other_ports_are_tested_only_on_request(monkeypatch, tmp_path, board):
    plugged(monkeypatch, tmp_path, board, 0x0403, 0x6001)
    status, said = ports()
    assert (status, 'not tested' in said, 'OK' in said) == (0, True, False)
    status, said = ports('--test')
    assert (status, 'OK      steppers' in said) == (0, True)
    plugged_quietly = ports('--no-test')
    assert plugged_quietly[0] == 0
    assert 'OK' not in plugged_quietly[1]


def test_mega_without_our_firmware_fails(monkeypatch, tmp_path):
    ours, theirs = os.openpty()
    try:
        plugged(monkeypatch, tmp_path, os.ttyname(theirs), 0x2341, 0x0042)
        began = time.monotonic()
        status, said = ports()
        assert status == 1
        assert 'FAILED  no answer at 250000 and 115200 baud' in said
        assert time.monotonic() - began < 30.0
    finally:
        os.close(ours)
        os.close(theirs)


def test_port_without_access_rights_is_reported_with_the_remedy(monkeypatch, tmp_path):
    device = tmp_path / 'ttyACM0'
    device.touch()
    monkeypatch.setattr(port_list.os, 'access', lambda *_: False)
    assert 'sudo usermod -aG' in access_trouble(str(device))
    plugged(monkeypatch, tmp_path, device, 0x2341, 0x0042)
    assert list_serial_ports()[0].trouble
    assert ports()[0] == 1


def test_rig_without_devices_is_reported(tmp_path):
    text = find_rig('fishbone_arm').read_text()
    bare = tmp_path / 'bare.yaml'
    bare.write_text(re.sub(r'^drives:\n(?:[ #\n].*\n?|\n)*', '', text, flags=re.MULTILINE))
    status, said = ports(bare)
    assert (status, 'declares no devices' in said) == (2, True)


@pytest.mark.parametrize(
    ('words', 'why'),
    [
        (['--folder', '.'], '--folder belongs to the devices of a RIG'),
        (['--image', 'seen.png'], '--image belongs to the cameras of a RIG'),
        (['--set', 'drives.steppers.port=x'], '--set belongs to the fields of a RIG'),
    ],
)
def test_option_of_a_rig_without_a_rig_is_refused(words, why):
    assert ports(*words) == (2, f'softarm: {why}\n')


@pytest.mark.parametrize(
    ('words', 'why'),
    [
        (['cable_arm_single'], 'cable_arm_single has no camera'),
        (['hydraulic_arm', '--no-test'], '--no-test tests no camera'),
    ],
)
def test_image_without_a_test_of_cameras_is_refused(words, why):
    assert ports(*words, '--image', 'seen.png') == (2, f'softarm: --image seen.png: {why}\n')
