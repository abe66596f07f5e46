"""docs/drivers.md names every field of the configurations, with its actual default."""

import re
from pathlib import Path

import pytest

from softarm_ros.drivers.cia402 import ControlWords, StatusWords
from softarm_ros.drivers.daq_config import (
    AnalogInput,
    AnalogOutput,
    DaqConfig,
    DaqHost,
    DigitalOutput,
    ForceSensorConfig,
)
from softarm_ros.drivers.gripper_logic import GripperDriveConfig
from softarm_ros.drivers.modbus_registers import Register
from softarm_ros.drivers.servo_config import ServoAxis, ServoConfig, ServoRegisters, SetupWrite

TEXT = (Path(__file__).parents[2] / 'docs' / 'drivers.md').read_text(encoding='utf-8')
SECTIONS = {
    'Servo drives': (
        ServoConfig,
        ServoAxis,
        ServoRegisters,
        SetupWrite,
        Register,
        ControlWords,
        StatusWords,
    ),
    'NI DAQ': (DaqConfig, DaqHost, AnalogInput, AnalogOutput, DigitalOutput, ForceSensorConfig),
    'Gripper': (GripperDriveConfig,),
}
ROW = re.compile(r'^\| `([a-z_A-Z]+)` \| (-?[\d.]+) \|', re.MULTILINE)


def section(title):
    return TEXT.split(f'\n## {title}', 1)[1].split('\n## ', 1)[0]


@pytest.mark.parametrize(
    ('title', 'block'), [(title, block) for title, blocks in SECTIONS.items() for block in blocks]
)
def test_docs_name_every_configuration_field(title, block):
    text = section(title)
    absent = [
        field.alias or name
        for name, field in block.model_fields.items()
        if f'`{field.alias or name}`' not in text
    ]
    assert absent == []


@pytest.mark.parametrize('title', list(SECTIONS))
def test_documented_defaults_match_the_code(title):
    rows = ROW.findall(section(title))
    assert rows
    for name, printed in rows:
        defaults = [
            field.default
            for block in SECTIONS[title]
            for key, field in block.model_fields.items()
            if (field.alias or key) == name and isinstance(field.default, int | float)
        ]
        assert float(printed) in [float(value) for value in defaults], name
