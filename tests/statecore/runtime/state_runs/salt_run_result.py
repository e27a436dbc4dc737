"""Run by the oracle's Python: standard input is a JSON list of [running, high]; output, for each whether Salt finds it good."""

import json
import sys

import salt.state
import salt.utils.state

sys.stdout.write(
    json.dumps([salt.utils.state.check_result(running, highstate=high) for running, high in json.load(sys.stdin)])
)
