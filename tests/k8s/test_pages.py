"""The operators' pages say what the manifests say."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
import yaml

from saltern.kit.config.master import MasterOptions
from saltern.kit.config.minion_options import MinionOptions
from tests.k8s.policies import BROUGHT, POLICIES
from tests.k8s.rendered import K8S, OVERLAYS, ROOT, kustomized, of_kind, overlay, pods
from tests.k8s.test_monitoring import KNOWN, PROCESS

PAGES = ROOT / "docs" / "operations"

#: Factors of Kubernetes' quantities, to MiB.
_MIB = {"Mi": 1, "Gi": 1024}


def test_the_index_names_every_page() -> None:
    index = (PAGES / "README.md").read_text("utf-8")
    assert [
        page.name for page in PAGES.glob("*.md") if page.name != "README.md" and f"]({page.name})" not in index
    ] == []


NAMES = json.loads((ROOT / "services" / "saltern" / "cli" / "names.json").read_text("utf-8"))
#: cluster-tests.md is about the machine of the tests: its kernel's modules, the tests' own variables.
TEXT = "\n".join(page.read_text("utf-8") for page in sorted(PAGES.rglob("*.md")) if page.name != "cluster-tests.md")

#: In backticks and with underscores, and no options: keys of `tracing`, a kind of external pillar, the autoscalers' metric, a file.
NO_OPTIONS = frozenset(
    {
        "resource_attributes",
        "sampler_arg",
        "service_name",
        # A key of `rest_cherrypy`.
        "api_acl",
        "git_pillar",
        "saltern_requests_in_hand",
        "minion_id",
        *PROCESS,
        # Functions, external pillars and arguments that the page of upgrades names.
        *("regex_match", "regex_replace", "regex_search", "http_json", "http_yaml", "ret_kwargs", "ret_config"),
    }
)

#: What is typed -> what there is of its kind.
TYPED = {
    r"salt-run (\w+\.\w+)": set(NAMES["runners"]),
    r"salt (?:-\w \S+ )*(?:'[^']*'|[\w:]+) (\w+\.\w+)": set(NAMES["functions"]),
    # Not the namespace of the same name.
    r"(?<!-n )(?<!namespace )\bsaltern ((?!delete|get|wait|exec|scale)[a-z][a-z-]+)\b": set(NAMES["commands"]),
    r"`(salt_[a-z_]+)[`{]": {*KNOWN, *(name.removesuffix("_bucket") for name in KNOWN)},
    r"`((?!salt_)[a-z]+_[a-z_]+)`": {
        *MasterOptions.__dataclass_fields__,
        *MinionOptions.__dataclass_fields__,
        *NO_OPTIONS,
    },
    # NEWER_REDIS is of the tests.
    r"SALTERN_([A-Z_]+?)(?:_FILE)?\b(?!=|<)": {
        "NEWER_REDIS",
        *(name.upper() for name in (*MasterOptions.__dataclass_fields__, *MinionOptions.__dataclass_fields__)),
    },
}


@pytest.mark.parametrize("typed", TYPED)
def test_what_is_typed_exists(typed: str) -> None:
    found = set(re.findall(typed, TEXT))
    assert found, "the expression finds nothing any more"
    assert found - TYPED[typed] == set()


def test_every_part_is_named() -> None:
    text = (PAGES / "kubernetes.md").read_text("utf-8")
    names = [path.name for path in (K8S / "components").iterdir() if path.name != "release"]
    for name in (*OVERLAYS, *names):
        assert f"`{name}`" in text, name
    secrets = (PAGES / "secrets.md").read_text("utf-8")
    assert all(f"`{name}`" in secrets for name in BROUGHT)


def test_the_overlay_that_is_shown_can_be_applied(tmp_path: Path) -> None:
    """As it stands, beside the others; the release's component is what k8s/pin-images prints."""
    shown = re.findall(r"```yaml\n(.*?)```", (PAGES / "kubernetes.md").read_text("utf-8"), re.DOTALL)
    assert len(shown) == 1
    shutil.copytree(K8S, tmp_path / "k8s")
    release, mine = tmp_path / "k8s" / "components" / "release", tmp_path / "k8s" / "overlays" / "mine"
    release.mkdir()
    mine.mkdir()
    component = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nimages: [{name: saltern/mworker, newTag: '7'}]\n"
    (release / "kustomization.yaml").write_text(component)
    (mine / "kustomization.yaml").write_text(shown[0])
    (mine / "60-mine.conf").write_text("keep_jobs_seconds: 7200\n")
    found = list(yaml.load_all(kustomized(mine), Loader=yaml.CSafeLoader))
    assert [complaint for policy in POLICIES.values() for complaint in policy(found)] == []
    (worker,) = [pod for pod in pods(found) if pod.component == "mworker"]
    container = worker.spec["containers"][0]
    assert (container["name"], container["image"]) == ("mworker", "saltern/mworker:7")
    assert container["resources"]["limits"]["memory"] == "2Gi"
    text = yaml.safe_dump(of_kind(found, "ConfigMap"))
    assert "git.example.org" in text
    assert "keep_jobs_seconds: 7200" in text


def test_the_table_of_what_a_role_takes_is_what_manifests_ask_for() -> None:
    rows = re.findall(
        r"^\| (\w+) \| \d+ \|[ \d]*\| (\d+) \| (\d+) \|", (PAGES / "capacity.md").read_text("utf-8"), re.MULTILINE
    )
    said = {name: (int(request), int(limit)) for name, request, limit in rows}
    asked = {}
    for pod in pods(overlay("lab")):
        given = pod.spec["containers"][0]["resources"]
        asked[pod.component] = (_mib(given["requests"]["memory"]), _mib(given["limits"]["memory"]))
    assert said == {name: asked[name] for name in said}
    assert len(said) == 8


def _mib(quantity: str) -> int:
    return int(quantity[:-2]) * _MIB[quantity[-2:]]
