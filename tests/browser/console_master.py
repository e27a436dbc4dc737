"""The console before an API whose master is made up: the real routes and files, and 10,000 minions that are rows of a table.

What the master answers is computed here, so a test decides about fleets, jobs, keys and events, and nothing is started but one
server in a thread. ``python -m tests.browser.console_master PORT`` serves it to be looked at: log in as ann with pw-ann.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import uvicorn

from saltern.api.application import application
from saltern.api.event_feed import EventFeed
from saltern.api.server import Api
from saltern.api.settings import ApiSettings
from saltern.kit.config.master import MasterOptions
from saltern.kit.links.control import ControlError
from saltern.kit.process.metrics import new_metrics
from saltern.mworker.job_queries.matrix import matrix_of
from saltwire.pack import packb
from statecore.model.errors import TargetError
from statecore.targeting.match import Subject, compile_target
from tests.browser.console_answers import answer, finger, fleet, state_run

TOKEN = "ab" * 20
CLIENTS = ["local", "local_async", "runner", "wheel"]

#: Most minions of one job that return.
_MOST_RETURNS = 300


class MadeUpMaster:
    """Answers what the API asks a master, from tables. ``asked`` has each command and its fields."""

    def __init__(self, count: int = 10_000) -> None:
        self.minions = fleet(count, int(time.time() * 1000))
        self.jobs: dict[str, dict[str, Any]] = {}
        self.keys: dict[str, list[str]] = {
            "minions": list(self.minions),
            "minions_pre": ["db-9000.example.net", "web-2000.example.net", "web-2001.example.net"],
            "minions_rejected": ["old-laptop"],
            "minions_denied": ["web-0001.example.net"],
        }
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.feed = EventFeed(1000, lambda: None)
        self.loop: asyncio.AbstractEventLoop | None = None
        #: Command -> error with which it fails.
        self.broken: dict[str, Exception] = {}
        #: Seconds between a publication and its returns; None: minions return nothing by themselves.
        self.pause: float | None = 0.05
        #: Commands that are answered when their Event is set.
        self.held: dict[str, threading.Event] = {}
        self._last = 0

    # ------------------------------------------------------------------------------------------------------------- jobs

    def add_job(
        self,
        fun: str,
        returns: Mapping[str, Any],
        *,
        tgt: Any = "*",
        tgt_type: str = "glob",
        arg: Sequence[Any] = (),
        user: str = "ann",
        waiting: Mapping[str, str] | Sequence[str] = (),
        retcodes: Mapping[str, int] | None = None,
        age: timedelta = timedelta(),
    ) -> str:
        """Add a job with these returns ({minion: return}) and return its JID. ``waiting``: minions that have not returned, with
        their states.
        """
        self._last = (
            max(self._last + 1, int((datetime.now(UTC) - age).strftime("%Y%m%d%H%M%S%f"))) if not age else self._last
        )
        jid = str(self._last) if not age else (datetime.now(UTC) - age).strftime("%Y%m%d%H%M%S%f")
        load = {"jid": jid, "fun": fun, "arg": list(arg), "tgt": tgt, "tgt_type": tgt_type, "user": user}
        self.jobs[jid] = {
            "load": load,
            "returns": {},
            "expected": [*returns, *waiting],
            "states": dict(waiting) if isinstance(waiting, Mapping) else {},
        }
        for name, value in returns.items():
            self._keep_return(jid, name, value, (retcodes or {}).get(name, 0))
        return jid

    def _keep_return(self, jid: str, minion: str, value: Any, retcode: int) -> None:
        load = {"id": minion, "jid": jid, "return": value, "retcode": retcode, "success": not retcode}
        self.jobs[jid]["returns"][minion] = load

    def add_return(self, jid: str, minion: str, value: Any, retcode: int = 0) -> None:
        """Add a minion's return to a job, and fire its event. Call from any thread."""
        self._keep_return(jid, minion, value, retcode)
        fun = self.jobs[jid]["load"]["fun"]
        self.fire(f"salt/job/{jid}/ret/{minion}", {"jid": jid, "id": minion, "fun": fun, "return": value})

    def fire(self, tag: str, data: Mapping[str, Any]) -> None:
        """Send an event to everybody who listens. Call from any thread."""
        frame = tag.encode() + b"\n\n" + packb({**data, "_stamp": datetime.now(UTC).isoformat()})
        if self.loop is not None:
            self.loop.call_soon_threadsafe(self.feed.receive, tag, frame)

    @contextmanager
    def holding(self, cmd: str) -> Iterator[None]:
        """Answer a command only after the ``with`` block; further questions with it are answered then, too."""
        answer_now = self.held[cmd] = threading.Event()
        try:
            yield
        finally:
            self.held.pop(cmd, None)
            answer_now.set()

    def published(self, fun: str) -> list[dict[str, Any]]:
        """Return the publications of a function, as the API asked for them."""
        return [fields for cmd, fields in self.asked if cmd == "publish" and fields["fun"] == fun]

    def _meta(self, job: Mapping[str, Any]) -> dict[str, str]:
        returns = job["returns"]
        failed = sum(bool(each["retcode"]) for each in returns.values())
        counted = {
            "expected": len(job["expected"]),
            "answered": len(returns),
            "returned": len(returns),
            "failed": failed,
        }
        ended = {"ended": "1"} if len(returns) == len(job["expected"]) else {}
        return {name: str(value) for name, value in counted.items()} | ended

    # --------------------------------------------------------------------------------------------------------- commands

    async def call(self, cmd: str, *, timeout: float = 0, once: bool = False, **fields: Any) -> Any:
        """Answer one command as a worker would."""
        self.asked.append((cmd, fields))
        answer_now = self.held.get(cmd)
        while answer_now is not None and not answer_now.is_set():
            await asyncio.sleep(0.005)
        if cmd in self.broken:
            raise self.broken[cmd]
        return getattr(self, f"_{cmd}")(**fields)

    def _login(self, username: Any = None, password: Any = None, **_: Any) -> dict[str, Any]:
        if password != f"pw-{username}":
            raise ControlError("EauthAuthenticationError", "no")
        perms = [".*", "@runner", "@wheel", "@jobs"] if username == "ann" else []
        now = time.time()
        return {"token": TOKEN, "start": now, "expire": now + 3600, "name": username, "eauth": "file", "perms": perms}

    def _logout(self, **_: Any) -> bool:
        return True

    def _token_info(self, of: str) -> dict[str, Any]:
        if of != TOKEN:
            raise ControlError("TokenAuthenticationError", "unknown")
        return {"name": "ann", "perms": [".*"], "expire": time.time() + 3600}

    def _kept_events(self, **_: Any) -> list[Any]:
        return []

    def _matching(self, tgt: Any, tgt_type: str) -> list[str]:
        if tgt_type == "list":
            return [name for name in (tgt.split(",") if isinstance(tgt, str) else tgt) if name in self.minions]
        if tgt == "*":
            return list(self.minions)
        try:
            matcher = compile_target(tgt, tgt_type)
        except TargetError as error:
            raise ControlError("TargetError", str(error)) from error
        return [name for name, row in self.minions.items() if matcher(Subject(name, {"os": row["os"]}))]

    def _fleet(self, token: str, tgt: Any = "*", tgt_type: str = "glob", ids: bool = False) -> dict[str, Any]:
        names = self._matching(tgt, tgt_type)
        rows: list[Any] = list(names) if ids else [self.minions[name] for name in names]
        return {"minions": rows, "missing": [], "now": int(time.time() * 1000), "window": 90}

    def _topology(self, token: str) -> dict[str, Any]:
        now, waiting = int(time.time() * 1000), int(time.time() * 3) % 9
        clients = [("maintenance", 8, 1), ("mworker", 4, 3), ("mworker", 5, 3), ("publisher", 6, 1), ("reactor", 7, 2)]
        rows = [
            {"name": name, "address": f"10.1.0.{host}", "connections": count, "age": 86400, "idle": 0}
            for name, host, count in clients
        ]
        pools = {"default": {"waiting": waiting, "workers": 6, "busy": 2 + waiting % 3}}
        return {
            "master": "salt.example.net",
            "now": now,
            "redis": {
                "redis_version": "7.2.5",
                "role": "master",
                "uptime_in_seconds": 777_600,
                "connected_clients": 12,
                "used_memory": 812_000_000,
                "maxmemory": 2_000_000_000,
                "connected_slaves": 1,
                "keys": 31_204,
                "instantaneous_ops_per_sec": 400 + waiting * 37,
                "aof_enabled": 1,
                "aof_last_write_status": "ok",
            },
            "clients": rows,
            "reqservers": {"reqserver-0": {"at": now - 2000, "pools": pools, "connections": len(self.minions)}},
            "publishers": {f"publisher-{number}": {"seen": now - 900, "sent": now - 4000} for number in range(2)},
            "newest_publication": now - 4000,
            "reactor": {"waiting": 0, "in_hand": 1, "missed": 0, "dead": 0},
            "lengths": {
                "publications": 2210,
                "events": 20_000,
                "jobs": len(self.jobs),
                "waiting_jobs": 1,
                "runners": 0,
            },
            "minions": {
                "accepted": len(self.minions),
                "pending": len(self.keys["minions_pre"]),
                "rejected": 1,
                "denied": 1,
            }
            | {"present": sum(row["present"] for row in self.minions.values())},
        }

    def _find_jobs(self, token: str, filters: Mapping[str, Any]) -> dict[str, Any]:
        found = []
        for jid in sorted(self.jobs, reverse=True):
            job = self.jobs[jid]
            meta = self._meta(job)
            wanted = (
                not (filters.get("success") is False and meta["failed"] == "0")
                and not (filters.get("state") == "running" and "ended" in meta)
                and job["load"]["fun"].startswith(str(filters.get("function", "")).rstrip("*"))
                and filters.get("minion", "") in ("", *job["expected"])
            )
            if wanted:
                found.append({"jid": jid, "load": job["load"], "meta": meta})
        return {"jobs": found, "cursor": ""}

    def _known(self, jid: str) -> dict[str, Any]:
        if jid not in self.jobs:
            raise ControlError("UnknownJob", f"no job with the JID {jid} is in the job cache")
        return self.jobs[jid]

    def _job_call(self, token: str, jid: str) -> dict[str, Any]:
        return {**self._known(jid)["load"], "metadata": None}

    def _job_status(self, token: str, jid: str) -> dict[str, Any]:
        job = self._known(jid)
        states = {
            name: "returned" if name in job["returns"] else job["states"].get(name, "started")
            for name in job["expected"]
        }
        created = int(datetime.strptime(jid, "%Y%m%d%H%M%S%f").replace(tzinfo=UTC).timestamp() * 1000)
        return {
            "jid": jid,
            "created": created,
            "complete": not {"started", "delivered", "expected"} & set(states.values()),
            "minions": {name: {"state": state, "since": created} for name, state in states.items()},
        }

    def _job_matrix(self, token: str, jid: str, minions: Any = None, cursor: Any = None) -> dict[str, Any]:
        returns = self._known(jid)["returns"]
        if minions is not None:
            return {**matrix_of({name: returns[name] for name in minions if name in returns}), "cursor": None}
        names = [name for name in sorted(returns) if name > (cursor or "")]
        return {
            **matrix_of({name: returns[name] for name in names[:100]}),
            "cursor": names[99] if len(names) > 100 else None,
        }

    def _job_returns(self, token: str, jid: str, minions: Any = None) -> dict[str, Any]:
        returns = self.jobs.get(jid, {"returns": {}})["returns"]
        return {name: load for name, load in returns.items() if minions is None or name in minions}

    def _publish(self, token: str, tgt: Any, tgt_type: str, fun: str, arg: Any, **_: Any) -> dict[str, Any]:
        names = self._matching(tgt, tgt_type)
        if not names:
            return {"jid": None, "minions": [], "missing": []}
        jid = self.add_job(fun, {}, tgt=tgt, tgt_type=tgt_type, arg=arg, waiting=names)
        self.fire(f"salt/job/{jid}/new", {"jid": jid, "fun": fun, "tgt": tgt, "minions": names[:10]})
        if self.pause is not None:
            threading.Timer(self.pause, self._return_all, (jid, names[:_MOST_RETURNS], fun, arg)).start()
        return {"jid": jid, "minions": names, "missing": []}

    def _return_all(self, jid: str, names: Sequence[str], fun: str, arg: Any) -> None:
        for number, name in enumerate(names):
            self.add_return(jid, name, *answer(self.minions[name], number, fun, arg))

    def _runner(self, token: str, fun: str, arg: Any, kwarg: Any, **_: Any) -> dict[str, str]:
        value: Any = None
        if fun == "jobs.rerun":
            old = self.jobs[kwarg["jid"]]
            failed = [name for name, load in old["returns"].items() if load["retcode"]]
            made = self.add_job(old["load"]["fun"], {}, tgt=failed, tgt_type="list", waiting=failed)
            self._return_all(made, failed, "state.apply", [])
            value = {"jid": made, "repeats": kwarg["jid"], "minions": failed, "missing": []}
        jid = self.add_job(f"runner.{fun}", {"salt.example.net": value})
        return {"tag": f"salt/run/{jid}", "jid": jid}

    def _wheel(self, token: str, fun: str, arg: Any, kwarg: Any, full: bool = False) -> dict[str, Any]:
        value: Any = {}
        if fun == "key.list_all":
            value = {**self.keys, "local": []}
        elif fun == "key.finger":
            value = {state: {name: finger(name) for name in names} for state, names in self.keys.items()}
        else:
            to = {"key.accept_dict": "minions", "key.reject_dict": "minions_rejected"}.get(fun)
            for state, names in kwarg["match"].items():
                for name in names:
                    self.keys[state].remove(name)
                    if to:
                        self.keys[to].append(name)
        return {"tag": "salt/wheel/1", "data": {"fun": f"wheel.{fun}", "jid": "1", "return": value, "success": True}}

    def _ping(self, **_: Any) -> dict[str, str]:
        return {"id": "salt.example.net"}


