"""DDS settings, tested in separate processes: the middleware reads its settings once."""

import itertools
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip('rclpy', reason='needs ROS 2 (rclpy)')

pytestmark = [
    pytest.mark.ros,
    pytest.mark.skipif(not sys.platform.startswith('linux'), reason='threads in /proc'),
]
PROGRAM = """
import pathlib, rclpy
from softarm_ros.nodes.qos import set_up_dds
{set_up}
rclpy.init()
node = rclpy.create_node('alone')
print(*(path.read_text().strip() for path in pathlib.Path('/proc/self/task').glob('*/comm')))
node.destroy_node()
rclpy.try_shutdown()
"""

PEER = """
      </discovery_config>
      <initialPeersList>
        <locator><udpv4><address>127.0.0.1</address><port>{port}</port></udpv4></locator>
      </initialPeersList>
"""


def threads(set_up, **profile):
    settings = {key: value for key, value in os.environ.items() if 'PROFILES_FILE' not in key}
    done = subprocess.run(
        [sys.executable, '-c', PROGRAM.format(set_up=set_up)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env={**settings, **profile},
    )
    return done.stdout.split()


def test_nodes_run_without_the_type_lookup_service():
    usual = threads('')
    if not any(name.startswith('dds.tls') for name in usual):
        pytest.skip('a middleware that has no service for types')
    ours = threads('set_up_dds()')
    assert any(name.startswith('dds.udp') for name in ours)
    assert not any(name.startswith('dds.tls') for name in ours)


def test_dds_profile_of_the_user_is_kept(tmp_path):
    mine = tmp_path / 'mine.xml'
    mine.write_text('<profiles xmlns="http://www.eprosima.com"/>')
    for variable in ('FASTDDS_DEFAULT_PROFILES_FILE', 'FASTRTPS_DEFAULT_PROFILES_FILE'):
        show = f"set_up_dds(); import os; print('profile=' + os.environ['{variable}'])"
        assert f'profile={mine}' in threads(show, **{variable: str(mine)})


def test_participant_repeats_its_announcement_within_one_and_a_half_seconds(tmp_path):
    """A participant that joins misses the answer to its first announcement half the time."""
    text = (Path(__file__).parents[2] / 'config/fastdds/nodes.xml').read_text()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
        peer.bind(('127.0.0.1', 0))
        peer.settimeout(20.0)
        mine = tmp_path / 'mine.xml'
        there = PEER.format(port=peer.getsockname()[1])
        mine.write_text(text.replace('</discovery_config>', there, 1))
        program = PROGRAM.format(set_up='').replace('print(', 'input(); print(')
        with subprocess.Popen(
            [sys.executable, '-c', program],
            env={**os.environ, 'FASTDDS_DEFAULT_PROFILES_FILE': str(mine)},
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
        ) as joined:
            heard = []
            for _ in range(8):  # the first six come within half a second in any case
                peer.recv(65536)
                heard.append(time.monotonic())
            joined.communicate(b'\n', timeout=60)
    assert max(late - early for early, late in itertools.pairwise(heard)) < 1.5
