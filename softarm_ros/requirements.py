"""Which Python packages are needed, and what to type when one is missing. Imports none of them."""

from __future__ import annotations

from importlib.util import find_spec

# Module: its package on PyPI. What the package itself needs, and what only some runs do.
CORE = {
    'numpy': 'numpy',
    'scipy': 'scipy',
    'numba': 'numba',
    'daqp': 'daqp',
    'ruckig': 'ruckig',
    'pydantic': 'pydantic',
    'ruamel.yaml': 'ruamel.yaml',
    'typer': 'typer',
    'rich': 'rich',
    'matplotlib': 'matplotlib',
}
DEVICES = {
    'serial': 'pyserial',
    'cobs': 'cobs',
    'fastcrc': 'fastcrc',
    'pymodbus': 'pymodbus',
    'nidaqmx': 'nidaqmx[grpc]',
}
BAG = {'rosbags': 'rosbags'}


def install_line() -> str:
    """Return the one line that installs everything a rig may need."""
    packages = [*CORE.values(), *DEVICES.values(), *BAG.values()]
    return 'pip install ' + ' '.join(f"'{p}'" if '[' in p else p for p in packages)


def missing_package(error: ModuleNotFoundError) -> str:
    """Return the one line that says what to do about a module that is not there."""
    name = error.name or str(error)
    if name.split('.')[0] == 'softarm_ros':
        raise error  # ours to mend, not the user's
    if name.split('.')[0] == 'rclpy' or name.split('.')[0].endswith(('_msgs', '_srvs')):
        return f'ROS 2 is missing ({error}): source it, or pip install "softarm_ros[ros]"'
    return f'a Python package is missing ({error}): {install_line()}'


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
