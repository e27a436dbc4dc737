"""Whole runs of literal chunks with the test states and a few users' modules."""

from __future__ import annotations

import logging
import re

import pytest

from statecore.compile.graph import link
from statecore.engine import run
from statecore.model.errors import Mark

STATES = '''
"""States in Salt's style."""


def raises(name):
    raise ValueError("boom")


def refuses(name):
    from salt.exceptions import CommandExecutionError
    raise CommandExecutionError("the disk is full")


def returns(name, what):
    return what


def flaky(name, times):
    done = __context__.setdefault("done", 0)
    __context__["done"] = done + 1
    return {"name": name, "changes": {}, "result": done >= times, "comment": ["try", str(done)]}


def tests(name):
    return {"name": name, "changes": {"seen": 1}, "result": None if __opts__["test"] else True, "comment": ""}


def calls(name, other):
    return __states__[other](name=name)


def looks(name):
    return {"name": name, "changes": {}, "result": True, "comment": f"{__low__['__id__']} {sorted(__running__)}"}


def below(name):
    low = {"state": "own", "__id__": name, "name": "sub", "fun": "below"}
    sub = {"low": low, "name": "sub", "changes": {"x": 1}, "result": True, "comment": "sub done"}
    return {"name": name, "changes": {}, "result": True, "comment": "", "sub_state_run": [sub]}


def skips(name):
    return {"name": name, "changes": {"x": 1}, "result": True, "comment": "", "skip_req": True}


def mod_init(low):
    __context__.setdefault("inits", []).append(low["__id__"])
    return len(__context__["inits"]) > 1
'''


@pytest.fixture
def own(bench, low):
    """The bench with the states above as ``own``, and a maker of their chunks."""
    bench.write("states/own.py", STATES)
    return lambda id_, fun, **arguments: {**low(id_, fun, **arguments), "state": "own"}


def test_an_entry_has_salts_keys(bench, low):
    (tag, entry) = next(iter(bench.run(low("a", "succeed_with_changes")).items()))
    assert tag == "test_|-a_|-a_|-succeed_with_changes"
    assert list(entry) == [
        *("name", "changes", "result", "comment", "__sls__", "__run_num__", "start_time", "duration", "__id__"),
    ]
    assert (entry["__sls__"], entry["__id__"], entry["__run_num__"]) == ("web", "a", 0)
    assert isinstance(entry["duration"], float)
    assert entry["changes"] == {"testing": {"old": "Unchanged", "new": "Something pretended to change"}}


def test_a_state_that_is_left_out_says_that_it_did_not_run(bench, low):
    running = bench.run(low("a", "fail_without_changes"), low("b", require=[{"test": "a"}]))
    entry = running["test_|-b_|-b_|-nop"]
    assert entry["__state_ran__"] is False
    assert (entry["result"], entry["comment"]) == (False, "One or more requisite failed: web.a")
    assert (entry["name"], entry["__id__"], entry["__sls__"], entry["changes"]) == ("b", "b", "web", {})


def test_watch_calls_mod_watch_and_counts_both_calls(bench, low):
    running = bench.run(low("a", "succeed_with_changes"), low("b", watch=[{"test": "a"}]), low("c"))
    entry = running["test_|-b_|-b_|-nop"]
    assert entry["comment"] == "Watch statement fired."
    assert entry["changes"] == {"Requisites with changes": ["test: a"]}
    assert [each["__run_num__"] for each in running.values()] == [0, 2, 3]


def test_a_state_with_changes_of_its_own_needs_no_mod_watch(bench, low):
    running = bench.run(low("a", "succeed_with_changes"), low("b", "succeed_with_changes", watch=[{"test": "a"}]))
    assert running["test_|-b_|-b_|-succeed_with_changes"]["comment"] == "Success!"


def test_watch_without_mod_watch_is_require(bench, low, own):
    running = bench.run(low("a", "succeed_with_changes"), own("b", "tests", watch=[{"test": "a"}]))
    assert running["own_|-b_|-b_|-tests"]["comment"] == ""


