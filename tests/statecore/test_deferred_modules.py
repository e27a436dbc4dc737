from __future__ import annotations

import subprocess
import sys

_SECONDS = 120

_USED = """
import sys
from concurrent.futures import ThreadPoolExecutor
from statecore.deferred_modules import DEFERRED, defer

assert not {*DEFERRED} & {*sys.modules}, "loaded before anybody could defer it"
defer()
import inspect, ipaddress, pickle

def plain(): ...
async def later(): ...

# What others ask all the time costs nothing, and is what the modules say.
kinds = [inspect.iscoroutinefunction(each) for each in (plain, later)]
coroutine = later()
kinds += [inspect.iscoroutine(coroutine), inspect.iscoroutine(plain)]
assert kinds == [False, True, True, False], kinds
known = pickle.DEFAULT_PROTOCOL
assert [type(each).__name__ for each in (inspect, ipaddress, pickle)] == ["_Deferred"] * 3
assert not hasattr(inspect, "__path__") and inspect.__file__.endswith("inspect.py")

with ThreadPoolExecutor(8) as pool:
    found = set(pool.map(lambda _: inspect.signature, range(64)))
assert len(found) == 1 and str(inspect.signature(plain)) == "()"
from ipaddress import ip_address
assert str(ip_address("::1")) == "::1"
assert pickle.loads(pickle.dumps({"a": 1})) == {"a": 1} and known == pickle.DEFAULT_PROTOCOL
assert inspect.iscoroutinefunction(later) and inspect.iscoroutine(coroutine)
assert not hasattr(pickle, "no_such_name")
assert [type(each).__name__ for each in (inspect, ipaddress, pickle)] == ["module"] * 3
defer()
assert sys.modules["inspect"] is inspect
coroutine.close()
"""


def test_a_deferred_module_is_the_module_once_it_is_used() -> None:
    done = subprocess.run([sys.executable, "-c", _USED], capture_output=True, text=True, timeout=_SECONDS, check=False)
    assert done.returncode == 0, done.stderr
