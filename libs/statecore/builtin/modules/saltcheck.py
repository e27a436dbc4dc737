"""Tests of states: Salt's ``saltcheck`` execution module.

A test is a map in a file ``*.tst`` beside the SLS, in the directory ``saltcheck-tests`` (option
``saltcheck_test_location``). It names an execution function (``module_and_function``), ``args``, ``kwargs``,
``pillar_data``, an ``assertion`` and what it compares with (``expected_return``, and ``assertion_section``: the part of
the return); ``assertions`` is a list of these. ``skip``, ``print_result`` and ``output_details`` are booleans. The
files are rendered with Jinja and YAML.

Tests run one after the other: ``saltcheck_parallel`` and ``saltcheck_processes`` have no effect.
"""

from __future__ import annotations

import json
import operator
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from statecore.model import values
from statecore.model.context import Context
from statecore.model.errors import CallFailed, CommandError

#: The result of one test: status, duration in seconds, and with ``output_details`` what was compared.
Result: TypeAlias = dict[str, Any]

#: Assertion that compares the expected value with the return -> function (expected, returned), its sign, the words of a failure,
#: and those if the return is not to be shown. ``{0}`` is the expected value, ``{1}`` the return.
_COMPARED: Mapping[str, tuple[Callable[[Any, Any], bool], str, str, str]] = {
    "assertEqual": (operator.eq, "==", "{0} is not equal to {1}", "Result is not equal"),
    "assertNotEqual": (operator.ne, "!=", "{0} is equal to {1}", "Result is equal"),
    "assertGreater": (operator.gt, ">", "{1} not False", "{1} not False"),
    "assertGreaterEqual": (operator.ge, ">=", "{1} not False", "{1} not False"),
    "assertLess": (operator.lt, "<", "{1} not False", "{1} not False"),
    "assertLessEqual": (operator.le, "<=", "{1} not False", "{1} not False"),
}

#: The same for assertions whose expected value is not cast to the type of the return.
_UNCAST: Mapping[str, tuple[Callable[[Any, Any], bool], str, str, str]] = {
    "assertIn": (lambda expected, told: expected in told, "IN", "{0} not found in {1}", "Result not found"),
    "assertNotIn": (lambda expected, told: expected not in told, "NOT IN", "{0} was found in {1}", "Result was found"),
}

#: The same for assertions without an expected value.
_ALONE: Mapping[str, tuple[Callable[[Any, Any], bool], str, str, str]] = {
    "assertTrue": (lambda _, told: told is True, "True is", "{1} not True", "{1} not True"),
    "assertFalse": (
        lambda _, told: (bool(told) if isinstance(told, str) else told) is False,
        "False is",
        "{1} not False",
        "{1} not False",
    ),
    "assertEmpty": (lambda _, told: not told, "IS EMPTY", "{1} is not empty", "{1} is not empty"),
    "assertNotEmpty": (lambda _, told: bool(told), "IS NOT EMPTY", "value is empty", "value is empty"),
}

_ASSERTIONS = {**_COMPARED, **_UNCAST, **_ALONE}

#: Function that only prepares a test: it needs no assertion.
_APPLY = "saltcheck.state_apply"


def run_test(ctx: Context, test: object = None, **kwargs: object) -> object:
    """Run one test and return its result: a map of status and duration.

    test
        the test as a map

    CLI Example:

        salt '*' saltcheck.run_test test='{"module_and_function": "test.echo", "assertion": "assertEqual",
            "expected_return": "x", "args": ["x"]}'
    """
    return _run(ctx, test) if test and isinstance(test, dict) else "Test argument must be a dictionary"


def state_apply(ctx: Context, state_name: str, **kwargs: Any) -> object:
    """Apply a state as ``state.apply`` does, with its keyword arguments: the preparation of a test, or its end.

    CLI Example:

        salt '*' saltcheck.state_apply postfix
    """
    return ctx.call("state.apply", state_name, **kwargs)