def test_listen_reacts_at_the_end_once(bench, low):
    running = bench.run(
        low("a", listen=[{"test": "b"}, {"test": "c"}]),
        low("b", "succeed_with_changes"),
        low("c", "succeed_with_changes", listen_in=[{"test": "a"}]),
        low("d", listen=[{"test": "a"}]),
    )
    assert list(running)[-1] == "test_|-listener_a_|-a_|-mod_watch"
    assert len(running) == 5
    assert running["test_|-listener_a_|-a_|-mod_watch"]["__run_num__"] == 4


def test_listening_to_nothing_is_an_error(bench, low):
    running = bench.run(low("a", listen=[{"test": "nothing"}]))
    entry = running["Listen_Error_|-listen_nothing_|-listen_test_|-Listen_Error"]
    assert entry["comment"] == "Referenced state test: nothing does not exist"
    assert entry["result"] is False


def test_prereq_tests_its_target_in_test_mode_only(bench, low, own):
    running = bench.run(own("site", "tests"), low("stop", prereq=[{"own": "site"}]))
    assert [entry["__id__"] for entry in running.values()] == ["stop", "site"]
    assert running["own_|-site_|-site_|-tests"]["result"] is True


def test_states_called_by_states_share_the_test_mode_of_a_check(bench, low, own):
    running = bench.run(own("site", "calls", other="test.succeed_with_changes"), low("stop", prereq=[{"own": "site"}]))
    assert [entry["__id__"] for entry in running.values()] == ["stop", "site"]
    assert running["own_|-site_|-site_|-calls"]["comment"] == "Success!"


def test_what_a_failed_prereq_leaves_of_its_target(bench, low):
    running = bench.run(
        low("stop", "fail_without_changes", prereq=[{"test": "site"}]), low("site", "succeed_with_changes")
    )
    entry = running["test_|-site_|-site_|-succeed_with_changes"]
    assert (entry["result"], entry["changes"], entry["__run_num__"]) == (None, {}, 1)
    assert entry["comment"] == "If we weren't testing, this would be successful with changes"


def test_mode_withholds_the_steps(bench, low):
    running = bench.run(low("a", "succeed_with_changes"), low("b", "fail_without_changes"), low("c"), test=True)
    assert [entry["result"] for entry in running.values()] == [None, False, True]
    assert running["test_|-a_|-a_|-succeed_with_changes"]["comment"].startswith("If we weren't testing")


@pytest.mark.parametrize(("test", "count"), [(False, 1), (True, 2)])
def test_failhard_of_a_state(bench, low, test, count):
    assert len(bench.run(low("a", "fail_without_changes", failhard=True), low("b"), test=test)) == count


def test_failhard_for_all_spares_those_that_say_no(bench, low):
    running = bench.run(
        low("a", "fail_without_changes", failhard=False), low("b", "fail_without_changes"), low("c"), failhard=True
    )
    assert [entry["__id__"] for entry in running.values()] == ["a", "b"]


def test_an_unknown_state_function_names_the_place_and_the_nearest(bench, low):
    chunk = low("a", "succed_with_changes")
    running = bench.run(chunk, locate=lambda _low, _argument: Mark("web.sls", 3))
    (entry,) = running.values()
    assert entry["result"] is False
    assert entry["comment"].splitlines() == [
        "State 'test.succed_with_changes' was not found in SLS 'web'",
        "Reason: 'test.succed_with_changes' is not available.",
        "Did you mean 'test.succeed_with_changes'?",
        "    at web.sls:3",
    ]


def test_an_unknown_argument_is_found_before_anything_is_touched(bench, low):
    running = bench.run(
        low("a", "configurable_test_state", coment="x", zzz=1), locate=lambda _low, _argument: Mark("web.sls", 3)
    )
    (entry,) = running.values()
    assert (entry["result"], entry["changes"]) == (False, {})
    assert entry["comment"].splitlines() == [
        "'coment' and 'zzz' are invalid keyword arguments for 'test.configurable_test_state'",
        "Did you mean 'comment' instead of 'coment'?",
        "    at web.sls:3",
    ]


