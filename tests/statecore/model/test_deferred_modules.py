from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

_SECONDS = 120

_USED = """
import sys
from statecore.model.deferred_modules import DEFERRED, defer

assert not {*DEFERRED} & {*sys.modules}, "loaded before anybody could defer it"
defer()
import hashlib, hmac, inspect, ipaddress, pickle
from concurrent.futures import ThreadPoolExecutor

def plain(): ...
async def later(): ...

# What others ask all the time costs nothing, and is what the modules say.
kinds = [inspect.iscoroutinefunction(each) for each in (plain, later)]
coroutine = later()
kinds += [inspect.iscoroutine(coroutine), inspect.iscoroutine(plain)]
assert kinds == [False, True, True, False], kinds
known = pickle.DEFAULT_PROTOCOL
short = hashlib.sha1(b"return 1", usedforsecurity=False).hexdigest()
assert hashlib.sha256(b"abc").hexdigest().startswith("ba7816bf8f01cfea") and "_hashlib" not in sys.modules
import secrets
assert secrets.compare_digest(secrets.token_hex(2), "") is False
assert [type(each).__name__ for each in (hashlib, hmac, inspect, ipaddress, pickle)] == ["_Deferred"] * 5
assert not hasattr(inspect, "__path__") and inspect.__file__.endswith("inspect.py")

with ThreadPoolExecutor(8) as pool:
    found = set(pool.map(lambda _: inspect.signature, range(64)))
assert len(found) == 1 and str(inspect.signature(plain)) == "()"
from ipaddress import ip_address
assert str(ip_address("::1")) == "::1"
assert pickle.loads(pickle.dumps({"a": 1})) == {"a": 1} and known == pickle.DEFAULT_PROTOCOL
assert inspect.iscoroutinefunction(later) and inspect.iscoroutine(coroutine)
assert not hasattr(pickle, "no_such_name")
sha1 = hashlib.sha1
running = sha1()
running.update(b"return 1")
assert short == running.hexdigest() == sha1(b"return 1").hexdigest() == hashlib.sha1(b"return 1").hexdigest()
assert hashlib.sha1 is not sha1 and hashlib.new("sha1", b"1" * 99999).digest() == sha1(b"1" * 99999).digest()
assert hmac.new(b"k", b"m", sha1).digest() == hmac.digest(b"k", b"m", "sha1")
assert [type(each).__name__ for each in (hashlib, hmac, inspect, ipaddress, pickle)] == ["module"] * 5
defer()
assert sys.modules["inspect"] is inspect
coroutine.close()
"""


def test_a_deferred_module_is_the_module_once_it_is_used() -> None:
    done = subprocess.run([sys.executable, "-c", _USED], capture_output=True, text=True, timeout=_SECONDS, check=False)
    assert done.returncode == 0, done.stderr


#: Prints what becomes of each name that is given, and says on stderr which kind of module did it.
_NAMES = """
import codecs, sys
from statecore.model.deferred_modules import defer

if sys.argv[1] == "deferred":
    defer()

def tried(work):
    try:
        return ascii(work())
    except UnicodeError as error:
        return type(error).__name__

for name in sys.argv[2:]:
    print(tried(lambda: name.encode("idna")))
kinds = [type(sys.modules["encodings.idna"]).__name__]
for name in sys.argv[2:]:
    print(tried(lambda: name.encode("idna").decode("idna")))
    print(tried(lambda: codecs.getincrementalencoder("idna")().encode(name, True)))
import encodings.idna
print(encodings.idna.ToASCII("b\\xfccher"), codecs.lookup("idna").name)
print(*kinds, type(encodings.idna).__name__, file=sys.stderr)
"""

_PLAIN_NAMES = ("salt", "localhost", "10.0.0.1", "salt.example.org", "a.b.", "xn--bcher-kva.de", "x" * 63)


@pytest.mark.parametrize(
    ("names", "before"),
    [
        pytest.param(_PLAIN_NAMES, "_Deferred", id="names of ASCII letters need no tables"),
        *(
            pytest.param([name], "module", id=ascii(name))
            for name in ("b\xfccher.de", "a..b", "x" * 64, "x" * 64 + ".de", ".", "", "stra\xdfe", "\u3002")
        ),
    ],
)
def test_names_of_hosts_are_encoded_as_python_does(names: Sequence[str], before: str) -> None:
    said = []
    for way in ("deferred", "own"):
        words = [sys.executable, "-c", _NAMES, way, *names]
        done = subprocess.run(words, capture_output=True, text=True, timeout=_SECONDS, check=True)
        said.append((done.stdout, done.stderr.split()))
    assert said[0][0] == said[1][0]
    assert [kinds for _, kinds in said] == [[before, "module"], ["module", "module"]]


#: A thread loads a module, and another forks: the child has no such thread to wait for.
_FORKED = """
import os, sys, threading
from statecore.model import deferred_modules

sys.path.insert(0, sys.argv[1])
deferred_modules.DEFERRED = {"slow": {}, "difflib": {}}
deferred_modules.defer()
import difflib, slow

threading.reached, threading.goes_on = threading.Event(), threading.Event()
threading.Thread(target=lambda: slow.answer).start()
assert threading.reached.wait(60)
forked = threading.Event()

def fork():
    child = os.fork()
    if not child:
        os._exit(0 if difflib.get_close_matches("ab", ["abc"]) == ["abc"] else 1)
    forked.set()
    if os.waitpid(child, 0)[1]:
        print("failed")

forking = threading.Thread(target=fork)
forking.start()
forked.wait(0.3)
threading.goes_on.set()
forking.join()
print("ended")
"""

_SLOW = "import threading\nthreading.reached.set()\nassert threading.goes_on.wait(60)\nanswer = 42\n"


def test_a_fork_does_not_find_a_module_half_loaded(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(_SLOW)
    words = [sys.executable, "-c", _FORKED, str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=_SECONDS, check=False)
    assert (done.returncode, done.stdout) == (0, "ended\n"), done.stderr
