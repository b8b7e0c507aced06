"""From a model to its schema, in the part of OpenAPI that Kubernetes calls structural.

Optional members are simply not required: null counts as absent, as it does in a cluster.
"""

from functools import cache
from typing import Any, Final

from msgspec import inspect

Schema = dict[str, Any]

_RE_END: Final = r"\Z"


@cache
def schema_of(model: type) -> Schema:
    """Return the schema of *model*; nobody may change it.

    Raises:
        TypeError: The model uses a type that has no place in a resource.
    """
    return _schema(inspect.type_info(model))


def _schema(described: inspect.Type) -> Schema:
    """Return the schema of a type."""
    if isinstance(described, inspect.Metadata):
        return {**_schema(described.type), **(described.extra_json_schema or {})}
    if isinstance(described, inspect.UnionType):
        (inner,) = [kind for kind in described.types if not isinstance(kind, inspect.NoneType)]
        return _schema(inner)
    maker = _MAKERS.get(type(described))
    if maker is None:
        raise TypeError(f"a resource cannot hold {described}")
    made: Schema = maker(described)
    return made


def _object(described: inspect.StructType) -> Schema:
    fields = described.fields
    schema: Schema = {"type": "object", "description": _first_line(described.cls)}
    required = [field.encode_name for field in fields if field.required]
    if required:
        schema["required"] = required
    schema["properties"] = {field.encode_name: _schema(field.type) for field in fields}
    schema["additionalProperties"] = False
    return schema


def _mapping(described: inspect.DictType) -> Schema:
    return {"type": "object", "additionalProperties": _schema(described.value_type)}


def _list(described: inspect.ListType) -> Schema:
    return {
        "type": "array",
        "items": _schema(described.item_type),
        **_given(minItems=described.min_length or None, maxItems=described.max_length),
    }


def _text(described: inspect.StrType) -> Schema:
    pattern = described.pattern
    return {
        "type": "string",
        **_given(
            minLength=described.min_length,
            maxLength=described.max_length,
            pattern=pattern and pattern.removesuffix(_RE_END) + "$" * pattern.endswith(_RE_END),
        ),
    }


def _integer(described: inspect.IntType) -> Schema:
    return {"type": "integer", **_given(minimum=described.ge, maximum=described.le)}


def _number(described: inspect.FloatType) -> Schema:
    return {"type": "number", **_given(minimum=described.ge, maximum=described.le)}


def _flag(_described: inspect.BoolType) -> Schema:
    return {"type": "boolean"}


def _choice(described: inspect.LiteralType) -> Schema:
    return {"type": "string", "enum": list(described.values)}


def _anything(_described: inspect.AnyType) -> Schema:
    return {}


def _given(**limits: Any) -> Schema:  # noqa: ANN401 - texts and numbers
    return {name: limit for name, limit in limits.items() if limit is not None}


def _first_line(documented: type) -> str:
    return (documented.__doc__ or "").strip().splitlines()[0]


_MAKERS: Final[dict[type, Any]] = {
    inspect.StructType: _object,
    inspect.DictType: _mapping,
    inspect.ListType: _list,
    inspect.StrType: _text,
    inspect.IntType: _integer,
    inspect.FloatType: _number,
    inspect.BoolType: _flag,
    inspect.LiteralType: _choice,
    inspect.AnyType: _anything,
}
