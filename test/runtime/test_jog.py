"""What `Jog` does before it starts a driver; test_ports_and_jog.py tests its moves."""

import subprocess
import sys

PROGRAM = """
from softarm_ros.control.bound_kernels import lies_within
from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.jog import Jog


class Driver:
    def start(self):
        print('loaded' if lies_within.signatures else 'not loaded')


print('loaded' if lies_within.signatures else 'not loaded')
Jog(Driver(), load_rig('hydraulic_arm').actuator_limits(), None, lambda: False).start()
"""


def test_compiled_code_is_loaded_before_the_driver_starts():
    """Otherwise the drives, homed and waiting, hear of no pressure for a third of a second."""
    done = subprocess.run(
        [sys.executable, '-c', PROGRAM], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.splitlines() == ['not loaded', 'loaded']