def run_state_tests(
    ctx: Context,
    state: str,
    saltenv: str | None = None,
    check_all: bool = False,
    only_fails: bool = False,
    junit: bool = False,
) -> object:
    """Run the tests of SLS files and of those that they include. Return a list of maps, one for each SLS: {SLS: {test: result}},
    and at its end the numbers of passed, failed, skipped and missing tests. The exit code is 1 if a test failed.

    state
        names of SLS files, with commas between them; a name that is no SLS may be that of a directory with tests
    check_all
        True: run all tests in the directories of the SLS files, not only those in files with the names of the SLS files
    only_fails
        True: return the failed tests only
    junit
        True: return JUnit's XML as text

    CLI Example:

        salt '*' saltcheck.run_state_tests postfix,common
    """
    env = _saltenv(ctx, saltenv)
    found = _Found(ctx, env)
    results: dict[str, dict[str, Result]] = {}
    for name in (each.strip() for each in str(state).split(",")):
        tests: dict[str, Any] = {}
        for file in found.files(name, check_all=check_all):
            tests |= _rendered(ctx, file, env)
        done = {key: _run(ctx, test) for key, test in tests.items()}
        # A state that was included by an earlier one has no tests left.
        if not results.get(name):
            results[name] = done
    every = [result for done in results.values() for result in done.values()]
    ctx.scratch["retcode"] = int(any(result["status"].startswith("Fail") for result in every))
    return _junit(results) if junit else _listed(results, only_fails=only_fails)


def run_highstate_tests(
    ctx: Context, saltenv: str | None = None, only_fails: bool = False, junit: bool = False
) -> object:
    """Run the tests of all SLS files that the top file assigns to this minion. The arguments and the result are those of
    ``saltcheck.run_state_tests``.

    CLI Example:

        salt '*' saltcheck.run_highstate_tests
    """
    env = _saltenv(ctx, saltenv)
    return run_state_tests(ctx, ",".join(_top(ctx, env)), env, only_fails=only_fails, junit=junit)


def report_highstate_tests(ctx: Context, saltenv: str | None = None) -> dict[str, dict[str, object]]:
    """Return which SLS files of the top file have tests, and which have none. The exit code is the number of those without.

    CLI Example:

        salt '*' saltcheck.report_highstate_tests
    """
    env = _saltenv(ctx, saltenv)
    found = _Found(ctx, env)
    missing = []
    for name in _top(ctx, env):
        found.files(name, check_all=False)
        if name not in found.states:
            missing.append(name)
    ctx.scratch["retcode"] = len(missing)
    report = {
        "Missing Tests": len(missing),
        "States missing tests": missing,
        "States with tests": found.states,
    }
    return {"TEST REPORT RESULTS": report}


# ------------------------------------------------------------------------------------------ files of tests


