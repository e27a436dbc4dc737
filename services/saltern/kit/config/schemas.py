"""JSON Schemas of the files ``master`` and ``minion`` and of top files, from the tables of options, for editors.

Only ``docs/reference.py`` imports this module. A schema accepts what the readers of configuration accept: the text "4506"
for 4506, one text for a list. A key that is no option is the user's own, so it is allowed.
"""

from __future__ import annotations

import dataclasses
import re
import types
import typing
from collections.abc import Mapping
from typing import Any

from saltern.kit.config.master import MasterOptions
from saltern.kit.config.minion_options import MinionOptions
from saltern.kit.config.option_fields import Values
from saltern.kit.config.stock_options import without_effect
from statecore.targeting.match import MATCHERS

#: A JSON Schema, or a part of one.
Schema = dict[str, Any]

_DRAFT = "http://json-schema.org/draft-07/schema#"

#: Texts of a flag, in any case. Editors read patterns as JavaScript does, which has no ``(?i)``.
_FLAG = r"^\s*([Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee]|[Yy][Ee][Ss]|[Nn][Oo]|[Oo][Nn]|[Oo][Ff][Ff]|0|1)\s*$"

_PLAIN: Mapping[Any, Schema] = {
    int: {"type": ["integer", "string"], "pattern": r"^\s*-?\d+\s*$"},
    float: {"type": ["number", "string"], "pattern": r"^\s*-?\d+(\.\d*)?\s*$"},
    str: {"type": ["string", "number", "boolean"]},
    bool: {"anyOf": [{"type": ["boolean", "integer"]}, {"type": "string", "pattern": _FLAG}]},
    type(None): {"type": "null"},
    Any: {},
}


def schema_of(hint: Any) -> Schema:
    """Return the schema of a type hint of an option: int, float, str, bool, list, dict, unions of these, Any."""
    if hint in _PLAIN:
        return dict(_PLAIN[hint])
    origin, arms = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return {"anyOf": [schema_of(arm) for arm in arms]}
    if origin is list:
        # One text is a list of the parts between its commas, nothing an empty list.
        return {"anyOf": [{"type": "array", "items": schema_of(arms[0])}, {"type": ["string", "null", "number"]}]}
    if origin is dict:
        return {"anyOf": [{"type": "object", "additionalProperties": schema_of(arms[1])}, {"type": "null"}]}
    raise TypeError(f"an option has the type {hint}, of which there is no schema")


def options_schema(kind: type[Values], title: str, *, minion: bool) -> Schema:
    """Return the schema of a configuration file whose options are the fields of ``kind``."""
    hints = typing.get_type_hints(kind)
    defaults = kind()
    properties: dict[str, Schema] = {}
    for item in sorted(dataclasses.fields(kind), key=lambda each: each.name):  # type: ignore[arg-type]
        own = {"description": item.metadata["doc"], "default": getattr(defaults, item.name)}
        properties[item.name] = {**_or_null(schema_of(hints[item.name])), **own}
    patterns: dict[str, Schema] = {}
    for name, why in without_effect(minion=minion).items():
        described = {"description": f"Has no effect in Saltern: {why}.", "deprecated": True}
        if "*" in name:
            patterns["^" + ".*".join(re.escape(part) for part in name.split("*")) + "$"] = described
        else:
            properties.setdefault(name, described)
    return {
        "$schema": _DRAFT,
        "title": title,
        "type": ["object", "null"],
        "properties": properties,
        "patternProperties": patterns,
    }


def _or_null(schema: Schema) -> Schema:
    """Return the schema of an option, which may be left empty: it then has its default."""
    return {"anyOf": [schema, {"type": "null"}]}


def top_schema() -> Schema:
    """Return the schema of a top file without templates: {saltenv: {target: rows}}."""
    row = {
        "anyOf": [
            {"type": "string", "minLength": 1, "description": "Reference of an SLS"},
            {
                "type": "object",
                "minProperties": 1,
                "properties": {
                    "match": {"enum": sorted(MATCHERS), "description": "type of the target; compound without it"},
                    "delimiter": {"type": "string", "description": "between the keys of a grain's or pillar's path"},
                    "subfilter": {"$ref": "#/definitions/targets"},
                    "order": {"type": ["integer", "string"], "description": "pillar: order of the targets"},
                    "ignore_missing": {"type": "boolean", "description": "pillar: SLS that do not exist are left out"},
                },
            },
        ]
    }
    targets = {"type": "object", "additionalProperties": {"type": "array", "items": row}}
    return {
        "$schema": _DRAFT,
        "title": "Top file",
        "type": ["object", "null"],
        "definitions": {"targets": targets},
        "properties": {"include": {"type": "array", "items": {"type": "string"}, "description": "further top files"}},
        "additionalProperties": {"$ref": "#/definitions/targets"},
    }


def schemas() -> dict[str, Schema]:
    """Map of file name to schema: the files that ``make reference`` writes to docs/reference/schemas/."""
    return {
        "master.json": options_schema(MasterOptions, "Saltern master", minion=False),
        "minion.json": options_schema(MinionOptions, "Saltern minion", minion=True),
        "top.json": top_schema(),
    }
