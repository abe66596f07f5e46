"""docs/rigs.md explains every field and states its default."""

import re
from pathlib import Path

import pytest

from softarm_ros.control.config import FeedbackWatchConfig, SupervisorConfig, TrackerConfig
from softarm_ros.control.controllers.adaptive_rate import AdaptiveRateConfig
from softarm_ros.control.controllers.resolved_rate import ResolvedRateConfig
from softarm_ros.control.pose_topic import PoseTopicConfig
from softarm_ros.control.trajectory_config import (
    CardioidConfig,
    CircleConfig,
    LineConfig,
    SquareConfig,
    WaypointsConfig,
)
from softarm_ros.drivers.dynamixel.config import DynamixelConfig, DynamixelServo
from softarm_ros.drivers.stepper_config import MotorConfig, SteppersConfig
from softarm_ros.geometry.configs import ConfigBlock
from softarm_ros.models.config import BendConfig, SectionConfig
from softarm_ros.plant.config import (
    AS_STATED,
    MocapConfig,
    PlantConfig,
    PlantSectionConfig,
    StepperConfig,
)
from softarm_ros.plant.machine import MachineConfig, SpreadConfig
from softarm_ros.rigs.arms.cable_driven import ActuatorConfig, CableArm
from softarm_ros.rigs.obstacle import ObstacleConfig
from softarm_ros.rigs.recording import MarkerConfig, MountConfig, RecordingConfig
from softarm_ros.rigs.schema import Rig

TEXT = (Path(__file__).parents[2] / 'docs' / 'rigs.md').read_text(encoding='utf-8')
BLOCKS = {
    'The file': Rig,
    'arm': CableArm,
    'arm.sections': SectionConfig,
    'arm.actuators': ActuatorConfig,
    'arm.actuators.bends': BendConfig,
    'sensors.pose_topic': PoseTopicConfig,
    'controller': TrackerConfig,
    'controller, kind resolved_rate': ResolvedRateConfig,
    'controller, kind adaptive_rate': AdaptiveRateConfig,
    'supervisor': SupervisorConfig,
    'supervisor.feedback_watch': FeedbackWatchConfig,
    'drives.steppers': SteppersConfig,
    'drives.steppers.motors': MotorConfig,
    'drives.dynamixel': DynamixelConfig,
    'drives.dynamixel.servos': DynamixelServo,
    'plant': PlantConfig,
    'plant.sections': PlantSectionConfig,
    'plant.stepper': StepperConfig,
    'plant.pose_sensor': MocapConfig,
    'plant.machine': MachineConfig,
    'plant.machine.spreads': SpreadConfig,
    'obstacles': ObstacleConfig,
    'recording': RecordingConfig,
    'recording.markers': MarkerConfig,
    'recording.mount': MountConfig,
}
SHAPES = {
    'waypoints': WaypointsConfig,
    'circle': CircleConfig,
    'line': LineConfig,
    'square': SquareConfig,
    'cardioid': CardioidConfig,
}


def rows(heading):
    """Return the cells of the table under a heading, without its head."""
    body = re.split(rf'^##+ {re.escape(heading)}$', TEXT, maxsplit=1, flags=re.MULTILINE)[1]
    body = re.split(r'^##', body, maxsplit=1, flags=re.MULTILINE)[0]
    lines = [line for line in body.splitlines() if line.startswith('| `')]
    return [[cell.strip() for cell in line.strip('|').split('|')] for line in lines]


def as_text(default):
    if isinstance(default, tuple):
        return '[' + ', '.join(v if isinstance(v, str) else f'{v:g}' for v in default) + ']'
    if isinstance(default, bool):
        return str(default).lower()
    return f'{default:g}' if isinstance(default, (int, float)) else str(default)


@pytest.mark.parametrize('heading', BLOCKS)
def test_docs_explain_every_field_with_its_default(heading):
    table = {name.strip('`'): (default, text) for name, default, text in rows(heading)}
    block = BLOCKS[heading]
    above = {n for b in block.__mro__[1:] if b in BLOCKS.values() for n in b.model_fields}
    fields = {f.alias or n: f for n, f in block.model_fields.items() if n not in above}
    assert sorted(table) == sorted(fields)
    for name, field in fields.items():
        default, text = table[name]
        assert text, name
        if BLOCKS[heading] is MocapConfig and name in AS_STATED:
            assert default == 'as stated', name
        elif field.is_required():
            assert default == '', name
        elif name == 'default_trajectory':
            assert default == 'first'
        elif name == 'medium' and BLOCKS[heading] is PlantConfig:
            assert default == 'that of the rig'
        elif field.default is None:
            assert default == 'none', name
        elif isinstance(field.default, ConfigBlock):
            assert default == 'all defaults', name
        else:
            assert default == as_text(field.default), name


def test_docs_explain_every_field_of_every_trajectory():
    table = {cells[0].strip('`'): cells[1:] for cells in rows('trajectories')}
    explained = {
        shape: {name for name, (of, *_) in table.items() if of == 'all' or shape in of.split(', ')}
        for shape in SHAPES
    }
    for shape, config in SHAPES.items():
        assert explained[shape] | {'closed'} == set(config.model_fields), shape
        for name, field in config.model_fields.items():
            if not field.is_required() and (name != 'closed' or shape == 'waypoints'):
                assert as_text(field.default) in table[name][1], (shape, name)
