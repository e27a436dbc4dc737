"""``salt.utils.zeromq`` for users' modules: the library zmq, if it is installed."""

from __future__ import annotations

import importlib
from typing import Any

try:
    zmq: Any = importlib.import_module("zmq")
except ImportError:
    zmq = None

ZMQ_VERSION_INFO = tuple(zmq.zmq_version_info()) if zmq else (-1, -1, -1)
