"""The module that compiles kernels before nodes start, run as `make kernels` does."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ('arguments', 'status', 'said'),
    [
        (['cable_arm_single'], 0, 'cable_arm_single is prepared, after'),
        (['cable_arm_singel'], 2, "did you mean 'cable_arm_single'"),
    ],
)
def test_prepare_kernels_prepares_a_rig_or_reports_an_unknown_name(arguments, status, said):
    done = subprocess.run(
        [sys.executable, '-m', 'softarm_ros.nodes.prepare_kernels', *arguments],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == status
    assert said in done.stdout + done.stderr
