"""Describe in words what a field of a file may hold, from the JSON schema."""

from __future__ import annotations

from typing import Any

from softarm_ros.rigs.errors import FieldPath, listed
from softarm_ros.rigs.yaml_document import YamlDocument

Schema = dict[str, Any]

_BOUNDS = (
    ('exclusiveMinimum', '>'),
    ('minimum', '>='),
    ('exclusiveMaximum', '<'),
    ('maximum', '<='),
)
_NAME_WORDS = 'lowercase letters, digits and _, starting with a letter'


class SchemaTree:
    """Walks a JSON schema along the fields of a document."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._definitions: dict[str, Schema] = root.get('$defs', {})

    @property
    def root(self) -> Schema:
        """The schema of the whole document."""
        return self.resolve(self._root)

    def expected(self, path: FieldPath, document: YamlDocument) -> str:
        """Return what is expected at a path, such as 'a number > 0'."""
        return self.words(self._at(path, document))

    def description(self, path: FieldPath, document: YamlDocument) -> str:
        """Return the description of the field at a path, or ''."""
        schema = self._at(path[:-1], document).get('properties', {}).get(path[-1], {})
        return str(schema.get('description', ''))

    def fields(self, path: FieldPath, document: YamlDocument) -> list[str]:
        """Return the field names of the mapping at a path."""
        return list(self._at(path, document).get('properties', {}))

    def choices(self, path: FieldPath, document: YamlDocument) -> list[str]:
        """Return the words allowed at a path, or an empty list if it takes other values."""
        schema = self._at(path, document)
        return [str(c) for c in self._choices(schema)]

    def place(self, loc: FieldPath, document: YamlDocument) -> FieldPath:
        """Return the document path of a pydantic location, which also names union members."""
        schema = self.root
        path: FieldPath = ()
        for part in loc:
            tags = self._tags(schema)
            if part in tags:
                schema = self.resolve({'$ref': tags[part]})
                continue
            schema = self._child(self._member(schema, path, part, document), part)
            path = (*path, part)
        return path

    def tag(self, path: FieldPath, document: YamlDocument) -> str:
        """Return the field that selects the member of the union at a path."""
        return str(self._at(path, document)['discriminator']['propertyName'])

    def resolve(self, schema: Schema) -> Schema:
        """Return a schema without references, and without the null of an optional field."""
        while True:
            # An optional field is a union of null and one other member.
            given = [s for s in schema.get('anyOf', []) if s.get('type') != 'null']
            if '$ref' in schema:
                schema = self._definitions[schema['$ref'].rsplit('/', 1)[-1]]
            elif len(given) == 1:
                schema = given[0]
            else:
                return schema

    def _at(self, path: FieldPath, document: YamlDocument) -> Schema:
        schema = self.root
        for depth, part in enumerate(path):
            schema = self._member(schema, path[:depth], part, document)
            schema = self._child(schema, part)
        return self._member(schema, path, None, document)

    def _child(self, schema: Schema, part: str | int) -> Schema:
        if isinstance(part, int):
            prefix = schema.get('prefixItems', [])
            child = prefix[part] if part < len(prefix) else schema.get('items', {})
        else:
            child = schema.get('properties', {}).get(part)
            if child is None:
                child = schema.get('additionalProperties') or schema.get('patternProperties', {})
                if 'patternProperties' in schema:
                    child = next(iter(schema['patternProperties'].values()))
        return self.resolve(child) if isinstance(child, dict) else {}

    def _member(
        self, schema: Schema, path: FieldPath, part: str | int | None, document: YamlDocument
    ) -> Schema:
        """Return the member of a tagged union that the document selects."""
        mapping = self._tags(schema)
        if not mapping:
            return schema
        name = schema['discriminator']['propertyName']
        if part == name:
            return {'properties': {name: {'enum': list(mapping)}}}
        block = document.value_at(path)
        tag = block.get(name) if isinstance(block, dict) else None
        if isinstance(tag, str) and tag in mapping:
            return self.resolve({'$ref': mapping[tag]})
        return schema

    @staticmethod
    def _tags(schema: Schema) -> dict[str | int, str]:
        mapping: dict[str | int, str] = schema.get('discriminator', {}).get('mapping', {})
        return mapping

    @staticmethod
    def _choices(schema: Schema) -> list[Any]:
        return [schema['const']] if 'const' in schema else list(schema.get('enum', []))

    def words(self, schema: Schema) -> str:
        """Return a description of what a schema allows, such as 'a number > 0'."""
        schema = self.resolve(schema)
        choices = self._choices(schema)
        if choices:
            words = listed(map(str, choices)) if isinstance(choices[0], str) else str(choices[0])
            words = words.lower() if isinstance(choices[0], bool) else words
            return words if len(choices) == 1 else f'one of {words}'
        if 'discriminator' in schema:
            kinds, tag = (
                listed(map(str, self._tags(schema))),
                schema['discriminator']['propertyName'],
            )
            return f'a mapping with {tag!r} one of {kinds}'
        describe = {
            'number': self._number,
            'integer': self._number,
            'string': self._text,
            'array': self._list,
            'object': self._mapping,
        }.get(schema.get('type', ''))
        if describe is not None:
            return describe(schema)
        return {'boolean': 'true or false', 'null': 'nothing'}.get(
            schema.get('type', ''), 'another value'
        )

    @staticmethod
    def _number(schema: Schema) -> str:
        noun = 'a whole number' if schema['type'] == 'integer' else 'a number'
        bounds = [f'{sign} {schema[key]:g}' for key, sign in _BOUNDS if key in schema]
        return ' '.join([noun, ' and '.join(bounds)]).strip()

    @staticmethod
    def _text(schema: Schema) -> str:
        pattern = schema.get('pattern')
        if pattern is None:
            return 'text'
        if pattern == '^[a-z][a-z0-9_]*$':
            return f'a name: {_NAME_WORDS}'
        return f'text that matches {pattern}'

    def _list(self, schema: Schema) -> str:
        if 'prefixItems' in schema:
            items = schema['prefixItems']
            return f'a list of {len(items)}: each {self.words(items[0])}'
        least = schema.get('minItems', 0)
        count = f' with at least {least} item{"s" if least != 1 else ""}' if least else ''
        return f'a list{count}: each {self.words(schema.get("items", {}))}'

    def _mapping(self, schema: Schema) -> str:
        fields = list(schema.get('properties', {}))
        if fields:
            return f'a mapping of the fields {", ".join(fields)}'
        return 'a mapping of names to ' + self.words(self._child(schema, ''))