class _Found:
    """Finds files of tests in the state tree, and remembers for which SLS files some were found."""

    def __init__(self, ctx: Context, saltenv: str) -> None:
        self.states: list[str] = []
        self._ctx = ctx
        self._saltenv = saltenv
        self._directory = str(ctx.call("config.get", "saltcheck_test_location", "saltcheck-tests")).strip("/")
        paths = ctx.files.paths(saltenv)
        self._files = [path for path in paths if path.endswith(".tst")]
        self._sls = set(ctx.call("cp.list_states", saltenv=saltenv))

    def files(self, name: str, *, check_all: bool) -> list[str]:
        """Return the paths of the files with tests of an SLS and of those that it includes; [] for an SLS that does not
        compile.
        """
        chosen: list[str] = []
        for sls in self._compiled(name):
            if sls in self.states:
                continue
            near = next((files for place in self._places(sls) if (files := self._below(place))), [])
            if near and not check_all:
                self.states.append(sls)
            names = self._names(sls)
            chosen += [
                file for file in near if check_all or any(file == each or file.endswith(f"/{each}") for each in names)
            ]
        return list(dict.fromkeys(chosen))

    def _compiled(self, name: str) -> list[str]:
        if name not in self._sls:
            return [name]
        chunks = self._ctx.call("state.show_low_sls", name, saltenv=self._saltenv, test=True)
        return list(
            dict.fromkeys(
                str(chunk["__sls__"]) for chunk in chunks if isinstance(chunk, Mapping) and "__sls__" in chunk
            )
        )

    def _places(self, sls: str) -> list[str]:
        """Return the directories that may have tests of an SLS, the longest path first."""
        parts = sls.split(".")
        tops = ("/".join(parts), "/".join(parts[:-1]), parts[0])
        return sorted({f"{top}/{self._directory}".lstrip("/") for top in tops}, key=lambda place: (-len(place), place))

    def _below(self, place: str) -> list[str]:
        return sorted(file for file in self._files if file.startswith(f"{place}/"))

    def _names(self, sls: str) -> list[str]:
        """Return the ends of the paths of an SLS's own files of tests."""
        parts = sls.split(".")
        return [
            "/".join((*parts, self._directory, "init.tst")),
            "/".join((*parts[:-1], self._directory, f"{parts[-1]}.tst")),
            "/".join((parts[0], self._directory, *parts[1:-1], f"{parts[-1]}.tst")),
        ]


def _rendered(ctx: Context, file: str, saltenv: str) -> dict[str, Any]:
    """Return the tests of a file of the state tree. Raise CommandError if it is no map of tests."""
    tests = ctx.call("slsutil.renderer", f"salt://{file}", saltenv=saltenv)
    if not isinstance(tests, Mapping):
        raise CommandError(f"salt://{file} has no map of tests, but {type(tests).__name__}")
    return dict(tests)


def _top(ctx: Context, saltenv: str) -> list[str]:
    """Return the SLS files that the top file assigns to this minion. Raise CommandError for a damaged top file."""
    top = ctx.call("state.show_top", saltenv=saltenv)
    if not isinstance(top, Mapping):
        raise CommandError(f"the top file cannot be read: {'; '.join(map(str, top))}")
    return [str(sls) for sls in top.get(saltenv, ())]


def _saltenv(ctx: Context, given: str | None) -> str:
    return given or str(ctx.opts.get("saltenv") or "base")


# ------------------------------------------------------------------------------------------ one test


def _run(ctx: Context, test: object) -> Result:
    start = time.monotonic()
    if not isinstance(test, Mapping) or not _valid(ctx, test):
        result: Result = {"status": "Fail - invalid test"}
    elif test.get("skip", False):
        return {"status": "Skip", "duration": 0.0}
    else:
        result = _asserted(ctx, test)
    return {**result, "duration": round(time.monotonic() - start, 4)}


def _asserted(ctx: Context, test: Mapping[str, Any]) -> Result:
    name, args = test["module_and_function"], test.get("args")
    kwargs = {key: value for key, value in (test.get("kwargs") or {}).items() if key != "pillar"}
    pillar = test.get("pillar_data", test.get("pillar-data"))
    if pillar:
        kwargs["pillar"] = pillar
    try:
        told = ctx.call(name, *(args or ()), **kwargs)
    except CallFailed as failed:
        told = failed.value
    except Exception as error:  # noqa: BLE001 - functions of users raise anything; the other tests still run
        return {"status": f"Fail: {name} failed: {error}"}
    details = bool(test.get("output_details", ctx.call("config.get", "saltcheck_output_details", False)))
    show = bool(test.get("print_result", True))
    if not test.get("assertions"):
        return _compared(name, args, test, told, details=details, show=show)
    result: Result = {
        f"assertion{number}": _compared(name, args, each, told, details=details, show=show)
        for number, each in enumerate(test["assertions"], start=1)
    }
    passed = all(each["status"] == "Pass" for each in result.values())
    return {**result, "status": "Pass" if passed else "Fail"}