def test_a_missing_parameter(bench, own):
    (entry,) = bench.run(own("a", "returns")).values()
    assert entry["comment"] == "Missing parameter what for state own.returns"


def test_an_exception_becomes_a_failed_state_and_its_traceback_is_logged(bench, own, caplog):
    with caplog.at_level(logging.ERROR):
        running = bench.run(own("a", "raises"), own("b", "looks"), locate=lambda _low, _argument: Mark("web.sls", 7))
    entry = running["own_|-a_|-a_|-raises"]
    comment = re.sub(r"\(/\S+/own\.py:\d+\)", "(PLACE)", entry["comment"])
    assert comment.splitlines() == [
        "An exception occurred in this state: ValueError: boom (PLACE)",
        "    in own.raises",
        "    at web.sls:7",
    ]
    assert "Traceback" in caplog.text
    assert len(running) == 2


def test_an_error_of_an_execution_module_is_told_without_a_class(bench, own):
    (entry,) = bench.run(own("a", "refuses")).values()
    assert entry["comment"].splitlines()[0] == "An exception occurred in this state: the disk is full"


@pytest.mark.parametrize(
    ("what", "comment"),
    [
        (None, "Malformed state return. Data must be a dictionary type."),
        (["a"], "Malformed state return. Data must be a dictionary type."),
        ({"result": True}, "Malformed state return. 'Changes' should be a dictionary."),
        ({"changes": {}, "result": True}, "The following keys were not present in the state return: name, comment."),
    ],
)
def test_a_malformed_return_is_named_as_such(bench, own, what, comment):
    (entry,) = bench.run(own("a", "returns", what=what)).values()
    assert entry["result"] is False
    assert comment in entry["comment"]
    assert entry["__id__"] == "a"


def test_comments_that_are_lists_become_lines_and_results_become_booleans(bench, own):
    returned = {"name": "a", "changes": {}, "result": 1, "comment": ["one", "two"]}
    (entry,) = bench.run(own("a", "returns", what=returned)).values()
    assert (entry["comment"], entry["result"]) == ("one\ntwo", True)


def test_retry_until_it_succeeds(bench, own):
    waits = []
    (entry,) = bench.run(own("a", "flaky", times=2, retry={"attempts": 5, "interval": 3}), pause=waits.append).values()
    assert waits == [3, 3]
    assert (entry["result"], entry["__run_num__"]) == (True, 2)
    assert entry["comment"].splitlines() == [
        'Attempt 1: Returned a result of "False", with the following comment: "try',
        '0"',
        'Attempt 2: Returned a result of "False", with the following comment: "try',
        '1"',
        "try",
        "2",
    ]
    assert entry["duration"] > 6000


def test_retry_gives_up(bench, own):
    waits = []
    (entry,) = bench.run(own("a", "flaky", times=9, retry=True), pause=waits.append).values()
    assert (waits, entry["result"]) == ([30], False)


def test_retry_in_test_mode_only_says_so(bench, own):
    (entry,) = bench.run(own("a", "tests", retry={"attempts": 3, "interval": 5}), test=True, pause=None).values()
    assert entry["comment"].endswith("a maximum of 3 times or until a result of True is returned")


def test_mod_init_runs_until_it_is_content(bench, own):
    context = bench.context()
    run(link([own("a", "tests"), own("b", "tests"), own("c", "tests")]), context, bench.loader)
    assert context.scratch["inits"] == ["a", "b"]


def test_what_a_state_sees_of_the_run(bench, own, low):
    running = bench.run(low("first", order=1), own("a", "looks"))
    assert running["own_|-a_|-a_|-looks"]["comment"] == "a ['test_|-first_|-first_|-nop']"


def test_sub_states_get_entries(bench, own):
    running = bench.run(own("a", "below"), own("b", "tests"))
    entry = running["own_|-a_|-sub_|-below"]
    assert (entry["comment"], entry["changes"], entry["__run_num__"]) == ("sub done", {"x": 1}, 1)
    assert running["own_|-b_|-b_|-tests"]["__run_num__"] == 2


