"""
Whole graphs of arms with emulated devices: checks that they track and that faults stop them.

The tests of the drivers check every fault of a device, and how soon it is noticed, in simulated
time. Here, a fault must reach /diagnostics and stop the arm, and nothing may move again without a
request. Limits on the lateness of nodes are wide; `make soak` tests the timing of a computer.
"""

import re
from dataclasses import dataclass

import numpy as np
import pytest
from node_bench import Bench, emulated_plan, first_lap

from softarm_ros.emulation.firmware_build import FirmwareBuildError, built
from softarm_ros.rigs.loader import load_rig
from softarm_ros.rigs.rig_files import find_rig
from softarm_ros.runtime.direct import run_direct
from softarm_ros.runtime.warm_up import prepare

# Limit of the mean error, in units of the largest simulated one, far below that of wrong wiring.
# The bar of 1.2 is that of `softarm compare`: here, pauses of a slow computer count too.
ALIKE = 2.0
# Each node reports a change at once, and everything once a second: a busy computer may lose the
# first message. Tests in simulated time check the exact delay.
REPORTED_S = 2.0
PATIENT = (
    'supervisor.heartbeat_timeout_s=1.0',
    'supervisor.feedback_timeout_s=1.0',
    'supervisor.feedback_watch.max_age_s=1.0',
    'supervisor.state_timeout_s=1.0',
    'supervisor.command_timeout_s=0.5',
    'supervisor.permit_timeout_s=0.5',
)
PATIENT_DAQ = ('drives.daq.call_timeout_s=0.5', 'drives.daq.read_margin_s=0.3')


@dataclass(frozen=True)
class Case:
    """
    An arm, a path, settings of its devices, and the number of simulated runs to compare with.

    Without `cameras`, simulated motion capture measures the arm, as in the simulated runs: drawing
    camera images takes a whole core, and the calibration leaves errors.
    """

    rig: str
    trajectory: str
    board: str | None = None
    settings: tuple[str, ...] = ()
    seeds: int = 1
    cameras: bool = True


def arm_of(case):
    """Return a fixture with the running graph of a case, at rest, homed and ready."""

    @pytest.fixture(scope='module')
    def arm(tmp_path_factory):
        if case.board is not None:
            try:
                built(case.board)
            except FirmwareBuildError as error:
                pytest.skip(str(error))
        folder = tmp_path_factory.mktemp(case.rig)
        file = case.rig if case.cameras else without_cameras(case.rig, folder)
        rig = load_rig(file, [*PATIENT, *case.settings])
        prepare(rig)
        path = folder / 'path.yaml'
        path.write_text(case.trajectory)
        seeds = range(case.seeds)
        with Bench(rig, emulated_plan(rig, path)) as running:
            # Simulated while the graph starts: its nodes have priority, if permitted.
            runs = [run_direct(rig, str(path), laps=1, seed=seed).error().mean for seed in seeds]
            running.rig, running.simulated = rig, max(runs)
            yield running

    return arm


def without_cameras(name, folder):
    """Write a copy of a rig file without its stereo cameras; return its path."""
    text = find_rig(name).read_text()
    less = re.sub(r'^  stereo_cameras:.*\n(?:(?: {3,}.*| *#.*)?\n)*', '', text, flags=re.MULTILINE)
    assert less != text, name
    copy = folder / f'{name}.yaml'
    copy.write_text(less)
    return copy


def assert_tracks(arm):
    """Check that the mean error of a lap is close to that of the simulated arm."""
    emulated = first_lap(arm, arm.rig)
    simulated = arm.simulated
    print(f'{arm.rig.name}: simulated {1e3 * simulated:.2f}, emulated {1e3 * emulated:.2f} mm')
    assert emulated <= ALIKE * simulated
    # This process did not listen during the lap: wait for the next heartbeat of every node.
    nodes = set(arm.health)
    arm.health.clear()
    arm.until(lambda: nodes <= set(arm.health), 5.0, f'heartbeats of {", ".join(sorted(nodes))}')


def assert_reported(arm, began, text, *sources):
    """Check that each source reports a text on /diagnostics in time."""
    for source in sources:

        def told(source=source):
            return [at for at, message in arm.reasons(began, source) if text in message]

        arm.until(told, 5.0, f'{text} on /diagnostics by {source}')
        print(f'{text}: {source} after {1e3 * min(told()):.0f} ms')
        assert min(told()) <= REPORTED_S
    assert arm.state == 'fault'


def stand_by(arm, driver):
    """
    Reset a driver that has stopped because the computer was busy; wait until it is ready.

    A ready driver is not reset: a reset in motion rightly stops the arm.
    """
    arm.health.pop(driver, None)
    arm.until(lambda: driver in arm.health, 5.0, f'word of {driver}')
    if arm.values(driver)['ready'] != 'true':
        assert arm.call(f'{driver}/reset').success
        arm.until(lambda: arm.values(driver)['ready'] == 'true', 5.0, f'{driver} ready')


def truth(arm, name, separator=None):
    return np.array([float(v) for v in arm.values('emulator')[name].split(separator)])


def heard_after(arm, node, at):
    """Wait for a heartbeat of a node after an instant (ROS time [s])."""
    arm.spin(max(at - arm.now_s(), 0.0))
    arm.health.pop(node, None)
    arm.until(lambda: node in arm.health, 5.0, f'word of {node}')
