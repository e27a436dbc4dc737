"""Run of a graph of low chunks: calls the states that ``machine`` chooses, and passes their results back to it.

Calls states here or in parallel processes, numbers and times them, repeats them (``retry``), calls mod_watch, fires
events. ``machine`` decides order and requisites.

Source: docs/state-system.md#runtime
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from statecore.compile.graph import Graph, Node, link
from statecore.engine import report
from statecore.engine.call import Locate, call_state, finish
from statecore.engine.listen import listening
from statecore.engine.machine import Adopt, CallState, Instruction, LeaveOut, Machine, Wait
from statecore.engine.parallel import Children
from statecore.loader import Loader
from statecore.loader.tables import attached
from statecore.model import redaction
from statecore.model.context import Context
from statecore.model.errors import NotAvailable
from statecore.model.lazy import lazy_module
from statecore.model.types import Low, Running, RunningEntry, tag

if TYPE_CHECKING:
    from statecore.model import log_text
else:
    log_text = lazy_module("statecore.model.log_text")

log = logging.getLogger(__name__)

#: State arguments that reload something after the state ran.
RELOADS = ("reload_grains", "reload_pillar", "reload_modules")

#: State module -> whether its changes may make more modules available: it installs packages, or writes module files.
_BRINGS_MODULES: Mapping[str, Callable[[Low], bool]] = {
    "pkg": lambda _low: True,
    "pip": lambda _low: True,
    "ports": lambda _low: True,
    "file": lambda low: (
        low["fun"] == "recurse"
        or (low["fun"] == "managed" and str(low["name"]).endswith((".py", ".so")))
        or (low["fun"] == "symlink" and "bin" in str(low["name"]))
    ),
}


def _splay(most: int) -> int:
    """Return a random number of seconds from 0 to ``most``. It only spreads load over minions, so it need not be
    secure.
    """
    if not most:
        return 0
    # Few runs have a splay, so most need not load the module.
    import random

    return random.randint(0, most)


def _log_end(low: Low, entry: RunningEntry) -> None:
    """Log the end of a state: with level error if the state failed, and with level info its changes, result and
    duration.
    """
    if entry["result"] is False and log.isEnabledFor(logging.ERROR):
        log.error(
            "State %s of SLS %s (%s.%s) failed: %s",
            entry["__id__"],
            low.get("__sls__"),
            low["state"],
            low["fun"],
            log_text.command_text(str(entry["comment"])),
        )
    if not log.isEnabledFor(logging.INFO):
        return
    if entry["changes"]:
        changes = list(entry["changes"]) if redaction.is_hidden(low) else entry["changes"]
        log.info("Made the following changes:\n%s", log_text.data_text(changes))
    log.info(
        "Completed state [%s] with result %s (duration_in_ms=%s)",
        redaction.shown_name(low),
        entry["result"],
        entry["duration"],
    )
    log.debug("Comment of state %s: %s", entry["__id__"], entry["comment"])


def _nowhere(_low: Low, _argument: str) -> None:
    return None


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """Options of one state run, and functions that the engine calls during it (to locate SLS lines, reload data, pause)."""

    failhard: bool = False
    #: True, or the names of state modules whose chunks may be merged into one call (Salt's state_aggregate).
    aggregate: bool | Sequence[str] = False
    #: Most states with ``parallel: True`` that run at once (Salt's state_max_parallel); 0: no limit.
    max_parallel: int = 0
    #: Whether to fire the event ``salt/job/<jid>/prog/<id>/<run number>`` after each state.
    events: bool = False
    jid: str = ""
    #: Limits the run to the chunks for which it returns True, and their requisites. ``listen`` is ignored then.
    wanted: Callable[[Low], bool] | None = None
    locate: Locate = _nowhere
    #: (context, names of RELOADS) -> context with these reloaded; None: reloads are ignored.
    reload: Callable[[Context, frozenset[str]], Context] | None = None
    #: Called before each state; False ends the run before that state. It blocks while the run is paused.
    may_go_on: Callable[[Low], bool] | None = None
    #: Sleeps that many seconds between attempts of a ``retry``.
    pause: Callable[[float], None] = time.sleep
    now: Callable[[], datetime] = datetime.now


def run(graph: Graph, ctx: Context, loader: Loader, options: EngineOptions | None = None) -> Running:
    """Run the states of a requisite graph in its order, each after its requisites. Return the running dictionary.

    The run is in test mode if ``ctx.test`` is True. ``listen`` calls follow after all states.
    """
    driver = _Driver(loader, options or EngineOptions())
    driver.begin(ctx, graph)
    running = driver.walk(graph)
    if driver.options.wanted is not None:
        return running
    after = listening(list({id(low): low for low in _listed(graph)}.values()), running)
    if after.chunks:
        running.update(driver.walk(link(after.chunks)))
    for name, entry in after.errors.items():
        running[name] = {**entry, "__run_num__": driver.number()}
    return running


def single(low: Low, ctx: Context, loader: Loader, options: EngineOptions | None = None) -> RunningEntry:
    """Call the state of one low chunk without its requisites. Return its entry of the running dictionary."""
    driver = _Driver(loader, options or EngineOptions())
    driver.begin(ctx, Graph((low,), (tag(low),), ((),), ((),)))
    return driver.call(CallState(node=Node(0), low=low))


def _listed(graph: Graph) -> tuple[Low, ...]:
    """Return the low chunks in run order, which Salt's modules see as ``__lowstate__``."""
    return tuple(graph.chunks[node.position] for node in graph.order) or graph.chunks


