"""The JSON Schemas of configuration files accept what the readers accept, and say what they refuse."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from saltern.kit.config.master import MasterOptions
from saltern.kit.config.minion_options import MinionOptions
from saltern.kit.config.schemas import schemas
from saltern.kit.config.stock_options import without_effect

SCHEMAS = schemas()


def faults(name: str, text: str) -> list[str]:
    """Paths of the values that a schema refuses."""
    found = jsonschema.Draft7Validator(SCHEMAS[name]).iter_errors(yaml.safe_load(text))
    return sorted({".".join(str(each) for each in error.absolute_path) for error in found})


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_each_is_a_schema_and_plain_json(name: str) -> None:
    jsonschema.Draft7Validator.check_schema(SCHEMAS[name])
    assert json.loads(json.dumps(SCHEMAS[name])) == SCHEMAS[name]


@pytest.mark.parametrize(("name", "kind"), [("master.json", MasterOptions), ("minion.json", MinionOptions)])
def test_every_option_is_described_and_takes_its_default(name: str, kind: Any) -> None:
    properties = SCHEMAS[name]["properties"]
    options = {item.name: item.metadata["doc"] for item in dataclasses.fields(kind)}
    assert {option: properties[option]["description"] for option in options} == options
    defaults = {option: getattr(kind(), option) for option in options}
    assert faults(name, yaml.safe_dump(json.loads(json.dumps(defaults)))) == []


def test_what_has_no_effect_says_so() -> None:
    properties = SCHEMAS["minion.json"]["properties"]
    names = [name for name in without_effect(minion=True) if "*" not in name]
    assert names
    described = [properties[name] for name in names if "deprecated" in properties[name]]
    assert described
    assert all(each["description"].startswith("Has no effect") for each in described)


@pytest.mark.parametrize(
    ("name", "text", "refused"),
    [
        ("minion.json", "", []),
        ("minion.json", "master: salt\nid: web1\n", []),
        ("minion.json", "master: [a, b]\n", []),
        ("minion.json", "master_port: '4506'\nmaster_port_of_mine: x\n", []),
        ("minion.json", "master_port: forty\n", ["master_port"]),
        ("minion.json", "file_roots:\n  base: [/srv/salt]\n", []),
        ("minion.json", "file_roots: [/srv/salt]\n", ["file_roots"]),
        ("minion.json", "test: maybe\n", ["test"]),
        ("minion.json", "test: 'Yes'\n", []),
        ("master.json", "- a\n", [""]),
        ("top.json", "base:\n  '*': [web]\n  'G@os:Debian':\n    - match: compound\n    - db\n", []),
        ("top.json", "base:\n  '*': web\n", ["base.*"]),
        ("top.json", "base:\n  '*':\n    - match: regex\n", ["base.*.0"]),
        ("top.json", "base: [web]\n", ["base"]),
        ("top.json", "include: [other]\nbase:\n  a:\n    - subfilter:\n        'G@os:x': [b]\n", []),
    ],
)
def test_files(name: str, text: str, refused: list[str]) -> None:
    assert faults(name, text) == refused


@pytest.mark.parametrize("kind", ["master", "minion"])
def test_every_documented_value_of_stock_salt_is_accepted(kind: str) -> None:
    stock = yaml.safe_load(Path(__file__).with_name("stock_values.yaml").read_text("utf-8"))[kind]
    assert len(stock) > 100
    assert [entry for entry in stock if faults(f"{kind}.json", yaml.safe_dump(entry))] == []


def test_the_examples_are_accepted() -> None:
    root = Path(__file__).parents[4] / "examples"
    tops = [path for path in root.rglob("top.sls") if "{" not in path.read_text()]
    assert tops
    assert {
        str(path): faults("top.json", path.read_text()) for path in tops if faults("top.json", path.read_text())
    } == {}
