"""Nothing compiles after the warm-up."""

import numpy as np

from softarm_ros.models.cable_driven import cable_equilibrium_kernels, constant_curvature_kernels
from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.warm_up import warm_up


def test_warm_up_leaves_nothing_to_compile():
    rig = load_rig('cable_arm')
    warm_up(rig)
    before = {
        kernel: len(kernel.signatures)
        for module in (cable_equilibrium_kernels, constant_curvature_kernels)
        for kernel in vars(module).values()
        if hasattr(kernel, 'signatures')
    }
    for name in rig.model_names:
        arm = rig.model(name)
        solution = arm.inverse(np.array([0.1, 0.05, 0.15]))
        assert solution.converged
        arm.jacobian(solution.actuation)
        arm.forward(solution.actuation).centerline(20)
    assert {kernel: len(kernel.signatures) for kernel in before} == before
    assert any(count > 0 for count in before.values())
