"""pneumatic_arm with an emulated DAQ, measured on drawn images by the real camera driver."""

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS 2 (rclpy)')
pytest.importorskip('nidaqmx', reason='nidaqmx is not installed (extra hardware)')
pytest.importorskip('grpc', reason='grpcio is not installed (extra hardware)')
pytest.importorskip('cv2', reason="needs cameras: pip install 'softarm_ros[sensing]'")
from emulated_bench import PATIENT_DAQ, Case, arm_of, stand_by
from node_bench import first_lap

pytestmark = [pytest.mark.ros, pytest.mark.wall_clock, pytest.mark.timeout(300)]
CASE = Case(
    'pneumatic_arm',
    'type: waypoints\npoints: [[0.05, -0.015, 0.195], [0.05, 0.015, 0.195], [0.055, 0.0, 0.195]]\n'
    'closed: true\n'
    'speed: 0.015\nlaps: 100\n',
    # Half of the rig's images: drawing fifty a second takes most of a core.
    settings=(
        'drives.daq.command_timeout_s=0.7',
        'sensors.stereo_cameras.rate_hz=25',
        *PATIENT_DAQ,
    ),
)
pneumatic = arm_of(CASE)


def test_arm_tracks_with_poses_from_drawn_images(pneumatic):
    error = first_lap(pneumatic, pneumatic.rig)
    # Error of the true tip. The calibration of the cameras alone errs by half a millimetre.
    length = np.linalg.norm(pneumatic.rig.model().forward(np.zeros(6)).tip[:3, 3])
    print(f'simulated {1e3 * pneumatic.simulated:.2f}, by cameras {1e3 * error:.2f} mm')
    assert error < 0.01 * length


def tips_of(arm):
    """Collect measured tips (time, x, y, z); return the growing list and its subscription."""
    from geometry_msgs.msg import PoseStamped

    from softarm_ros.nodes.conversions import seconds_of
    from softarm_ros.nodes.qos import MEASUREMENT

    tips = []

    def note(message):
        where = message.pose.position
        tips.append((seconds_of(message.header.stamp), where.x, where.y, where.z))

    return tips, arm.node.create_subscription(PoseStamped, 'tip/pose', note, MEASUREMENT)


def test_unplugged_camera_is_named_and_holds_the_arm(pneumatic):
    """test/perception/stereo/test_stereo_sensor.py tests the other camera faults."""
    said, advice = 'left camera: no image for', 'plug, power and network'
    stand_by(pneumatic, 'daq')
    pneumatic.run()
    tips, listener = tips_of(pneumatic)
    pneumatic.until(lambda: len(tips) > 5, 5.0, 'tips')
    pneumatic.inject('stereo_cameras unplug left')

    def told():
        health = pneumatic.health.get('stereo_cameras')
        return health is not None and said in health.message

    pneumatic.until(told, 8.0, said)
    assert advice in pneumatic.health['stereo_cameras'].message
    pneumatic.until(lambda: pneumatic.state != 'running', 5.0, 'held')
    pneumatic.inject('stereo_cameras mend')
    pneumatic.until(
        lambda: pneumatic.values('stereo_cameras').get('ready') == 'true', 10.0, 'ready again'
    )
    pneumatic.node.destroy_subscription(listener)
    steps = np.diff(tips, axis=0)
    # No measured tip jumps farther than the arm can move.
    assert (np.linalg.norm(steps[:, 1:], axis=1) < 0.005 + 0.1 * steps[:, 0]).all()