def with_jobs(master: MadeUpMaster) -> MadeUpMaster:
    """Add jobs as a fleet has them after a day. The newest state run has three failures."""
    names = list(master.minions)
    for hours, fun, count in (
        (30, "test.ping", 900),
        (9, "pkg.upgrade", 120),
        (7, "cmd.run", 40),
        (5, "test.version", 800),
    ):
        few, age = names[:count], timedelta(hours=hours)
        bad = {few[3]: 1} if fun == "pkg.upgrade" else {}
        master.add_job(fun, dict.fromkeys(few, True), user="bob", retcodes=bad, age=age)
    web = [name for name in names if name.startswith("web")][:64]
    failing = dict.fromkeys((web[5], web[17], web[40]), 2)
    master.add_job(
        "state.apply",
        {name: state_run(number, fails=name in failing) for number, name in enumerate(web)},
        tgt="web-00* and G@os:Debian",
        tgt_type="compound",
        arg=["nginx,users"],
        retcodes=failing,
        waiting={"web-0064.example.net": "offline", "web-0065.example.net": "lost"},
        age=timedelta(minutes=12),
    )
    usage = {name: {"/": {"used": "41%" if number % 9 else "93%"}} for number, name in enumerate(names[:30])}
    master.add_job("disk.usage", usage, tgt="*-0000*", age=timedelta(minutes=2))
    return master


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Do nothing: the server runs in a thread."""
        yield


@contextmanager
def served(master: MadeUpMaster, port: int = 0, **settings: Any) -> Iterator[str]:
    """Serve the API of a made-up master in a thread; yield its address."""
    made = ApiSettings(disable_ssl=True, host="127.0.0.1", port=port, **settings)
    options = MasterOptions(netapi_enable_clients=CLIENTS, id="salt.example.net")
    api = Api(options, made, master, master.feed, new_metrics("api"), logging.getLogger("saltern.api"))  # type: ignore[arg-type]
    config = uvicorn.Config(
        application(api), host=made.host, port=port, loop="asyncio", lifespan="off", log_config=None, access_log=False
    )
    server = _Server(config)
    listening = config.bind_socket()

    async def serve() -> None:
        master.loop = asyncio.get_running_loop()
        await server.serve(sockets=[listening])

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    try:
        deadline = time.monotonic() + 30
        while not server.started and time.monotonic() < deadline:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = server.force_exit = True
        thread.join(10)


if __name__ == "__main__":
    with served(with_jobs(MadeUpMaster()), int(sys.argv[1])) as address:
        sys.stdout.write(json.dumps({"console": f"{address}/console/"}) + "\n")
        threading.Event().wait()
