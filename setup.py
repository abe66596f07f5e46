"""Packaging for both pip and colcon (ament_python)."""

import sys
from pathlib import Path

from setuptools import find_packages, setup

PACKAGE = 'softarm_ros'
# pip puts the command softarm into bin from its entry point; colcon, which runs this file itself
# and puts entry points into lib/softarm_ros for `ros2 run`, needs one that leads there.
COMMAND = [] if 'setuptools.build_meta' in sys.modules else [('bin', ['bin/softarm'])]


def installed(folder: str, pattern: str) -> tuple[str, list[str]]:
    """Return a data_files entry that puts `folder/pattern` under share/softarm_ros/folder."""
    return f'share/{PACKAGE}/{folder}', sorted(str(p) for p in Path(folder).glob(pattern))


setup(
    name=PACKAGE,
    version='0.1.0',
    description='Real-time control stack for soft continuum arms',
    # colcon build --symlink-install runs this file from its build folder, through a link.
    long_description=(Path(__file__).resolve().parent / 'README.md').read_text(encoding='utf-8'),
    long_description_content_type='text/markdown',
    license='Apache-2.0',
    maintainer='softarm_ros maintainers',
    maintainer_email='maintainers@softarm-ros.dev',
    python_requires='>=3.10,<3.14',
    packages=find_packages(include=[PACKAGE, f'{PACKAGE}.*']),
    package_data={PACKAGE: ['py.typed']},
    data_files=[
        ('share/ament_index/resource_index/packages', [f'resource/{PACKAGE}']),
        (f'share/{PACKAGE}', ['package.xml']),
        *COMMAND,
        installed('launch', '*.launch.py'),
        installed('config/rigs', '*.yaml'),
        installed('config/cameras', '*.yaml'),
        installed('config/fastdds', '*.xml'),
        installed('config/trackers', '*.yaml'),
        installed('config/tasks', '*.yaml'),
        installed('config/trajectories', '*.yaml'),
        installed('config/rviz', '*.rviz'),
        installed('urdf', '*.urdf'),
        installed('udev', '*.rules'),
        # Built on first use by `emulated` rigs; the sketch's link to the core becomes a copy.
        installed('firmware', '[MR]*'),
        *(
            installed(f'firmware/{folder}', '*.*')
            for folder in (
                'core',
                'emulation',
                'protocol',
                'steppers',
                'steppers/src/core',
                'tests',
                'valves',
            )
        ),
    ],
    install_requires=[
        'numpy>=1.26',  # arrays
        'scipy>=1.11',  # splines, root finding in reports and tests
        'numba>=0.59',  # compiled kernels
        'daqp>=0.7.2',  # the tracker's small quadratic programme
        'ruckig>=0.12',  # jerk-limited timing of trajectories
        'pydantic>=2.14',  # validated rig files
        'ruamel.yaml>=0.18',  # YAML with line numbers
        'typer>=0.16',  # command line
        'rich>=13',  # progress bars and tables
        'matplotlib>=3.7',  # report figures
        'psutil>=5.9',  # processor time and memory of a graph's processes
    ],
    extras_require={
        # Real ROS 2 from PyPI; leave it out where a ROS installation is sourced.
        'ros': ['ros-kilted-rclpy', 'ros-rclpy[fastrtps]', 'ros-common-interfaces'],
        # Real devices; the drivers import these only when they are used.
        'hardware': [
            'pyserial>=3.5',  # serial ports: USB, Bluetooth SPP, pseudo-terminals
            'cobs>=1.2',  # framing
            'fastcrc>=0.3',  # CRC-16
            'pymodbus>=3.16,<4',  # servo drives on Modbus TCP, and the emulated ones
            'nidaqmx[grpc]~=1.7',  # NI DAQ, local or remote; its stubs carry the emulated one
        ],
        # Sensors of poses; each is imported when it is used.
        'sensing': [
            'opencv-python-headless>=4.10,<6',  # cameras: boards, markers, sources of images
            'natnet>=0.3,<0.4',  # OptiTrack: decoder of NatNet packets, some of it not documented
            'scikit-surgerynditracker>=1.0,<2',  # NDI trackers on a serial line
            'qtm-rt>=3.1,<4',  # Qualisys: decoder of RT packets
        ],
        'learning': ['scikit-learn>=1.3'],  # ridge regression of what an identified model leaves
        'bag': [
            'rosbags>=0.11.6',  # rosbag2 MCAP files
            'mcap>=1.2',  # files without an index, after a kill
        ],
        'video': ['imageio-ffmpeg>=0.5'],  # brings ffmpeg: MP4 of `softarm render`
        'view': ['viser>=1.1'],  # the arm in a browser
        'test': [
            'pytest>=7.4',
            'pytest-timeout>=2.2',
            'pytest-xdist>=3.7',  # tests on all cores, but for those that time a running arm
            'hypothesis>=6.140',
            'dynamixel-sdk>=4.0',  # the maker's library, whose packets ours must equal
            'import-linter>=2.15',  # the last that runs on Python 3.10
            'motioncapture>=1.1',  # the VRPN project's client, to try the emulated server with
            'mcap-ros2-support>=0.5',  # reads our bags, as others will
            'setuptools>=70.1',  # builds the wheel that a test looks into
        ],
        'docs': [
            'mkdocs-material>=9.5',  # the site
            'mkdocstrings[python]>=0.26',  # its page of the API
        ],
        'browser': ['selenium>=4.20'],  # presses the viewer's buttons in a test
        'lint': ['ruff>=0.6', 'mypy>=1.10'],
    },
    entry_points={
        'console_scripts': [
            'softarm = softarm_ros.cli.__main__:main',
            'tracker_node = softarm_ros.nodes.executables:tracker_node',
            'inverse_kinematics_node = softarm_ros.nodes.executables:inverse_kinematics_node',
            'node_group = softarm_ros.nodes.executables:node_group',
            'outcome_node = softarm_ros.nodes.executables:outcome_node',
            'plant_node = softarm_ros.nodes.executables:plant_node',
            'emulator_node = softarm_ros.nodes.executables:emulator_node',
            'device_node = softarm_ros.nodes.executables:device_node',
            'sensor_node = softarm_ros.nodes.executables:sensor_node',
            'supervisor_node = softarm_ros.nodes.executables:supervisor_node',
            'markers_node = softarm_ros.nodes.executables:markers_node',
            'prepare_kernels = softarm_ros.nodes.executables:prepare_kernels',
            'recorder_node = softarm_ros.nodes.executables:recorder_node',
        ],
    },
    zip_safe=False,
)
