"""Functions of the compatibility package, each asked the same of real Salt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests import case_files

pytestmark = pytest.mark.oracle

#: Modules to import -> expressions. Exceptions are compared by their names, ours under Salt's.
ASKED: dict[str, list[str]] = case_files.read(Path(__file__).parent / "asked.yaml")


@pytest.mark.parametrize(
    ("modules", "expression"), [(modules, each) for modules, asked in ASKED.items() for each in asked], ids=str
)
def test_the_same_answer(ours: Any, real_salt: Any, modules: str, expression: str) -> None:
    assert ours(modules, expression) == _named(real_salt(modules, expression))


def _named(answer: str) -> str:
    """Salt's answer, with our names of the exceptions that have other ones."""
    names = {
        "CommandExecutionError": "CommandError",
        "SaltInvocationError": "InvocationError",
        "SaltException": "StatecoreError",
    }
    return f"! {names.get(answer[2:], answer[2:])}" if answer.startswith("! ") else answer


_TEXT = st.text(st.characters(blacklist_categories=("Cs",)), max_size=12)
_SCALARS = st.none() | st.booleans() | st.integers(-1000, 1000) | st.text("abc:*01 ", max_size=5)
_DATA = st.recursive(
    _SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab0", max_size=2), inner, max_size=3)
)
_MAPS = st.dictionaries(st.text("ab", min_size=1, max_size=2), _DATA, max_size=3)
_VERSIONS = st.text("0123456789.a-~", min_size=1, max_size=8)

#: What is asked -> a value for each of its names.
DOMAINS: dict[tuple[str, str], dict[str, st.SearchStrategy[Any]]] = {
    ("salt.utils.data", "salt.utils.data.traverse_dict_and_list(a, b, 'no')"): {
        "a": _MAPS,
        "b": st.text("ab0:", max_size=5),
    },
    ("salt.utils.data", "salt.utils.data.subdict_match(a, b)"): {"a": _MAPS, "b": st.text("ab0:*", max_size=6)},
    ("salt.utils.data", "salt.utils.data.recursive_diff(a, b)"): {"a": _MAPS, "b": _MAPS},
    ("salt.utils.data", "salt.utils.data.repack_dictlist(a, recurse=b)"): {
        "a": st.lists(_DATA, max_size=3),
        "b": st.booleans(),
    },
    ("salt.utils.data", "salt.utils.data.is_true(a)"): {"a": _SCALARS},
    ("salt.utils.data", "salt.utils.data.decode(salt.utils.data.encode(a))"): {"a": _DATA},
    ("salt.utils.dictupdate", "salt.utils.dictupdate.update(a, b, merge_lists=c)"): {
        "a": _MAPS,
        "b": _MAPS,
        "c": st.booleans(),
    },
    ("salt.utils.dictupdate", "salt.utils.dictupdate.set_dict_key_value(a, b, 1)"): {
        "a": _MAPS,
        "b": st.text("ab:", min_size=1, max_size=5),
    },
    ("salt.utils.dictdiffer", "salt.utils.dictdiffer.deep_diff(a, b)"): {"a": _MAPS, "b": _MAPS},
    ("salt.utils.versions", "salt.utils.versions.version_cmp(a, b)"): {"a": _VERSIONS, "b": _VERSIONS},
    ("salt.utils.args", "salt.utils.args.yamlify_arg(a)"): {"a": st.text("ab01 _:[]{}#'\"-!.\n", max_size=8)},
    ("salt.utils.args", "salt.utils.args.parse_kwarg(a)"): {"a": st.text("ab1=.-_ ", max_size=8)},
    ("salt.utils.path", "salt.utils.path.join(a, b)"): {
        "a": st.text("a/.", max_size=6),
        "b": st.text("a/.", max_size=6),
    },
    ("salt.utils.url", "salt.utils.url.parse(a), salt.utils.url.escape(a), salt.utils.url.unescape(a)"): {
        "a": st.one_of(st.text("ab|/?=", max_size=8), st.text("ab|/?=", max_size=8).map("salt://{}".format))
    },
    ("salt.utils.stringutils", "salt.utils.stringutils.human_to_bytes(a), salt.utils.stringutils.to_num(a)"): {
        "a": st.text("0123456789.kKmMgGiIbB ", max_size=6)
    },
    (
        "salt.utils.stringutils",
        "salt.utils.stringutils.is_binary(a.encode()), salt.utils.stringutils.to_unicode(a, normalize=True)",
    ): {"a": _TEXT},
    ("salt.utils.files", "salt.utils.files.normalize_mode(a), salt.utils.files.safe_filename_leaf(str(a))"): {
        "a": st.integers(0, 7777) | st.text("01234567o'\"", max_size=6)
    },
    ("salt.utils.yaml", "salt.utils.yaml.safe_load(salt.utils.yaml.safe_dump(a))"): {"a": _DATA},
    ("salt.utils.yaml", "salt.utils.yaml.safe_dump(a)"): {"a": _DATA},
}


@pytest.mark.parametrize(("modules", "expression"), DOMAINS, ids=str)
def test_the_same_answer_over_a_domain(ours: Any, real_salt: Any, modules: str, expression: str) -> None:
    domain = DOMAINS[modules, expression]

    @settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(st.fixed_dictionaries(domain))
    def same(names: dict[str, Any]) -> None:
        assert ours(modules, expression, names) == _named(real_salt(modules, expression, names))

    same()