def _compared(name: str, args: object, asked: Mapping[str, Any], told: Any, *, details: bool, show: bool) -> Result:
    section = asked.get("assertion_section")
    if section:
        told = values.traverse(told, section, False, asked.get("assertion_section_delimiter", values.DELIMITER))
    assertion = "assertNotEmpty" if name == _APPLY else asked["assertion"]
    expected = _expected(asked)
    if assertion in _COMPARED:
        expected = _cast(expected, told)
    holds, sign, words, hidden = _ASSERTIONS[assertion]
    try:
        good = holds(expected, told)
    except TypeError as error:
        good, words, hidden = False, f"{{0}} {sign} {{1}}: {error}", str(error)
    result: Result = {"status": "Pass" if good else f"Fail: {(words if show else hidden).format(expected, told)}"}
    if details:
        title = "module.function [args]" + (" assertion_section" if section else "")
        result[title] = f"{name} {json.dumps(args)} {section}" if section else f"{name} {json.dumps(args)}"
        before = "" if expected is None else f"{expected} "
        result["saltcheck assertion"] = f"{before}{sign} {told if show else 'hidden'}"
    return result


def _valid(ctx: Context, test: Mapping[str, Any]) -> bool:
    name = test.get("module_and_function")
    if name == _APPLY:
        return True
    if not isinstance(name, str) or name.count(".") != 1 or name not in ctx.functions:
        return False
    return all(
        isinstance(each, Mapping)
        and each.get("assertion") in _ASSERTIONS
        and (each["assertion"] in _ALONE or _expected(each) is not None)
        for each in test.get("assertions") or [test]
    )


def _expected(asked: Mapping[str, Any]) -> Any:
    return asked.get("expected_return", asked.get("expected-return"))


def _cast(expected: Any, told: Any) -> Any:
    """Return the expected value in the type of the return; as it is if that is not possible."""
    if told is None:
        return expected
    if isinstance(told, bool) and expected == "False":
        return False
    try:
        return type(told)(expected)
    except (TypeError, ValueError):
        return expected


# ------------------------------------------------------------------------------------------ results


def _listed(results: Mapping[str, Mapping[str, Result]], *, only_fails: bool) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for state, done in results.items():
        failed = {name: each for name, each in done.items() if each["status"].startswith("Fail")}
        rows.append(({state: failed} if failed else {}) if only_fails else {state: dict(done)})
    every = [each for done in results.values() for each in done.values()]
    summary = {
        "Execution Time": round(sum(float(each["duration"]) for each in every), 4),
        **{word: _count(every, start) for word, start in (("Passed", "Pass"), ("Failed", "Fail"), ("Skipped", "Skip"))},
        "Missing Tests": sum(not done for done in results.values()),
    }
    return [*sorted(rows, key=sorted), {"TEST RESULTS": summary}]


def _count(every: Iterable[Result], start: str) -> int:
    return sum(each["status"].startswith(start) for each in every)


def _junit(results: Mapping[str, Mapping[str, Result]]) -> str:
    """Return the results as JUnit's XML: one suite, one case for each test."""
    suite = ET.Element("testsuite", name="test_results")
    for state, done in results.items():
        if not done:
            ET.SubElement(suite, "testcase", name="missing_test", classname=state)
        for name, each in sorted(done.items()):
            case = ET.SubElement(suite, "testcase", name=name, classname=state, time=str(round(each["duration"], 4)))
            if each["status"].startswith("Fail"):
                ET.SubElement(case, "failure", type="failure", message=each["status"])
            elif each["status"].startswith("Skip"):
                ET.SubElement(case, "skipped", type="skipped", message=each["status"])
    every = [each for done in results.values() for each in done.values()]
    suite.attrib |= {
        "tests": str(len(suite)),
        "failures": str(_count(every, "Fail")),
        "skipped": str(_count(every, "Skip")),
        "errors": "0",
    }
    suites = ET.Element("testsuites")
    suites.append(suite)
    return '<?xml version="1.0" ?>\n' + ET.tostring(suites, encoding="unicode")