@dataclass(slots=True)
class _Driver:
    """One state run in progress: the numbers of its states, its Context objects, and the state modules whose
    ``mod_init`` was called.
    """

    loader: Loader
    options: EngineOptions
    _number: int = 0
    _length: int = 0
    _ctx: Context = field(init=False)
    #: Context in test mode, for prereq checks.
    _check_ctx: Context = field(init=False)
    _running: Running = field(default_factory=dict)
    _initialised: set[str] = field(default_factory=set)

    def begin(self, ctx: Context, graph: Graph) -> None:
        """Prepare the context of the state run, and a second context in test mode for the checks of ``prereq``."""
        self._ctx = attached(replace(ctx, lowstate=_listed(graph)), self.loader, finish)
        self._check_ctx = attached(replace(self._ctx, test=True), self.loader, finish)
        self._length = len(graph.chunks)

    def walk(self, graph: Graph) -> Running:
        """Run the states of a graph, to the end or to the first failure with ``failhard``. Return the running
        dictionary.
        """
        machine = Machine(graph, self._stops, self.options.wanted)
        self._running = machine.running
        children = Children()
        while (instruction := machine.step()) is not None:
            if isinstance(instruction, Wait):
                self._collect(children, instruction.nodes, machine)
            elif self.options.may_go_on is not None and not self.options.may_go_on(instruction.low):
                break
            elif isinstance(instruction, CallState) and instruction.low.get("parallel") and not instruction.node.check:
                self._begin_parallel(children, instruction, machine)
            else:
                self._record(instruction, self._perform(instruction, machine), machine)
        while len(children):
            # Children are left only if the run was ended early.
            self._collect(children, children.all(), machine)
        return machine.running

    def _record(self, instruction: Instruction, entry: RunningEntry, machine: Machine) -> None:
        below = entry.pop("sub_state_run", ())
        machine.feed(instruction, entry)
        for sub in below:
            chunk: Low = sub["low"]
            machine.running[tag(chunk)] = self._sub_entry(instruction.low, chunk, sub)
        if not (isinstance(instruction, CallState) and instruction.node.check):
            self._fire(instruction.low, entry)

    def _begin_parallel(self, children: Children, instruction: CallState, machine: Machine) -> None:
        """Start a state in a child process. If no child can be started, call the state in this process and pass its
        entry of the running dictionary to the machine.

        If the maximum number of parallel states runs already, wait until one of them ends. The state's run number is
        the number at its start.
        """
        if self.options.max_parallel and len(children) >= self.options.max_parallel:
            self._collect(children, children.all(), machine)
        instruction = instruction._replace(low=self._aggregated(instruction, machine))
        self._initialise(instruction.low)
        number = self._number
        try:
            children.start(instruction, lambda: {**self.call(instruction), "__run_num__": number})
        except OSError as error:
            log.warning(
                "The parallel state %s runs in the main process: no process could be started: %s",
                redaction.shown_id(instruction.low),
                error,
            )
            self._record(instruction, self.call(instruction), machine)
            return
        self.number()
        machine.begun(instruction)

    def _collect(self, children: Children, nodes: Collection[Node], machine: Machine) -> None:
        """Wait until one of the parallel states ``nodes`` (nodes of the run list) ends in its child process. Pass its
        entry of the running dictionary to the machine.
        """
        instruction, entry = children.finished(nodes)
        if "__run_num__" not in entry:
            entry = redaction.shown_return(instruction.low, entry)
            entry = report.ran(instruction.low, entry, self.number(), self.options.now(), timedelta())
        self._reload(instruction.low, entry)
        self._record(instruction, entry, machine)

    def number(self) -> int:
        """Return the number of the next state to run (``__run_num__`` in its entry), counted from 0."""
        self._number += 1
        return self._number - 1

    def _stops(self, low: Low, entry: RunningEntry) -> bool:
        if self._ctx.test or entry["result"] is not False:
            return False
        return bool(low.get("failhard", self.options.failhard))

    def _perform(self, instruction: Instruction, machine: Machine) -> RunningEntry:
        match instruction:
            case CallState():
                low = self._aggregated(instruction, machine)
                return self.call(instruction if low is instruction.low else instruction._replace(low=low))
            case LeaveOut(low=low, result=result, comment=comment):
                log.info("State %s is not called (result %s): %s", redaction.shown_id(low), result, comment)
                return report.left_out(low, result, comment, self.number(), self.options.now())
            case Adopt(low=low, entry=entry):
                return report.ran(low, entry, self.number(), self.options.now(), timedelta())

    def call(self, instruction: CallState) -> RunningEntry:
        """Call a state and return its entry of the running dictionary.

        The call is repeated as the state's ``retry`` demands. Then mod_watch is called if a watched state changed. A check for
        a ``prereq`` is called once in test mode.
        """
        low = instruction.low
        if instruction.node.check:
            checked = call_state(low, self._for(low, self._check_ctx), self.loader, self.options.locate)
            return redaction.shown_return(low, checked)
        self._initialise(low)
        entry = self._attempts(low)
        if instruction.watch and not entry["changes"] and not entry.get("skip_watch"):
            entry = self._attempts(self._watching(low, instruction.requisites))
        if instruction.unwatched:
            entry["comment"] += " mod_watch was not run because requisites were skipped by another state"
        return entry

    def _watching(self, low: Low, requisites: Mapping[str, list[Low]]) -> Low:

        changed = [each for each in requisites.get("watch", ()) if self._running[tag(each)]["changes"]]
        return {**low, "sfun": low["fun"], "fun": "mod_watch", "__reqs__": dict(requisites), "__changed__": changed}

    def _attempts(self, low: Low) -> RunningEntry:
        entry = self._timed(low)
        if "retry" not in low:
            return entry
        plan = parse_retry(low["retry"])
        if self._ctx.test:
            entry["comment"] = "  ".join([entry["comment"], plan.would()])
            return entry
        comments: list[str] = []
        for attempt in range(1, plan.attempts):
            if entry["result"] is plan.until:
                break
            comments.append(attempt_comment(attempt, entry["result"], entry["comment"]))
            wait = plan.interval + _splay(plan.splay)
            self.options.pause(wait)
            again = self._timed(low)
            again["duration"] += entry["duration"] + wait * 1000
            again["start_time"] = entry["start_time"]
            entry = again
        entry["comment"] = "\n".join([*comments, entry["comment"]])
        return entry

    def _timed(self, low: Low) -> RunningEntry:
        log.info("Executing state %s.%s for [%s]", low["state"], low["fun"], redaction.shown_name(low))
        number = self.number()
        started = self.options.now()
        outcome = call_state(low, self._for(low, self._ctx), self.loader, self.options.locate)
        took = self.options.now() - started
        self._reload(low, outcome)
        entry = report.ran(low, redaction.shown_return(low, outcome), number, started, took)
        _log_end(low, entry)
        return entry

    def _for(self, low: Low, ctx: Context) -> Context:
        return ctx.for_chunk(low, test=ctx.test, running=self._running)

    def _initialise(self, low: Low) -> None:
        """Call the state module's mod_init before each of its states until mod_init returns True."""
        state = low["state"]
        if state in self._initialised:
            return
        try:
            served, function = self.loader.function("states", f"{state}.mod_init", self._ctx)
        except NotAvailable:
            self._initialised.add(state)
            return
        if served.bound(function, self._for(low, self._ctx))(low):
            self._initialised.add(state)

    def _aggregated(self, instruction: CallState, machine: Machine) -> Low:
        """Return the chunk with similar chunks merged into it by mod_aggregate, if the options and the module allow
        aggregation.
        """
        low = instruction.low
        if instruction.node.check or low.get("__agg__") or not self._may_gather(low):
            return low
        try:
            served, function = self.loader.function("states", f"{low['state']}.mod_aggregate", self._ctx)
        except NotAvailable:
            return low
        ready = machine.ready(
            lambda each: each["state"] == low["state"] and not each.get("__agg__") and self._may_gather(each)
        )
        if len(ready) < 2:
            return low
        low["__agg__"] = True
        gathered: Low = served.bound(function, self._for(low, self._ctx))(low, ready, self._running)
        return gathered

    def _may_gather(self, low: Low) -> bool:
        allowed = low.get("aggregate", self.options.aggregate)
        return allowed is True or (isinstance(allowed, list | tuple) and low["state"] in allowed)

    def _reload(self, low: Low, outcome: Mapping[str, object]) -> None:
        """Replace the run's context by one with reloaded grains, pillar or modules, if the chunk has ``reload_grains``
        or a similar argument.

        After a state that may have installed modules, try again to load the unavailable ones.
        """
        wanted = frozenset([key for key in RELOADS if low.get(key)])
        if not outcome["changes"]:
            wanted -= {"reload_modules"}
        if low.get("force_reload_modules"):
            wanted |= {"reload_modules"}
        if wanted and self.options.reload is not None:
            base = self.options.reload(self._ctx, wanted)
            self._ctx = attached(base, self.loader, finish)
            self._check_ctx = attached(replace(base, test=True), self.loader, finish)
        elif outcome["changes"] and (brings := _BRINGS_MODULES.get(low["state"])) is not None and brings(low):
            self.loader.retry()

    def _sub_entry(self, low: Low, chunk: Low, sub: Mapping[str, object]) -> RunningEntry:
        """Return the running dictionary's entry of a state that another state's module ran inside its own call.

        ``chunk`` is the state's low chunk, ``low`` that of the other state. ``sub`` is the state's item in the key
        ``sub_state_run`` of the module's return.
        """
        entry = report.ran(low, {}, self.number(), self.options.now(), timedelta())
        given = {key: sub[key] for key in ("duration", "start_time", "comment") if key in sub}
        return {
            **entry,
            "__state_ran__": True,
            **redaction.shown_return(
                {**chunk, "no_log": low.get("no_log") or chunk.get("no_log")},
                {
                    "comment": "",
                    **given,
                    "name": chunk["name"],
                    "changes": sub["changes"],
                    "result": sub["result"],
                },
            ),
        }

    def _fire(self, low: Low, entry: RunningEntry) -> None:
        wanted = low.get("fire_event", False)
        if not (wanted or self.options.events):
            return
        minion = self._ctx.opts.get("id", "")
        data: dict[str, object] = {"ret": entry}
        if wanted is True or (isinstance(wanted, str) and wanted):
            label = entry["name"] if wanted is True else wanted
            tag = f"salt/state_result/{self.options.jid}/{minion}/{label}"
        else:
            tag = f"salt/job/{self.options.jid}/prog/{minion}/{entry['__run_num__']}"
            data["len"] = self._length
        self._ctx.events.fire(tag, data)


