"""Which Python packages are needed, and what to type when one is missing. Imports none of them."""

from __future__ import annotations

from importlib.util import find_spec

# Module: its package on PyPI. What the package itself needs, and what only some runs do.
CORE = {
    'numpy': 'numpy>=1.26',
    'scipy': 'scipy>=1.11',
    'numba': 'numba>=0.59',
    'daqp': 'daqp>=0.7.2',
    'ruckig': 'ruckig>=0.12',
    'pydantic': 'pydantic>=2.14',
    'ruamel.yaml': 'ruamel.yaml>=0.18',
    'typer': 'typer>=0.16',
    'rich': 'rich>=13',
    'matplotlib': 'matplotlib>=3.7',
    'psutil': 'psutil>=5.9',
}
DEVICES = {
    'serial': 'pyserial>=3.5',
    'cobs': 'cobs>=1.2',
    'fastcrc': 'fastcrc>=0.3',
    'pymodbus': 'pymodbus>=3.16,<4',
    'nidaqmx': 'nidaqmx[grpc]~=1.7',
}
# Each for one kind of sensor: named where it is missed.
SENSING = {
    'cv2': 'opencv-python-headless>=4.10,<6',
    'natnet': 'natnet>=0.3,<0.4',
    'qtm_rt': 'qtm-rt>=3.1,<4',
    'sksurgerynditracker': 'scikit-surgerynditracker>=1.0,<2',
}
BAG = {'rosbags': 'rosbags>=0.11.6', 'mcap': 'mcap>=1.2'}


def install_line() -> str:
    """Return the one line that installs everything a rig may need; versions as setup.py's."""
    packages = [*CORE.values(), *DEVICES.values(), *BAG.values()]
    return 'pip install ' + ' '.join(f"'{package}'" for package in packages)


def missing_package(error: ImportError) -> str:
    """Return the one line that says what to do about a module that is not there or too old."""
    name = (error.name or '').split('.')[0]
    if name in ('', 'softarm_ros'):
        raise error  # a defect of ours, not of the installation
    if name == 'rclpy' or name.endswith(('_msgs', '_srvs', '_interfaces')):
        return f"ROS 2 is missing ({error}): source it, or pip install 'softarm_ros[ros]'"
    return f'a Python package is missing or too old ({error}): {install_line()}'


def require(*, devices: bool, bag: bool) -> None:
    """Raise RuntimeError, saying what to install, if a run would miss a Python package."""
    wanted = [*CORE, *(DEVICES if devices else ()), *(BAG if bag else ())]
    missing = [module for module in wanted if not _installed(module)]
    if missing:
        raise RuntimeError(f'Python packages are missing: {", ".join(missing)}: {install_line()}')


def ros_package_hint(package: str) -> str:
    """Return what to do about a ROS package that is not there."""
    name = package.replace('_', '-')
    return f'{package} is not installed: apt install ros-$ROS_DISTRO-{name}'


def _installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # of its parent
        return False
