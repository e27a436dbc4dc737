"""The mine between minions: offered by configuration and pillar without anybody's doing, and seen by whom it is for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml

from tests.roles.conftest import NewLab
from tests.roles.lab import SOON, Lab, until

pytestmark = pytest.mark.roles


@pytest.fixture(scope="module")
def lab(module_labs: NewLab) -> Iterator[Lab]:
    """web1 offers by its configuration, web2 by its pillar."""
    made = module_labs()
    options = made.root / "minions" / "web1" / "minion"
    functions = {
        "test.echo": ["of web1"],
        "secret": [{"mine_function": "test.echo"}, "for web2", {"allow_tgt": "web2"}],
    }
    options.write_text(options.read_text() + yaml.safe_dump({"mine_functions": functions}))
    pillar = made.tree / "pillar" / "web2.sls"
    pillar.write_text(pillar.read_text() + yaml.safe_dump({"mine_functions": {"test.echo": ["of web2"]}}))
    made.start_all()
    yield made
    assert made.tracebacks() == []


def test_what_is_offered_is_there_by_itself(lab: Lab) -> None:
    both = {"web1": "of web1", "web2": "of web2"}
    until(lambda: lab.salt("web1", "mine.get", "*", "test.echo")["web1"] == both, SOON, "both are in the mine")
    listed = yaml.safe_load(lab.salt("web1", "schedule.list", "show_all=True")["web1"])["schedule"]
    assert listed["__mine_interval"]["minutes"] == 60
    assert lab.runner("jobs.list_jobs", "search_function=mine.update") == {}


def test_what_is_for_one_is_not_for_others(lab: Lab) -> None:
    until(lambda: lab.salt("web2", "mine.get", "*", "secret")["web2"] == {"web1": "for web2"}, SOON, "it is offered")
    assert lab.salt("web1", "mine.get", "*", "secret")["web1"] == {}


def test_templates_see_it(lab: Lab) -> None:
    (lab.tree / "salt" / "mined.sls").write_text(
        "{% set found = salt['mine.get']('*', 'test.echo') %}\n"
        "mined:\n  test.show_notification:\n    - text: '{{ found['web1'] }}, {{ found['web2'] }}'\n"
    )
    (entry,) = lab.salt("web2", "state.apply", "mined")["web2"].values()
    assert entry["comment"] == "of web1, of web2"


def test_operators_see_all_of_it(lab: Lab) -> None:
    both = {"web1": "of web1", "web2": "of web2"}
    assert lab.runner("mine.get", "*", "test.echo") == both
    assert lab.runner("mine.get", "*", "test.echo,secret") == {"test.echo": both, "secret": {"web1": "for web2"}}
    assert lab.runner("mine.update", "web*") == {"web1": True, "web2": True}


def test_offers_are_taken_back(lab: Lab) -> None:
    assert lab.salt("web1", "mine.send", "passing", "mine_function=test.ping")["web1"] is True
    assert lab.call("web2", "mine.get", "*", "passing", "--out", "json").data["local"] == {"web1": True}
    assert lab.salt("web1", "mine.delete", "passing")["web1"] is True
    assert lab.salt("web2", "mine.get", "*", "passing")["web2"] == {}
    assert lab.salt("web1", "mine.flush")["web1"] is True
    assert lab.salt("web2", "mine.get", "*", "test.echo")["web2"] == {"web2": "of web2"}
