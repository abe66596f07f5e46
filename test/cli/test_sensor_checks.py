"""`softarm ports RIG` reports the pose server, and whether it sees each body of the rig file."""

import re
import threading
import time
from contextlib import contextmanager

import pytest

pytest.importorskip('natnet', reason="needs natnet: pip install 'softarm_ros[sensing]'")

from softarm_ros.cli import sensor_checks
from softarm_ros.cli.sensor_checks import check_sensor
from softarm_ros.emulation.emulated_sensor import write_address
from softarm_ros.perception.natnet.config import NatNetConfig
from softarm_ros.rigs.loader import load_rig
from softarm_ros.rigs.sensors import Sensors
from softarm_ros.runtime.arm_assembly import build_emulated_sensor, build_plant

pytestmark = pytest.mark.packets

BODIES = [{'name': n, 'section': s} for n, s in (('base', 'base'), ('tip', 'distal'))]


@pytest.fixture
def rig():
    config = NatNetConfig.model_validate(
        {'server': '192.0.2.1', 'rate_hz': 100.0, 'timeout_s': 1.0, 'bodies': BODIES}
    )
    sensors = Sensors.model_construct(natnet=config)
    return load_rig('cable_arm').model_copy(update={'sensors': sensors})


@pytest.fixture
def server(rig, tmp_path):
    """Start an emulated server, and cameras that see the resting arm."""
    with started(rig, 'natnet', tmp_path) as server:
        yield server


@contextmanager
def started(rig, name, folder):
    """Start the emulated device of a sensor, and cameras that see the resting arm."""
    server = build_emulated_sensor(rig, name, 0)
    write_address(folder, name, server.start())
    plant, ending = build_plant(rig, 0), threading.Event()

    def step(duration_s):
        plant.step(None, duration_s)
        server.deliver(plant.poll_poses(), plant.time_s)

    step(0.01)  # without a cache it compiles for seconds, as long as a check waits

    def run():
        # The device's clock is the plant's: it must not fall behind on a busy computer.
        last_s = time.monotonic()
        while not ending.wait(0.01):
            now_s = time.monotonic()
            step(now_s - last_s)
            last_s = now_s

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    yield server
    ending.set()
    thread.join()
    server.close()


def test_bodies_are_listed_and_a_hidden_body_fails(rig, server, tmp_path):
    findings = list(check_sensor(rig, 'natnet', tmp_path))
    assert [(f.ok, f.part) for f in findings] == [(True, ''), (True, 'base'), (True, 'tip')], (
        findings
    )
    assert 'its bodies: base, tip' in findings[0].text
    assert findings[1].text == 'seen, at base'
    server.inject('hide')
    findings = list(check_sensor(rig, 'natnet', tmp_path))
    assert [(f.ok, f.part) for f in findings] == [(True, ''), (True, 'base'), (False, 'tip')]


def test_a_problem_of_the_server_that_hides_no_body_fails_as_well(rig, server, tmp_path):
    """A second sender, or a wrong lens of a camera, was not mentioned: "frames come"."""
    server.inject('second')
    findings = list(check_sensor(rig, 'natnet', tmp_path))
    assert [f.ok for f in findings] == [True, True, True, False], findings
    assert 'sends NatNet as well' in findings[-1].text


@pytest.mark.parametrize(('unit', 'scale'), [('m', 1.0), ('mm', 1e-3)])
def test_the_place_of_a_body_shows_a_wrong_unit(rig, server, tmp_path, unit, scale):
    natnet = rig.sensors.devices()['natnet'].model_copy(update={'unit': unit})
    sensors = Sensors.model_construct(natnet=natnet)
    *_, tip = check_sensor(rig.model_copy(update={'sensors': sensors}), 'natnet', tmp_path)
    number = r'(-?\d+\.\d)'
    shown = re.fullmatch(
        rf'seen, at distal: x {number}, y {number}, z {number} mm in base, (\d+) ms old', tip.text
    )
    assert shown, tip.text
    rest = build_plant(rig, 0).true_section_tips()[-1, :3, 3]
    assert [float(mm) for mm in shown.groups()[:3]] == pytest.approx(
        1e3 * scale * rest, abs=max(5.0 * scale, 0.2)
    )
    assert float(shown[4]) < 1000.0


def test_a_missing_natnet_server_is_reported_with_its_address(rig):
    local = rig.sensors.devices()['natnet'].model_copy(update={'server': '127.0.0.1'})
    nobody = rig.model_copy(update={'sensors': Sensors.model_construct(natnet=local)})
    (finding,) = check_sensor(nobody, 'natnet', None)
    assert not finding.ok
    assert 'no NatNet server answers at 127.0.0.1 port 1510' in finding.text


def test_a_tracker_that_starts_slowly_is_not_called_missing(rig, tmp_path, monkeypatch):
    pytest.importorskip(
        'sksurgerynditracker', reason="needs it: pip install 'softarm_ros[sensing]'"
    )
    from softarm_ros.perception.em_tracker.config import EmTrackerConfig

    coils = [{'name': n, 'section': s} for n, s in (('0A', 'base'), ('0B', 'distal'))]
    config = EmTrackerConfig.model_validate(
        {'port': '/dev/none', 'rate_hz': 100.0, 'timeout_s': 1.0, 'bodies': coils}
    )
    tracked = rig.model_copy(update={'sensors': Sensors.model_construct(em_tracker=config)})
    # Loading and starting the library takes longer than both together.
    monkeypatch.setattr(sensor_checks, 'PATIENCE_S', 0.1)
    monkeypatch.setattr(sensor_checks, 'LOOK_S', 0.1)
    with started(tracked, 'em_tracker', tmp_path):
        findings = list(check_sensor(tracked, 'em_tracker', tmp_path))
    assert [(f.ok, f.part) for f in findings] == [(True, ''), (True, '0A'), (True, '0B')]


def test_image_of_a_sensor_without_cameras_is_refused(rig, server, tmp_path):
    findings = list(check_sensor(rig, 'natnet', tmp_path, tmp_path / 'seen.png'))
    assert [f.text for f in findings if not f.ok] == [
        f'no picture for {tmp_path / "seen.png"}: natnet is not a camera'
    ]
