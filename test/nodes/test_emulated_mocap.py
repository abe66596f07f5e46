"""cable_arm seen over NatNet: the loop closes over real packets, and faults do not move it."""

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS 2 (rclpy)')
pytest.importorskip('natnet', reason="needs natnet: pip install 'softarm_ros[sensing]'")
from emulated_bench import ALIKE, PATIENT
from node_bench import Bench, emulated_plan, first_lap
from ruamel.yaml import YAML

from softarm_ros.emulation.firmware_build import FirmwareBuildError, built
from softarm_ros.rigs.loader import find_rig, load_rig
from softarm_ros.runtime.direct import run_direct
from softarm_ros.runtime.warm_up import warm_up

pytestmark = [pytest.mark.ros, pytest.mark.wall_clock, pytest.mark.timeout(300)]
CIRCLE = 'type: circle\ncenter: [0.0, 0.0, 0.235]\nradius: 0.03\nspeed: 0.04\nlaps: 100\n'
NATNET = {
    'server': '192.0.2.1',  # of no computer: the emulated one puts its own address there
    'rate_hz': 100.0,
    'timeout_s': 0.5,
    'bodies': [
        {'name': 'base', 'section': 'base'},
        {'name': 'proximal', 'section': 'proximal'},
        {'name': 'tip', 'section': 'distal', 'offset_m': [0.0, 0.0, 0.0]},
    ],
}


@pytest.fixture(scope='module')
def arm(tmp_path_factory):
    """Start the graph of cable_arm with motion capture, at rest and homed."""
    try:
        built('steppers')
    except FirmwareBuildError as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp('mocap')
    data = YAML().load(find_rig('cable_arm').read_text())
    data['sensors'] = {**data.get('sensors', {}), 'natnet': NATNET}
    file = folder / 'seen_arm.yaml'
    with file.open('w') as stream:
        YAML().dump(data, stream)
    path = folder / 'path.yaml'
    path.write_text(CIRCLE)
    rig = load_rig(file, PATIENT)
    warm_up(rig)
    simulated = run_direct(rig, str(path), laps=1, seed=0).error().mean
    with Bench(rig, emulated_plan(rig, path)) as running:
        running.rig, running.simulated = rig, simulated
        yield running


def told(arm, text):
    return text in (arm.health['natnet'].message if 'natnet' in arm.health else '')


def test_the_loop_closes_over_packets_as_it_does_in_simulation(arm):
    emulated = first_lap(arm, arm.rig)
    print(f'simulated {1e3 * arm.simulated:.2f}, emulated {1e3 * emulated:.2f} mm')
    assert emulated <= ALIKE * arm.simulated
    arm.spin(0.3)
    values = arm.values('natnet')
    assert values['ready'] == 'true'
    assert values['seen'] == 'proximal, tip'
    assert values['server'].startswith('Motive (emulated)')
    # From the exposure on: the cameras' 10 ms are known though the two clocks are not the same.
    assert float(values['latency_ms']) > 9.0
    assert abs(float(values['clock_offset_s'])) > 1.0
    # No other node publishes poses.
    assert arm.node.count_publishers(f'/{arm.rig.name}/tip/pose') == 2  # and the bench's own
    assert int(arm.values('emulator')['natnet_clients']) == 1


@pytest.mark.parametrize(
    ('fault', 'said', 'advice'),
    [
        ('flip', 'degrees against the base', 'less symmetric'),
        ('hide', 'tip: not seen', 'markers are hidden'),
        ('second', 'sends NatNet as well', 'end the second Motive'),
        ('die', 'no NatNet server answers', 'start Motive'),
    ],
)
def test_a_fault_is_named_and_the_arm_does_not_follow_it(arm, fault, said, advice):
    arm.call('steppers/reset')  # of what a busy computer made it stop for
    arm.run()
    tips = []
    from geometry_msgs.msg import PoseStamped

    from softarm_ros.nodes.conversions import seconds_of
    from softarm_ros.nodes.qos import MEASUREMENT

    def note(message):
        where = message.pose.position
        tips.append((seconds_of(message.header.stamp), where.x, where.y, where.z))

    listener = arm.node.create_subscription(PoseStamped, 'tip/pose', note, MEASUREMENT)
    arm.spin(0.5)
    arm.inject(f'natnet {fault}')
    arm.until(lambda: told(arm, said), 8.0, said)
    assert advice in arm.health['natnet'].message
    arm.spin(1.5)
    held = arm.state != 'running'
    arm.inject('natnet mend')
    arm.until(lambda: arm.values('natnet').get('ready') == 'true', 10.0, 'ready again')
    arm.spin(0.5)
    arm.node.destroy_subscription(listener)
    # A tip or sections that are not seen for longer than the supervisor waits hold the arm.
    assert held == (fault != 'second')
    steps = np.diff(tips, axis=0)
    next_frame = steps[:, 0] < 0.05  # not those over the time that nothing was seen
    assert np.linalg.norm(steps[next_frame, 1:], axis=1).max() < 0.02
