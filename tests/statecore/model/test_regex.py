"""RE2 gives what the module ``re`` gives, or does not run the expression."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statecore.model import regex
from statecore.model.regex import Expression, expression

pytest.importorskip("re2")

_ATOMS = st.one_of(
    st.sampled_from(list("abAkKsSi0_-. \n\\.")).map(re.escape),
    st.sampled_from(
        [".", r"\d", r"\w", r"\s", r"\D", r"\W", r"\S", r"\b", r"\B", "^", "$", r"\A", r"\Z", "é", r"\x41"]
    ),
    st.sampled_from(
        ["[ab]", "[^ab]", "[a-z0-9]", r"[\w-]", r"[^\d.]", r"[\s\S]", r"[^\W_]", "[]a]", "[A-_]", "[é-ü]", r"[\n]"]
    ),
)


def _grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    times = st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{,2}", "{2,}", "*?", "+?", "??", "{1,2}?", "*+", ""])
    return st.one_of(
        st.lists(inner, min_size=1, max_size=4).map("".join),
        st.lists(inner, min_size=1, max_size=3).map("|".join),
        st.tuples(inner, times).map(lambda pair: f"({pair[0]}){pair[1]}"),
        st.tuples(inner, times).map(lambda pair: f"(?:{pair[0]}){pair[1]}"),
        st.tuples(st.sampled_from(["(?i:", "(?s:", "(?m:", "(?-i:", "(?=", "(?!", "(?<=a", "(?>"]), inner).map(
            lambda pair: f"{pair[0]}{pair[1]})"
        ),
    )


PATTERNS = st.recursive(_ATOMS, _grown, max_leaves=8)
#: Letters, digits and marks that Unicode knows and ASCII does not, among them those that fold to i, k and s.
_WIDE = list("\u00e9\u00c9\u00b2\u0663\u017f\u212a\u0131\u0130\u4e2d\u0345")
TEXTS = st.text(st.sampled_from(list("aabbAkKsSi01_-. \n\t\v\x1c\r")) | st.sampled_from(_WIDE), max_size=12)
FLAGS = st.sampled_from([0, re.IGNORECASE, re.MULTILINE, re.IGNORECASE | re.MULTILINE])
REPLACEMENTS = st.sampled_from(["", "-", r"<\g<0>>", r"\\", r"a\nb", r"\1", r"\g<1>x", r"\2", r"\101", r"\g<name>"])


def _groups(found: re.Match[str] | None) -> tuple[object, ...] | None:
    return (found.groups() or (found.group(),)) if found else None


def _outcome(call: object, *arguments: object) -> object:
    assert callable(call)
    try:
        return call(*arguments)
    except (re.error, IndexError) as error:
        return type(error), str(error)


@settings(max_examples=600, deadline=None)
@given(PATTERNS, TEXTS, FLAGS, REPLACEMENTS)
def test_the_results_are_those_of_the_module_re(pattern: str, text: str, flags: int, replacement: str) -> None:
    try:
        python = re.compile(pattern, flags)
    except (re.error, OverflowError):
        with pytest.raises((re.error, OverflowError)):
            Expression(pattern, flags)
        return
    linear = Expression(pattern, flags)
    assert (linear.match(text) is None) == (python.match(text) is None)
    assert (linear.fullmatch(text) is None) == (python.fullmatch(text) is None)
    assert linear.groups_of_match(text) == _groups(python.match(text))
    assert linear.groups_of_search(text) == _groups(python.search(text))
    assert _outcome(linear.sub, replacement, text) == _outcome(python.sub, replacement, text)


EVIL = "a" * 40 + "!"

#: Expression that backtracks -> a text on which the module ``re`` takes longer than anybody waits.
LINEAR = {
    r"(a+)+$": EVIL,
    r"(a|aa)+$": EVIL,
    r"(?:a+)+b": EVIL,
    r"^(\w+\s?)+$": EVIL,
    r"^([a-zA-Z0-9])(([\-.]|[_]+)?([a-zA-Z0-9]+))+(@)": EVIL,
    r"(.*a){20}!b": EVIL,
    r"(\d+)+x": "1" * 40 + "!",
    r"(a+)+\Z": EVIL,
    r"(?i)(a+)+$": EVIL.upper(),
    r"(?m)^(a+)+$": EVIL,
    r"^(a+)+$": EVIL + "\n",
    r"([a-z]+)*\d": "é" + EVIL,
    r"é(\w+)+$": "é" + EVIL,
    r"\S*(\s+\w+)+;": " a" * 30 + "é",
}


@pytest.mark.parametrize(("pattern", "text"), LINEAR.items(), ids=list(LINEAR))
def test_what_backtracks_is_linear(pattern: str, text: str) -> None:
    started = time.thread_time()
    made = Expression(pattern)
    assert made.match(text) is None
    assert made.fullmatch(text) is None
    assert time.thread_time() - started < 1.5


@pytest.mark.parametrize("pattern", [r"(a)\1", "(?=a)a", "(?<!b)a", "(?>a)", "a++", "(a)?(?(1)b|c)", "a{1,2000}"])
def test_what_re2_lacks_is_run_by_the_module_re(pattern: str) -> None:
    made = Expression(pattern)
    assert made._for("abc") is None
    assert (made.match("abc") is None) == (re.match(pattern, "abc") is None)


def test_without_re2_the_module_re_runs_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regex, "_engine", lambda: None)
    assert Expression("(a)b").groups_of_match("abc") == ("a",)


def test_an_expression_is_compiled_once() -> None:
    assert expression("a(b)") is expression("a(b)")
    with pytest.raises(re.error):
        expression("(")


@pytest.mark.parametrize(
    ("pattern", "fast"),
    [
        *((r"web\d+", True), ("(web|db)[0-9]{2}$", True), (".*a.*", True), ("a", True), ("(a)(b*)", True)),
        *(("(a+)+", False), ("(a|b)*", False), (r"(\w+\s?)+$", False), ("(?:a?){20}", False), ("(a*)*", False)),
        *(("a*" * 20 + "b", False), ("a?" * 30 + "a" * 30, False), ("(.*a){20}", False), ("(?=a*)", False)),
    ],
)
def test_re_runs_what_cannot_take_long(pattern: str, fast: bool) -> None:
    made = Expression(pattern)
    assert (made._power is not None and 60**made._power <= regex._FEW_STEPS) is fast


@settings(max_examples=300, deadline=None)
@given(PATTERNS, st.sampled_from(["a" * 60, "a" * 60 + "!", "ab" * 30 + "1"]), FLAGS)
def test_what_re_runs_itself_takes_a_moment(pattern: str, text: str, flags: int) -> None:
    try:
        made = Expression(pattern, flags)
    except (re.error, OverflowError):
        return
    if made._power is not None and len(text) ** made._power <= regex._FEW_STEPS:
        started = time.thread_time()
        re.search(pattern, text, flags)
        assert time.thread_time() - started < 0.3
