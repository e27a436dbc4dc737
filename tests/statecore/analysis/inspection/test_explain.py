"""``explain``: a tree in which one ID gets something from everybody, and each of these with its line."""

from __future__ import annotations

from typing import Any

import pytest

from statecore.analysis.inspection.explain import explain
from statecore.model.errors import SlsError

from .conftest import MakeMinion, Minion

FILES = {
    "site.sls": """\
include:
  - base.*
  - .common
extend:
  conf:
    file:
      - mode: '0600'
      - require:
        - test: late
late:
  test.nop:
    - order: last
motd:
  test.nop:
    - require_in:
      - file: conf
lent:
  file.managed:
    - name: /lent
    - group: www
    - use_in:
      - file: conf
all:
  test.nop:
    - require:
      - sls: base.nginx
""",
    "common.sls": """\
defaults:
  file.managed:
    - name: /defaults
    - user: root
    - mode: '0777'
""",
    "base/nginx.sls": """\
conf:
  file.managed:
    - name: /etc/nginx.conf
    - contents: a
    - mode: '0644'
    - use:
      - file: defaults
    - onlyif: 'true'
  test.nop:
    - watch:
      - file: conf
many:
  test.nop:
    - names:
      - one
      - two:
        - size: 2
    - size: 1
gone:
  test.nop: []
exclude:
  - id: gone
""",
}


@pytest.fixture
def site(minion: MakeMinion) -> Minion:
    return minion(FILES)


def told(made: Minion, wanted: str, slses: list[str] | None = None) -> dict[str, Any]:
    """What is explained, with short paths."""

    def short(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: short(each) for key, each in value.items()}
        if isinstance(value, list):
            return [short(each) for each in value]
        return made.short(value) if isinstance(value, str) else value

    found: dict[str, Any] = short(explain(made.run_parts(), slses or ["site"], wanted))
    return found


def test_where_it_comes_from(site: Minion) -> None:
    found = told(site, "conf")
    assert (found["sls"], found["at"]) == ("base.nginx", "base/nginx.sls:1")
    assert found["included_through"] == [{"sls": "site", "includes": "base.nginx", "at": "site.sls:2"}]
    assert found["extended_by"] == [{"sls": "site", "at": "site.sls:5"}]
    assert [state["function"] for state in found["states"]] == ["file.managed", "test.nop"]


def test_the_top_file_that_names_it(site: Minion) -> None:
    site.write({"top.sls": "base:\n  'db*': [site]\n  'os:Debian':\n    - match: grain\n    - si*\n"})
    found = explain(site.run_parts(), None, "conf")["named_by"]
    assert found | {"at": site.short(found["at"])} == {"target": "os:Debian", "sls": "site", "at": "top.sls:5"}
    assert "named_by" not in told(site, "conf")


def test_what_is_not_to_be_logged_is_masked(minion: MakeMinion) -> None:
    made = minion({"a.sls": "x: {cmd.run: [{name: whoami}, {stdin: hunter2}, {no_log: True}]}\n"})
    assert "hunter2" not in str(told(made, "x", ["a"]))


def test_its_place(site: Minion) -> None:
    conf, _ = told(site, "conf")["states"]
    assert (conf["at"], conf["position"], conf["of"], conf["order"]) == ("base/nginx.sls:2", 3, 9, 10000)
    (late,) = told(site, "late")["states"]
    assert conf["why"] == [
        "its order is 10000: states without one are counted as they are declared",
        "it comes later (alone it would be 1.): it waits for test.nop late (site.sls:11), whose order is"
        f" {late['order']}",
    ]
    assert late["why"] == [
        f"order last (site.sls:12) counts as {late['order']}",
        "it comes earlier (alone it would be 9.): file.managed conf (base/nginx.sls:2) waits for it, whose order is 10000",
    ]
    (defaults,) = told(site, "defaults")["states"]
    assert defaults["why"][1:] == ["others were moved past it (alone it would be 5.)"]


def test_its_requisites(site: Minion) -> None:
    conf, nop = told(site, "conf")["states"]
    assert [(one["kind"], one["on"], one["at"], one["by"]) for one in conf["requisites"]] == [
        ("require", "test: late", "site.sls:8", "extend in site"),
        ("require", "test: motd", "site.sls:15", "require_in of motd"),
    ]
    assert [each["id"] for one in conf["requisites"] for each in one["states"]] == ["late", "motd"]
    assert [(one["kind"], one["on"], one["at"], one["by"]) for one in nop["requisites"]] == [
        ("watch", "file: conf", "base/nginx.sls:10", "")
    ]
    assert [(one["kind"], one["id"], one["function"]) for one in conf["required_by"]] == [
        ("watch", "conf", "test.nop"),
        ("require", "all", "test.nop"),
    ]
    (all_,) = told(site, "all")["states"]
    assert all_["requisites"][0]["on"] == "sls: base.nginx"
    assert len(all_["requisites"][0]["states"]) == 4


def test_its_arguments(site: Minion) -> None:
    conf = told(site, "conf")["states"][0]
    found = {
        one["name"]: (
            one["value"],
            one["at"],
            one["by"],
            [(old["value"], old["at"]) for old in one.get("instead_of", [])],
        )
        for one in conf["arguments"]
    }
    assert found == {
        "name": ("/etc/nginx.conf", "base/nginx.sls:3", "", []),
        "contents": ("a", "base/nginx.sls:4", "", []),
        "mode": ("0600", "site.sls:7", "extend in site", [("0644", "base/nginx.sls:5")]),
        "onlyif": ("true", "base/nginx.sls:8", "", []),
        "user": ("root", "common.sls:4", "use of defaults", []),
        "group": ("www", "site.sls:20", "use_in of lent", []),
    }


def test_each_of_its_names(site: Minion) -> None:
    one, two = told(site, "many")["states"]
    assert (one["name"], two["name"]) == ("one", "two")
    assert [argument["value"] for argument in one["arguments"]] == [1]
    assert two["arguments"] == [
        {
            "name": "size",
            "value": 2,
            "by": "names",
            "at": "base/nginx.sls:17",
            "instead_of": [{"value": 1, "by": "", "at": "base/nginx.sls:18"}],
        }
    ]


def test_what_is_excluded(site: Minion) -> None:
    found = told(site, "gone")
    assert found["states"] == []
    assert found["excluded_by"]["sls"] == "base.nginx"
    assert found["excluded_by"]["at"].startswith("base/nginx.sls:2")


def test_a_name_does_too(site: Minion) -> None:
    assert told(site, "/etc/nginx.conf")["id"] == "conf"


def test_what_is_not_there(site: Minion) -> None:
    with pytest.raises(SlsError, match="there is no ID 'conff' in site\n    the nearest is 'conf'"):
        told(site, "conff")
    with pytest.raises(SlsError, match="No matching sls found for 'sit'"):
        told(site, "conf", ["sit"])
    site.write({"broken.sls": "x: {test.nop: [{require: [{test: y}]}]}\n"})
    with pytest.raises(SlsError, match="Referenced state does not exist"):
        told(site, "x", ["broken"])