def test_a_state_that_must_not_be_logged_is_masked(bench, own):
    (entry,) = bench.run(own("a", "tests", no_log=True)).values()
    assert (entry["name"], entry["comment"], entry["changes"]) == ("**********", "", {"seen": "**********"})
    assert (entry["__id__"], entry["result"]) == ("a", True)


CONDITIONS = {
    "no condition": ({}, True),
    "of another state": ({"file": "nobody"}, True),
    "met": ({"own.tests": ["nobody", "m1"]}, True),
    "one of two is met": ({"*": "nobody", "own": "os:no", "own.tests": "m*"}, True),
    "not met": ({"own": "nobody"}, None),
    "of all": ({"*": ["not m1"]}, None),
}


@pytest.mark.parametrize(("conditions", "result"), CONDITIONS.values(), ids=CONDITIONS)
def test_global_state_conditions(bench, own, conditions, result):
    bench.opts["global_state_conditions"] = conditions
    (entry,) = bench.run(own("a", "tests")).values()
    assert entry["result"] is result
    assert ("Failed to meet global state conditions" in entry["comment"]) is (result is None)


def test_listeners_react_in_the_order_of_the_run(bench, low):
    changed = low("c", "succeed_with_changes", order=1)
    running = bench.run(changed, low("a", listen=[{"test": "c"}], order=3), low("b", listen=[{"test": "c"}], order=2))
    watched = [entry["__id__"] for entry in running.values() if entry["__id__"].startswith("listener_")]
    assert watched == ["listener_b", "listener_a"]


@pytest.mark.parametrize("fun", ["succeed_with_changes", "nop"])
def test_a_listener_that_is_not_there_is_told_when_it_would_be_needed(bench, low, fun):
    running = bench.run(low("c", fun, listen_in=[{"test": "nothing"}]))
    told = running.get("Listen_Error_|-listen_nothing_|-listen_test_|-Listen_Error", {})
    assert told.get("comment") == ("Referenced state test: nothing does not exist" if fun != "nop" else None)


def test_skip_req_triggers_nothing(bench, own, low):
    running = bench.run(own("a", "skips"), low("b", watch=[{"own": "a"}]), low("c", onchanges=[{"own": "a"}]))
    assert running["test_|-b_|-b_|-nop"]["comment"].endswith("requisites were skipped by another state")
    assert running["test_|-c_|-c_|-nop"]["__state_ran__"] is False


def test_events(bench, low):
    bench.run(low("a"), low("b", fire_event="done/b"), events=True, jid="20260101")
    assert [tag for tag, _ in bench.port.fired] == [
        "salt/job/20260101/prog/m1/0",
        "salt/state_result/20260101/m1/done/b",
    ]
    assert bench.port.fired[0][1]["len"] == 2


def test_no_events_unless_asked_for(bench, low):
    bench.run(low("a"))
    assert bench.port.fired == []


def test_parallel_states_run_in_their_place(bench, low):
    running = bench.run(low("a", parallel=True), low("b", parallel=True, require=[{"test": "a"}]))
    assert [entry["result"] for entry in running.values()] == [True, True]


def test_umask_of_a_state(bench, low):
    (entry,) = bench.run(low("a", umask="9x")).values()
    assert entry["comment"] == "Invalid umask: 9x"


AGGREGATING = """
def installed(name, pkgs=None):
    return {"name": name, "changes": {"got": pkgs or [name]}, "result": True, "comment": ""}


def mod_aggregate(low, chunks, running):
    low["pkgs"] = []
    for chunk in chunks:
        low["pkgs"].append(chunk["name"])
        chunk["__agg__"] = True
    return low
"""


def test_aggregation_gathers_what_is_ready(bench, low):
    bench.write("states/many.py", AGGREGATING)

    def many(id_, **arguments):
        return {**low(id_, "installed", **arguments), "state": "many"}

    chunks = [many("a"), low("x"), many("b"), many("c", require=[{"test": "x"}]), many("d", aggregate=False)]
    running = bench.run(*chunks, aggregate=["many"])
    assert running["many_|-a_|-a_|-installed"]["changes"] == {"got": ["a", "b"]}
    assert running["many_|-d_|-d_|-installed"]["changes"] == {"got": ["d"]}