class Retry(NamedTuple):
    """Argument ``retry`` of a Salt state: the state is called again until its result is ``until``.

    ``attempts`` counts the first call too. ``interval`` and ``splay`` are seconds.
    """

    until: bool = True
    attempts: int = 2
    interval: int = 30
    splay: int = 0

    def would(self) -> str:
        """Return Salt's comment for a state with ``retry`` in test mode."""
        return (
            f"The state would be retried every {self.interval} seconds (with a splay of up to {self.splay} seconds)"
            f" a maximum of {self.attempts} times or until a result of {self.until} is returned"
        )


_Option = TypeVar("_Option", bool, int)


def parse_retry(value: object) -> Retry:
    """Return the Retry for the argument ``retry`` of a Salt state (True, False or a map).

    A value of a wrong type is logged, and its default is used.
    """
    if value is True:
        return Retry()
    if value is False:
        return Retry(attempts=0)
    if not isinstance(value, dict):
        log.warning("retry is %r; True or a dict was expected, using the defaults", value)
        return Retry()
    defaults = Retry()
    return Retry(
        until=_retry_option(value, "until", bool, defaults.until),
        attempts=_retry_option(value, "attempts", int, defaults.attempts),
        interval=_retry_option(value, "interval", int, defaults.interval),
        splay=_retry_option(value, "splay", int, defaults.splay),
    )


def _retry_option(given: Mapping[object, object], key: str, kind: type[_Option], default: _Option) -> _Option:
    value = given.get(key, default)
    if isinstance(value, kind):
        return value
    log.warning("retry: %s must be a %s, not %r; using the default", key, kind.__name__, value)
    return default


def attempt_comment(attempt: int, result: object, comment: str) -> str:
    """Return Salt's comment line for a failed attempt of a state with ``retry``."""
    return f'Attempt {attempt}: Returned a result of "{result}", with the following comment: "{comment}"'
