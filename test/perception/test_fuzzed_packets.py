"""Garbled packets crash nothing, and what no device measures is no pose; `make fuzz` goes on."""

from __future__ import annotations

import importlib

import pytest
from fuzz_cases import CASES
from fuzz_packets import fuzz

LIBRARY = {'natnet': 'natnet', 'qtm': 'qtm_rt', 'vrpn': 'struct', 'ndi': 'json'}


@pytest.mark.parametrize('name', CASES)
def test_garbled_packets_are_refused_or_hold_what_can_be(name: str) -> None:
    try:
        importlib.import_module(LIBRARY[name])
    except ImportError:
        pytest.skip(f"needs {LIBRARY[name]}: pip install 'softarm_ros[sensing]'")
    packets, read = CASES[name]()
    made = fuzz(packets, read, 5000, seed=1)
    assert made['refused'] > 2500
    # Not all is refused: the mutations reach behind the checks of length.
    assert made['frame'] > 10
