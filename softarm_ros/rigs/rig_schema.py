"""The fields that a rig file may have by the parts it names, and checks of the valid ones."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Literal

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.json_schema import models_json_schema

from softarm_ros.geometry.configs import ConfigBlock
from softarm_ros.geometry.parts import Part
from softarm_ros.rigs.checks import find_inconsistencies
from softarm_ros.rigs.errors import Problem
from softarm_ros.rigs.expectation import Schema, SchemaTree
from softarm_ros.rigs.rig_parts import (
    DEFAULT_ARM,
    arm_part,
    body_part,
    checks_of,
    combination_problems,
    device_parts,
    devices_of,
    drives_of,
    plant_of,
    sensor_part,
)
from softarm_ros.rigs.schema import Rig
from softarm_ros.rigs.yaml_document import YamlDocument


class RigSchema:
    """Says of a rig file, for its errors, what stands in it: see `validation.Described`."""

    def tree(self, document: YamlDocument) -> SchemaTree:
        """Return the fields of the rig, and of the parts that the document names."""
        try:
            arm = arm_part(document.data.get('kind', DEFAULT_ARM))
        except ValidationError:
            return SchemaTree(Rig.model_json_schema())
        body, sensor = _body(arm, document), _sensor(document)
        return _tree(arm, body, sensor, _devices(arm, document))

    def between(self, document: YamlDocument, wrong: set[str | int]) -> list[Problem]:
        """Return the problems between the top-level fields that are valid by themselves."""
        try:
            arm = arm_part(document.data.get('kind', DEFAULT_ARM))
        except ValidationError:
            return []
        fields: dict[str, Any] = {}
        for config in (Rig, arm.config):
            for name, field in config.model_fields.items():
                if name in wrong or name == 'arm':
                    continue
                if name not in document.data:
                    fields[name] = field.get_default(call_default_factory=True)
                elif name not in ('plant', 'devices'):
                    annotation: Any = field.annotation
                    adapter: TypeAdapter[Any] = TypeAdapter(annotation)
                    fields[name] = adapter.validate_python(document.data[name], strict=True)
        plant, devices = document.data.get('plant'), document.data.get('devices')
        if 'plant' not in wrong and plant is not None:
            fields['plant'] = plant_of(arm, plant, True)
        if 'devices' not in wrong and devices is not None:
            fields['devices'] = devices_of(arm, devices, True)
        checks = checks_of(arm, fields.get('plant'), fields.get('devices'))
        found = find_inconsistencies(SimpleNamespace(**fields), checks, fields)
        parts = combination_problems(arm, fields.get('plant'), fields.get('devices'))
        return [*found, *parts]


def _body(arm: Part, document: YamlDocument) -> type[ConfigBlock] | None:
    plant = document.value_at(('plant',))
    try:
        return body_part(arm, plant.get('kind') if isinstance(plant, dict) else None).config
    except ValidationError:
        return None


def _sensor(document: YamlDocument) -> type[ConfigBlock] | None:
    try:
        return sensor_part(document.value_at(('plant', 'mocap', 'kind'))).config
    except ValidationError:
        return None


def _devices(arm: Part, document: YamlDocument) -> dict[str, type[ConfigBlock]]:
    devices = document.value_at(('devices',))
    try:
        if isinstance(devices, dict):
            return device_parts(arm, devices).classes
    except ValidationError:
        pass
    return drives_of(arm)


def _tree(
    arm: Part,
    body: type[ConfigBlock] | None,
    sensor: type[ConfigBlock] | None,
    devices: dict[str, type[ConfigBlock]],
) -> SchemaTree:
    configs: list[type[ConfigBlock]] = [Rig, arm.config, *devices.values()]
    configs += [config for config in (body, sensor) if config is not None]
    asked: list[tuple[type[BaseModel], Literal['validation']]]
    asked = [(config, 'validation') for config in dict.fromkeys(configs)]
    found, whole = models_json_schema(asked)
    definitions: dict[str, Schema] = whole['$defs']

    def of(config: type[ConfigBlock]) -> Schema:
        return found[(config, 'validation')]

    tree = SchemaTree({'$defs': definitions})
    rig, own = tree.resolve(of(Rig)), tree.resolve(of(arm.config))
    fields = {name: field for name, field in rig['properties'].items() if name != 'arm'}
    if body is not None and sensor is not None:
        tree.resolve(of(body))['properties']['mocap'] = of(sensor)
    if body is not None:
        fields['plant'] = {**fields['plant'], 'anyOf': [of(body), {'type': 'null'}]}
    blocks = {'type': 'object', 'properties': {name: of(c) for name, c in devices.items()}}
    fields['devices'] = {**fields['devices'], 'anyOf': [blocks, {'type': 'null'}]}
    required = [name for name in (*rig['required'], *own.get('required', ())) if name != 'arm']
    return SchemaTree(
        {
            'type': 'object',
            'properties': {**fields, **own['properties']},
            'required': required,
            '$defs': definitions,
        }
    )
