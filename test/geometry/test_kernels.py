"""The one decorator of compiled functions."""

import numpy as np

from softarm_ros.geometry.kernels import kernel


@kernel
def scaled(values, times, negative):
    """Return the sum of values, `times` over, maybe negative."""
    total = 0.0
    for value in values:
        total += times * value
    return -total if negative else total


@kernel
def both(values, times, negative):
    """Return what calls with constants and with variables give."""
    return scaled(values, 2, True) + scaled(values, 3, False) + scaled(values, times, negative)


def test_constants_in_calls_do_not_compile_a_kernel_again():
    assert both(np.ones(4), 5, False) == -8.0 + 12.0 + 20.0
    assert len(scaled.signatures) == len(both.signatures) == 1
