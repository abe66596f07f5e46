"""Every key and value of a shipped rig file: left out, misspelt, of the wrong kind."""

import copy
from pathlib import Path

import pytest
from pydantic.fields import FieldInfo

from softarm_ros.plant.config import AS_STATED, MocapConfig
from softarm_ros.rigs.devices import Devices
from softarm_ros.rigs.loader import RigError, load_rig, validate_rig
from softarm_ros.rigs.part_choice import chosen_part
from softarm_ros.rigs.sensors import Sensors
from softarm_ros.rigs.yaml_document import YamlDocument, read_yaml

SHIPPED = Path(__file__).parents[2] / 'config' / 'rigs' / 'cable_arm.yaml'


def plain(value):
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return [plain(v) for v in value] if isinstance(value, tuple) else value


def places(value, path=()):
    """Yield the path of every key of every mapping."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, child in items:
        if isinstance(value, dict):
            yield (*path, key)
        if isinstance(child, (dict, list)):
            yield from places(child, (*path, key))


DATA = plain(read_yaml(SHIPPED).data)
PLACES = list(places(DATA))


def shown(path):
    return ''.join(f'[{p}]' if isinstance(p, int) else f'.{p}' for p in path)[1:]


def tuples(value):
    if isinstance(value, dict):
        return {k: tuples(v) for k, v in value.items()}
    return tuple(tuples(v) for v in value) if isinstance(value, list) else value


def load_data(data):
    document = YamlDocument('rig.yaml', tuples(data))
    return validate_rig(document)


def changed(path, change):
    data = copy.deepcopy(DATA)
    block = data
    for part in path[:-1]:
        block = block[part]
    change(block, path[-1])
    return data


def _fields(block):
    """Return the fields of a block by their names in a file."""
    # A given block of devices or sensors requires its entries.
    if isinstance(block, Devices | Sensors):
        return dict.fromkeys(block.model_extra, FieldInfo())
    fields = {field.alias or name: field for name, field in type(block).model_fields.items()}
    if isinstance(block, MocapConfig):
        fields |= {name: FieldInfo(default=None) for name in AS_STATED}
    return fields


def _member(block, name):
    if isinstance(name, int) or isinstance(block, dict):
        return block[name]
    names = {field.alias: own for own, field in type(block).model_fields.items()}
    return getattr(block, names.get(name, name))


def optional_keys():
    """Return the paths whose removal leaves a valid rig, by the schema."""
    rig = load_rig(SHIPPED)
    controller = chosen_part('controller', rig.tracker)[0].config.model_fields
    found = set()
    for path in PLACES:
        block = rig
        for part in path[:-1]:
            block = _member(block, part)
        if isinstance(block, dict | Sensors):
            found.add(path)  # one of several: no default among trajectories, a rate in each sensor
        elif not (_fields(block) | controller)[path[-1]].is_required():
            found.add(path)
    return found


OPTIONAL = optional_keys()


def test_collected_paths_cover_the_file():
    assert len(PLACES) > 120
    assert 10 < len(OPTIONAL) < len(PLACES) / 2


def test_missing_key_is_reported_unless_the_schema_makes_it_optional():
    for path in PLACES:
        data = changed(path, lambda block, key: block.pop(key))
        if path in OPTIONAL:
            try:
                load_data(data)
            except RigError as error:
                # The default is a valid value; it may contradict another field of this rig.
                assert 'missing' not in str(error) and path[-1] in str(error), shown(path)
            continue
        with pytest.raises(RigError) as error:
            load_data(data)
        assert path[-1] in str(error.value), (shown(path), str(error.value))


def test_every_misspelt_key_is_named_with_its_path():
    for path in PLACES:
        if path[0] == 'trajectories' and len(path) == 2:
            continue  # names of trajectories are free

        def misspell(block, key):
            block[f'{key[:-1]}x{key[-1]}'] = block.pop(key)

        with pytest.raises(RigError) as error:
            load_data(changed(path, misspell))
        wrong = (*path[:-1], f'{path[-1][:-1]}x{path[-1][-1]}')
        named = [p for p in error.value.problems if p.path == wrong]
        # The other allowed fields depend on these.
        discriminator = path == ('arm', 'kind') or (
            path[0] == 'trajectories' and path[-1] == 'type'
        )
        if discriminator:
            assert shown(path) in str(error.value)
            continue
        assert len(named) == 1, (shown(path), str(error.value))
        assert f"did you mean '{path[-1]}'" in named[0].message


def test_every_value_of_the_wrong_kind_is_named_with_its_path():
    for path in PLACES:

        def spoil(block, key):
            block[key] = {'nonsense': 1} if isinstance(block[key], list) else ['nonsense']

        with pytest.raises(RigError) as error:
            load_data(changed(path, spoil))
        assert any(p.path == path for p in error.value.problems), (shown(path), str(error.value))
        message = next(p for p in error.value.problems if p.path == path)
        assert 'expected' in message.message and 'another value' not in message.message
        assert 'nonsense' in (message.value or '')
