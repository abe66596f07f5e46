"""Firmware, driver and document agree on codes, sizes and limits."""

import re

import pytest
from firmware_made import FIRMWARE

from softarm_ros.drivers import frames, messages
from softarm_ros.drivers.messages import Cause, Kind, Result, State, Type

HEADER = (FIRMWARE / 'core' / 'protocol.h').read_text()
DOCUMENT = (FIRMWARE.parent / 'docs' / 'protocol.md').read_text('utf-8')
IN_C = {name: int(value, 0) for name, value in re.findall(r'SA_(\w+) = (\w+)', HEADER)}
DEFINED = {
    name: int(value, 0)
    for name, value in re.findall(
        r'#define SA_(\w+) (\d+)u', HEADER + (FIRMWARE / 'core/frame.h').read_text()
    )
}


@pytest.mark.parametrize(
    ('codes', 'prefix'), [(Type, ''), (Kind, 'KIND_'), (State, 'STATE_'), (Cause, 'CAUSE_')]
)
def test_firmware_and_driver_have_the_same_codes(codes, prefix):
    assert {code.name: IN_C[prefix + code.name] for code in codes} == {
        code.name: code.value for code in codes
    }


def test_firmware_and_driver_have_the_same_results():
    in_c = {name[6:]: value for name, value in IN_C.items() if name.startswith('ERROR_')}
    assert {**in_c, 'OK': IN_C['OK']} == {code.name: code.value for code in Result}


def test_firmware_and_driver_have_the_same_sizes():
    assert DEFINED['MOTORS'] == messages.MOTORS
    assert DEFINED['VALVES'] == messages.VALVES
    assert DEFINED['PROTOCOL_VERSION'] == messages.PROTOCOL_VERSION
    assert DEFINED['WATCHDOG_US'] == round(1e6 * messages.WATCHDOG_S)
    assert DEFINED['MAX_PAYLOAD'] == frames.MAX_PAYLOAD
    assert DEFINED['FRAME_OVERHEAD'] == frames.OVERHEAD
    ramp = (FIRMWARE / 'core' / 'ramp.h').read_text()
    valves = (FIRMWARE / 'core' / 'valves.h').read_text()
    assert f'SA_GO_ON 0x{messages.GO_ON:04X}u' in valves
    assert f'SA_MAX_BRAKING_MS {round(1e3 * messages.MAX_BRAKING_S)}u' in ramp


def test_protocol_document_lists_every_frame_and_state():
    rows = re.findall(r'^\| 0x(\w\w) \| (\w+)', DOCUMENT, re.MULTILINE)
    assert {(int(code, 16), name) for code, name in rows} == {(t.value, t.name) for t in Type}
    states = dict(re.findall(r'^\| (\d) \| ([A-Z]+) \|', DOCUMENT, re.MULTILINE))
    assert states == {str(state.value): state.name for state in State}
