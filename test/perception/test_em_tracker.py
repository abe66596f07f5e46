"""An NDI Aurora behind a pseudo-terminal, read by the real library in its own process."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tracked_arm import BODIES, DELAY_S, FRAME_ID, RATE_HZ, SECTIONS, Bench, bench

pytest.importorskip(
    'sksurgerynditracker',
    reason="needs scikit-surgerynditracker: pip install 'softarm_ros[sensing]'",
)

from softarm_ros import load_rig
from softarm_ros.cli.backend_comparison import seeing_alike
from softarm_ros.emulation.emulated_arm import EmulationError
from softarm_ros.emulation.ndi_device import OWN_FAULTS, NdiDevice, crc16
from softarm_ros.emulation.tracked_scene import EPOCH_S, X_RB, TrackedScene
from softarm_ros.geometry.poses import inverse_pose, pose
from softarm_ros.geometry.rotations import exp_so3, log_so3
from softarm_ros.own_module import own_module
from softarm_ros.perception.base_calibration_file import read_base, write_base
from softarm_ros.perception.base_frame import BaseCalibration
from softarm_ros.perception.em_tracker import sensor as sensor_module
from softarm_ros.perception.em_tracker.config import EmTrackerConfig
from softarm_ros.perception.em_tracker.sensor import PROCESS, EmTrackerSensor
from softarm_ros.plant.mocap import PoseMeasurement
from softarm_ros.runtime.arm_assembly import sensor_config

pytestmark = pytest.mark.packets

HANDLES = {'base': '0A', 'middle': '0B', 'tip': '0C'}
COILS = [{**body, 'name': HANDLES[body['name']]} for body in BODIES]


class PluggedDevice(NdiDevice):
    """A device whose coils can be unplugged, fail to initialise, or belong to no body."""

    def __init__(self, config: EmTrackerConfig, scene: TrackedScene) -> None:
        super().__init__(config, scene)
        self.failing: tuple[str, ...] = ()
        self.others: tuple[str, ...] = ()  # handles of coils that belong to no body
        self.unplugged: tuple[str, ...] = ()
        self._occupied = False

    def plug_in(self, handle: str) -> None:
        self._initialised.discard(handle)
        self._enabled.discard(handle)
        self.unplugged, self._occupied = (), True

    def _text(self, command: bytes) -> str:
        word, _, rest = command[:-4].decode('ascii').partition(':')
        if word == 'PINIT' and rest[:2].upper() in self.failing:
            return 'ERROR0E'
        return super()._text(command)

    def _handles(self, which: str) -> str:
        self._occupied = False
        names = sorted({*self.scene.names, *self.others} - set(self.unplugged))
        ready = {'02': self._initialised, '03': self._enabled}.get(which, set())
        found = [name for name in names if name not in ready]
        if which == '03':
            found = [name for name in found if name in self._initialised]
        return f'{len(found):02X}' + ''.join(f'{name}001' for name in found)

    def _frame(self, options: int) -> str:
        if self._newest is not None:
            number, scene = self._newest
            unseen = dict.fromkeys(self.unplugged)
            self._newest = number, replace(scene, bodies={**scene.bodies, **unseen})
        status = '0040' if self._occupied else '0000'
        return super()._frame(options).removesuffix('0000') + status


@contextmanager
def streaming(
    timeout_s: float = 1.0,
    plug: Callable[[PluggedDevice], None] = lambda device: None,
) -> Iterator[Bench]:
    """Start a device, after `plug` has prepared it, and a sensor that reads it."""
    config = EmTrackerConfig.model_validate(
        {
            'port': '/dev/none',
            'rate_hz': RATE_HZ,
            'timeout_s': timeout_s,
            'device_latency_s': DELAY_S,
            'bodies': COILS,
        }
    )
    device = PluggedDevice(config, TrackedScene(config, SECTIONS, 0, OWN_FAULTS))
    plug(device)
    found = device.start()
    sensor = EmTrackerSensor(config.model_copy(update=found), FRAME_ID)
    with bench(sensor, device) as running:
        yield running


def settle(running: Bench) -> None:
    """Read until frames arrive and the base is known."""
    running.wait_for(lambda: len(running.sightings) > 50, 30.0)


def test_poses_match_the_arm_at_the_exposure() -> None:
    with streaming() as running:
        settle(running)
        found = running.read(1.0)
        health = running.sensor.health()
    assert len(found) > 30
    assert {b.name for s in found for b in s.bodies} == {'0B', '0C'}
    assert np.median(running.errors_m(found)) < 1.5e-3
    assert health.connected
    assert health.seen == ('0B', '0C')
    assert health.values['bodies_of_server'] == '0A, 0B, 0C'


@pytest.mark.parametrize(
    ('fault', 'code', 'subject'),
    [
        ('outside', 'body-lost', '0C'),
        ('flip', 'flip', '0C'),
        ('corrupt', 'corrupt', 'device'),
        ('blind', 'no-frames', 'device'),
    ],
)
def test_fault_is_reported_with_advice_and_gives_no_wrong_pose(
    fault: str, code: str, subject: str
) -> None:
    with streaming() as running:
        settle(running)
        running.device.inject(fault)
        running.wait_for(lambda: code in running.codes())
        during = running.read(0.5)
        problems = {p.subject: p for p in running.sensor.health().problems if p.code == code}
        running.device.inject('mend')
        running.wait_for(lambda: code not in running.codes() and running.sensor.health().connected)
    assert len(problems[subject].advice) > 10
    # The checksum of a reply lets no corrupted one through.
    assert max(running.errors_m(during), default=0.0) < 8e-3


def test_device_that_stops_counting_but_answers_is_not_called_silent() -> None:
    with streaming(timeout_s=0.25) as running:
        settle(running)
        running.device.inject('blind')
        assert running.codes_within(1.0) == {'no-frames'}


def test_device_is_found_again_after_it_was_switched_off() -> None:
    with streaming() as running:
        settle(running)
        running.device.inject('die')
        running.wait_for(lambda: 'no-server' in running.codes(), 20.0)
        assert not running.sensor.health().connected
        running.device.inject('mend')
        running.wait_for(lambda: running.sensor.health().connected, 40.0)


def test_library_that_starts_slowly_is_not_restarted(monkeypatch: pytest.MonkeyPatch) -> None:
    """An Aurora with many coils is initialised for longer than the library may be silent."""
    monkeypatch.setattr(sensor_module, 'SILENT_S', 0.3)  # loading the library takes longer
    with streaming() as running:
        settle(running)


def test_killed_library_process_is_restarted() -> None:
    with streaming() as running:
        settle(running)
        running.sensor._process.kill()
        running.wait_for(lambda: running.sensor.health().values['starts'] == '2', 10.0)
        assert 'the library was killed by SIGKILL' in str(running.sensor._silence())
        seen = len(running.sightings)
        running.wait_for(lambda: len(running.sightings) > seen + 10, 30.0)


def test_coil_that_was_unplugged_is_seen_again_after_it_was_plugged_in() -> None:
    with streaming() as running:
        settle(running)
        running.device.unplugged = ('0B',)
        running.wait_for(lambda: 'body-lost' in running.codes())
        assert running.sensor.health().seen == ('0C',)
        running.device.plug_in('0B')
        running.wait_for(lambda: running.sensor.health().seen == ('0B', '0C'), 20.0)
        assert running.sensor.health().values['starts'] == '2'
        running.device.plug_in('0D')  # no coil of the rig is missing: it must not interrupt
        running.read(1.0)
        assert running.sensor.health().values['starts'] == '2'


def test_coil_that_fails_to_initialise_stops_only_the_rig_that_names_it() -> None:
    def plug(device: PluggedDevice) -> None:
        device.failing = device.others = ('0D',)

    with streaming(plug=plug) as running:
        settle(running)
        assert running.sensor.health().values['bodies_of_server'] == '0A, 0B, 0C'


def test_coil_of_the_rig_that_fails_to_initialise_is_named_and_tried_again() -> None:
    def plug(device: PluggedDevice) -> None:
        device.failing = ('0B',)

    with streaming(plug=plug) as running:
        running.wait_for(lambda: 'no-frames' in running.codes())
        (problem,) = running.sensor.health().problems
        assert 'cannot initialise coil 0B (' in problem.text
        running.device.failing = ()
        running.wait_for(lambda: running.sensor.health().seen == ('0B', '0C'))
        assert 'no-frames' not in running.codes()


def test_port_used_by_another_program_is_reported_as_in_use() -> None:
    line, port = pty.openpty()
    fcntl.flock(port, fcntl.LOCK_EX)
    done = subprocess.run(
        own_module(PROCESS, os.ttyname(port)), stdout=subprocess.PIPE, timeout=30.0, check=False
    )
    os.close(line)
    os.close(port)
    assert done.returncode == 1
    assert json.loads(done.stdout) == {'error': 'in use by another program'}
    given = {'port': '/dev/none', 'rate_hz': 40.0, 'bodies': COILS}
    sensor = EmTrackerSensor(EmTrackerConfig.model_validate(given), FRAME_ID)
    assert sensor._take(done.stdout.rstrip()) is None
    # There was no reply, so none is reported as corrupt.
    assert [p.code for p in sensor.health().problems] == ['no-server']
    assert '(in use by another program)' in sensor.health().problems[0].text


def test_emulated_device_numbers_its_frames_at_its_own_rate() -> None:
    """Each frame shows the arm at the time of its number, even if measured more often."""
    config = EmTrackerConfig.model_validate(
        {'port': '/dev/none', 'rate_hz': 40.0, 'base_from': 'sensor', 'bodies': COILS[1:]}
    )
    device = NdiDevice(config, TrackedScene(config, SECTIONS, 0))
    for command in (b'PINIT:0B', b'PENA:0BD', b'TSTART:'):
        assert device._text(command + b'%04X' % crc16(command)) == 'OKAY'
    query = b'TX:0001' + b'%04X' % crc16(b'TX:0001')
    numbers = []
    for exposure in range(80):
        tips = np.tile(np.eye(4), (2, 1, 1))
        tips[0, 0, 3] = 1e-3 * exposure / 2  # 1 mm per period of the device
        device.deliver([PoseMeasurement(exposure / 80.0, tips)], exposure / 80.0 + 0.01)
        reply = device._text(query)
        x_mm = int(reply[4 + 4 * 6 : 4 + 4 * 6 + 7]) / 100.0
        numbers.append(int(reply[-13:-5], 16) - round(40.0 * EPOCH_S))
        assert x_mm == numbers[-1]
    assert sorted(set(numbers)) == list(range(40))


def test_checksum_matches_the_examples_of_the_manual() -> None:
    assert crc16(b'INIT:') == 0xE3A5
    assert crc16(b'OKAY') == 0xA896


def test_emulated_base_calibration_errs_by_its_stated_covariance(tmp_path: Path) -> None:
    calibration = BaseCalibration(X_RB, np.diag([1e-6] * 3 + [4e-6] * 3), 1e-3)
    write_base(tmp_path / 'base.yaml', calibration)
    config = EmTrackerConfig.model_validate(
        {
            'port': '/dev/none',
            'rate_hz': RATE_HZ,
            'bodies': COILS[-1:],
            'base_from': 'calibration',
            'base_calibration': str(tmp_path / 'base.yaml'),
        }
    )
    off = []
    for seed in range(40):
        error = inverse_pose(X_RB) @ TrackedScene(config, SECTIONS, seed).frame
        off.append([*error[:3, 3], *log_so3(error[:3, :3])])
    spread = np.sqrt(np.mean(np.square(off), axis=0))
    assert np.all((spread[:3] > 0.6e-3) & (spread[:3] < 1.5e-3))
    assert np.all((spread[3:] > 1.2e-3) & (spread[3:] < 3e-3))
    missing = config.model_copy(update={'base_calibration': str(tmp_path / 'none.yaml')})
    with pytest.raises(EmulationError, match=r'none\.yaml'):
        TrackedScene(missing, SECTIONS, 0)


def test_simulated_tracker_has_the_calibration_error_of_the_emulated_one() -> None:
    """The driver and the simulated sensor of `softarm compare` measure the same coil pose."""
    rig = load_rig('pam_arm')
    config = sensor_config(rig, 'em_tracker')
    tip = pose(exp_so3([0.3, -0.2, 0.1]), [0.2, -0.1, 0.9])
    scene = TrackedScene(config, rig.section_names, 0)
    seen = scene.passing([PoseMeasurement(0.0, tip[None])], 0.01)[0].bodies['0A']
    read = inverse_pose(read_base(config.base_calibration).pose) @ seen
    sensor = seeing_alike(rig, 0).plant.mocap
    frame = pose(exp_so3(np.radians(sensor.frame_turn_deg)), np.array(sensor.frame_shift_m))
    np.testing.assert_allclose(frame @ tip, read, atol=1e-7)
    assert np.linalg.norm(read[:3, 3] - tip[:3, 3]) > 5e-4
