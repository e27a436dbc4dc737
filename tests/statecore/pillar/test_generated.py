"""Pillar trees that hypothesis makes, beside real Salt: what merges with what, in which order.

What is left out is what is another on purpose: other defaults for a file that is included again, relative names,
pillar_includes_override_sls over several levels. Those are cases in cases/tree.yaml. And includes where files replace
each other at the first level (overwrite, aggregate): Salt merges what is included twice, and changes it in place, so
that a later includer gets what an earlier one said. And the strategy ``list``, which keeps only what was there before
the first file.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .conftest import Case, Salt, ours

pytestmark = pytest.mark.oracle

_FILES = ("a", "b", "c", "sub.d", "sub.e")

_SCALARS = st.one_of(st.integers(0, 3), st.sampled_from(["text", "", "other"]), st.none(), st.booleans())
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("xyz"), inner, max_size=3)),
    max_leaves=5,
)
_DATA = st.dictionaries(st.sampled_from(["k", "l", "m", "n"]), _VALUES, max_size=3)
_INCLUDE = st.one_of(
    st.sampled_from([*_FILES, "sub.*", "?", "sub/d"]),
    st.builds(
        lambda name, key: {name: {"key": key}}, st.sampled_from(_FILES), st.sampled_from(["k", "k:x", "new", "new:a:b"])
    ),
)
_SLS = st.builds(
    lambda data, include: {**data, **({"include": include} if include else {})}, _DATA, st.lists(_INCLUDE, max_size=3)
)
_TARGETS = st.dictionaries(
    st.sampled_from(["*", "web1", "db1", "G@os:Debian", "web1 or db1", "not L@web1"]),
    st.lists(
        st.one_of(st.sampled_from([*_FILES, "sub.*", "none.*"]), st.builds(lambda n: {"order": n}, st.integers(1, 3))),
        min_size=1,
        max_size=3,
    ),
    min_size=1,
    max_size=3,
)
_TOP = st.dictionaries(st.sampled_from(["base", "dev"]), _TARGETS, min_size=1, max_size=2)


@st.composite
def _trees(draw: st.DrawFn) -> Case:
    strategy = draw(st.sampled_from(["smart", "recurse", "overwrite", "aggregate", "none"]))

    def environment() -> dict[str, str]:
        names = draw(st.sets(st.sampled_from(_FILES)))
        files = {
            f"{name.replace('.', '/')}.sls": draw(_DATA if strategy in ("overwrite", "aggregate") else _SLS)
            for name in sorted(names)
        }
        top = {"top.sls": draw(_TOP)} if draw(st.integers(0, 3)) else {}
        return {path: yaml.safe_dump(data, sort_keys=False) for path, data in (top | files).items()}

    opts: dict[str, Any] = {"pillar_source_merging_strategy": strategy, "pillar_merge_lists": draw(st.booleans())}
    if draw(st.booleans()):
        opts["env_order"] = draw(st.sampled_from([["dev"], ["dev", "base"], ["base", "dev"], ["other", "dev"]]))
    return Case(
        id="generated",
        pillar={"base": environment()} | ({"dev": environment()} if draw(st.booleans()) else {}),
        opts=opts,
        override=draw(st.one_of(st.none(), _DATA)),
        pillarenv=draw(st.sampled_from([None, None, None, "base", "dev"])),
    )


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(tree=_trees())
def test_a_tree_gives_what_it_gives_under_salt(tree: Case, salt: Salt, tmp_path: Path) -> None:
    directory = Path(tempfile.mkdtemp(dir=tmp_path)) / "case"
    own = json.loads(json.dumps(ours(tree, directory)).replace(str(directory), "DIR"))
    (salts,) = salt.ask([tree])
    assert _ordered(own) == _ordered(salts)


def _ordered(pillar: dict[str, Any]) -> Any:
    """Return the data with its order, and the number of different errors."""
    errors = {error.partition(": ")[0] for error in pillar.pop("_errors", [])}
    return json.dumps(pillar), sorted(errors)
