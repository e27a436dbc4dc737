"""Trees that hypothesis makes: whole state trees that compile, or nearly.

A tree is drawn as data first (``Sls``), so that what may name what is known: references go mostly from states to those
before them in a drawn order, else hardly a tree would be free of rings. Then it is written as YAML.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml
from hypothesis import strategies as st

from .conftest import Tree

#: SLS of generated trees -> their files. The top file names ``a``, and ``e.f`` in some trees.
SLSES: Mapping[str, str] = {
    "a": "a.sls",
    "b": "b.sls",
    "c": "c/init.sls",
    "c.d": "c/d.sls",
    "e.f": "e/f.sls",
}

DIRECT = (
    *("require", "watch", "onchanges", "onfail", "prereq", "listen", "use"),
    *("require_any", "watch_any", "onchanges_any", "onfail_any", "onfail_all"),
)
BACKWARD = ("require_in", "watch_in", "onchanges_in", "onfail_in", "prereq_in", "listen_in", "use_in")

#: Functions of ``test``, the interesting ones more than once.
FUNCTIONS = (
    *("nop", "nop", "succeed_without_changes", "succeed_with_changes", "succeed_with_changes"),
    *("fail_without_changes", "fail_with_changes", "configurable_test_state"),
)

_ORDERS = (1, 2, 2, 5, -1, -5, 1.5, 20000, "first", "last", "soon")

#: Conditions that start no process. Salt forgets ``fun`` of a condition once it was looked at, which shows in states that are
#: called twice (a prereq's target, a watcher); ``creates`` has no such memory.
_CONDITIONS: tuple[dict[str, Any], ...] = (
    {"onlyif": [{"fun": "test.false"}]},
    {"onlyif": [{"fun": "test.true"}]},
    {"unless": [{"fun": "test.false"}]},
    {"unless": [{"fun": "test.true"}, {"fun": "test.false"}]},
    {"unless": {"fun": "test.true"}},
    {"onlyif": [{"fun": "test.false"}], "unless": [{"fun": "test.false"}]},
)
_EXISTENCE: tuple[dict[str, Any], ...] = ({"creates": "/"}, {"creates": ["/", "/nowhere"]}, {"creates": "/nowhere"})

#: What options a tree may have.
_OPTS: tuple[dict[str, Any], ...] = (
    *({} for _ in range(12)),
    *({"test": True} for _ in range(2)),
    {"state_auto_order": False},
    {"failhard": True},
    {"disabled_requisites": ["require", "watch_in"]},
    {"disabled_requisites": "onchanges"},
)


@dataclass
class Sls:
    """One SLS under way."""

    bodies: dict[str, Any] = field(default_factory=dict)
    include: list[Any] = field(default_factory=list)
    extend: dict[str, Any] = field(default_factory=dict)
    exclude: list[Any] = field(default_factory=list)

    def data(self) -> dict[str, Any]:
        """As it is written."""
        heads = {"include": self.include, "extend": self.extend, "exclude": self.exclude}
        return {key: value for key, value in heads.items() if value} | self.bodies


Draw = Callable[[st.SearchStrategy[Any]], Any]


@dataclass
class _Plan:
    """What is known of a tree before its states are drawn."""

    draw: Draw
    #: ID -> its SLS, its state modules, its names.
    home: dict[str, str] = field(default_factory=dict)
    modules: dict[str, list[str]] = field(default_factory=dict)
    names: dict[str, list[str]] = field(default_factory=dict)
    #: IDs as they may need each other: later ones need earlier ones.
    ranked: list[str] = field(default_factory=list)
    conditions: tuple[dict[str, Any], ...] = _EXISTENCE

    def maybe(self, percent: int) -> bool:
        """True in so many of a hundred draws; shrinks to False."""
        return bool(self.draw(st.integers(0, 99)) >= 100 - percent)

    def one(self, choices: Sequence[Any]) -> Any:
        return self.draw(st.sampled_from(choices))

    def before(self, name: str) -> list[str]:
        return self.ranked[: self.ranked.index(name)]

    def after(self, name: str) -> list[str]:
        return self.ranked[self.ranked.index(name) + 1 :]


@st.composite
def slses(draw: Draw) -> tuple[dict[str, Sls], dict[str, Any]]:
    """SLS by reference, and the options of the tree."""
    plan = _Plan(draw)
    count = draw(st.integers(1, 4))
    used = ["a", *draw(st.permutations(list(SLSES)[1:]))][:count]
    ids = [f"i{number}" for number in range(draw(st.integers(1, 7)))]
    for name in ids:
        plan.home[name] = plan.one(used)
        plan.modules[name] = ["test"] if plan.maybe(85) else ["test", "module"]
        if plan.maybe(10):
            plan.modules[name].reverse()
        plan.names[name] = _names(plan, name)
    plan.ranked = draw(st.permutations(ids))
    watched = plan.maybe(60)
    plan.conditions = _EXISTENCE if watched else _CONDITIONS + _EXISTENCE
    made = {sls: Sls() for sls in used}
    for name in ids:
        made[plan.home[name]].bodies[name] = _body(plan, name, watched)
    _includes(plan, made, used)
    for sls, each in made.items():
        if plan.maybe(20):
            _extends(plan, each, sls, ids, watched)
        if plan.maybe(12):
            each.exclude.append(_excluded(plan, ids, used))
    if plan.maybe(3) and len(used) > 1:
        made[used[-1]].bodies[ids[0]] = "test.nop"
    return made, dict(plan.one(_OPTS))


def trees() -> st.SearchStrategy[Tree]:
    """Whole trees."""
    return slses().map(lambda drawn: written({sls: each.data() for sls, each in drawn[0].items()}, drawn[1]))


def written(data: Mapping[str, Any], opts: Mapping[str, Any]) -> Tree:
    """The tree of this data of SLS."""
    files = {SLSES[sls]: _yaml(each) for sls, each in data.items()}
    top = ["a", "e.f"] if "e.f" in data and sorted(files)[0] == "a.sls" and len(files) % 2 else ["a"]
    return Tree(id="generated", files=files | {"top.sls": _yaml({"base": {"*": top}})}, opts=opts)


class _Plain(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _yaml(data: Any) -> str:
    return yaml.dump(data, Dumper=_Plain, sort_keys=False, default_flow_style=None, width=1000)


def _names(plan: _Plan, name: str) -> list[str]:
    """What an ID is called besides; several are its ``names``."""
    kind = plan.draw(st.integers(0, 9))
    if kind < 6:
        return []
    if kind < 8:
        return [f"n{name[1:]}" if plan.maybe(90) else plan.one(["n0", "i0", "shared"])]
    return [f"n{name[1:]}{letter}" for letter in plan.one(["ab", "ba", "c", "cab"])]


def _body(plan: _Plan, name: str, watched: bool) -> Any:
    modules = plan.modules[name]
    if modules == ["test"] and not plan.names[name] and plan.maybe(10):
        return f"test.{plan.one(FUNCTIONS)}"
    body: dict[str, Any] = {}
    for module in modules:
        function, run = _run(plan, name, module, watched)
        if plan.maybe(70):
            body[f"{module}.{function}"] = run
        else:
            run.insert(plan.draw(st.integers(0, len(run))), function)
            body[module] = run
    return body


def _run(plan: _Plan, name: str, module: str, watched: bool) -> tuple[str, list[Any]]:
    if module == "module":
        function, run = "run", [{"test.ping": []}]
    else:
        function, run = plan.one(FUNCTIONS), []
        if function == "configurable_test_state":
            run += [{"changes": plan.one([True, False])}, {"result": plan.one([True, False])}]
    if len(plan.names[name]) == 1:
        run.append({"name": plan.names[name][0]})
    elif plan.names[name]:
        run.append({"names": [_overridden(plan, each) for each in plan.names[name]]})
    if plan.maybe(20):
        run.append({"order": plan.one(_ORDERS)})
    if plan.maybe(5):
        run.append({"failhard": plan.one([True, False])})
    if plan.maybe(12):
        run += [{key: value} for key, value in plan.one(plan.conditions).items()]
    if plan.maybe(5):
        run.append({"comment": "of its own"})
    if plan.maybe(3):
        run.append({"parallel": False})
    for _ in range(plan.draw(st.integers(0, 2))):
        requisite = _requisite(plan, name, watched)
        if requisite and not any(key in each for key in requisite for each in run):
            run.insert(plan.draw(st.integers(0, len(run))), requisite)
    return function, run


def _overridden(plan: _Plan, name: str) -> Any:
    if plan.maybe(75):
        return name
    return {name: plan.one([[{"comment": "overridden"}], [{"order": 3}, {"failhard": True}], []])}


def _requisite(plan: _Plan, name: str, watched: bool) -> dict[str, Any] | None:
    """A requisite of an ID, None where there is nothing that it could name."""
    backward = plan.maybe(25)
    kind = plan.one(BACKWARD if backward else DIRECT)
    if not watched and kind.removesuffix("_in").removesuffix("_any") in ("watch", "listen", "prereq", "use"):
        kind = "require_in" if backward else "require"
    known = plan.after(name) if backward else plan.before(name)
    if plan.maybe(2):
        known = plan.ranked
    if not known:
        return None
    count = plan.draw(st.integers(1, 2))
    references = [_reference(plan, plan.one(known), kind) for _ in range(count)]
    if kind in ("require_in", "watch_in") and plan.maybe(8):
        # Salt takes a map's ``sls`` for a state module.
        mapped = next((each for each in references if isinstance(each, dict) and "sls" not in each), None)
        if mapped is not None:
            return {kind: mapped}
    return {kind: references}


def _reference(plan: _Plan, other: str, kind: str) -> Any:
    module = plan.one(plan.modules[other])
    chance = plan.draw(st.integers(0, 99))
    if chance < 55:
        return {module: other}
    if chance < 72:
        return {module: plan.one([*plan.names[other], other])}
    if chance < 80:
        return other
    if chance < 85 and kind not in BACKWARD and kind not in ("use", "listen"):
        return {"id": other}
    if chance < 91:
        return {"sls": plan.home[other]}
    if chance < 94 and kind not in BACKWARD:
        return {module: f"{other[:-1]}[{other[-1]}]"}
    if chance < 96 and kind not in BACKWARD:
        return {"sls": f"{plan.home[other][0]}*"}
    if chance < 98 and kind != "listen_in":
        return {f"{module}.nop": other}
    return {module: "nothing" if plan.maybe(50) else other}


def _includes(plan: _Plan, made: Mapping[str, Sls], used: Sequence[str]) -> None:
    """Most trees reach all their SLS; some include in a ring, twice, by globs or relatively."""
    for at, sls in enumerate(used[1:], 1):
        includer = plan.one(used[:at])
        forms: list[Any] = [sls, sls, sls, {"base": sls}, f"{sls[:-1]}?"]
        if sls == "c.d":
            forms += ["c.*", "c*"]
        if sls == "c.d" and includer == "c":
            forms += [".d"]
        if includer == "c.d":
            forms += [f"..{sls}"]
        if plan.maybe(94):
            made[includer].include.append(plan.one(forms))
    if plan.maybe(10):
        made[plan.one(used)].include.append(plan.one(used))


def _extends(plan: _Plan, into: Sls, sls: str, ids: Sequence[str], watched: bool) -> None:
    for _ in range(plan.draw(st.integers(1, 2))):
        other = plan.one(ids)
        module = plan.one(plan.modules[other])
        run: list[Any] = []
        if plan.maybe(50):
            requisite = _requisite(plan, other, watched)
            run += [requisite] if requisite else []
        if plan.maybe(40) or not run:
            run.append(
                plan.one(
                    [{"comment": "extended"}, {"order": 4}, {"name": "extended"}, {"failhard": False}, {"more": 1}]
                )
            )
        if module == "test" and plan.maybe(20):
            run.insert(plan.draw(st.integers(0, len(run))), plan.one(FUNCTIONS[:-1]))
        key = module
        if module == "test" and plan.maybe(10):
            key = "test.nop"
            run = [item for item in run if not isinstance(item, str)]
        named = plan.one([other, other, other, *plan.names[other], "nothing"]) if plan.maybe(20) else other
        into.extend[named] = {key: run}


def _excluded(plan: _Plan, ids: Sequence[str], used: Sequence[str]) -> Any:
    name, sls = plan.one(ids), plan.one(used)
    return plan.one([{"id": name}, {"id": name}, {"sls": sls}, sls, f"{sls[0]}*", {"sls": "c.*"}, {"id": "nothing"}])
