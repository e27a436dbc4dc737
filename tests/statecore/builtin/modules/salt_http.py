"""Run by the oracle's Python: what Salt's ``http.query`` returns. Standard input: a list of arguments; output: of returns."""

import json
import sys

import salt.config
import salt.utils.http

opts = {**salt.config.DEFAULT_MINION_OPTS, "cachedir": sys.argv[1], "file_roots": {"base": []}}
told = []
for arguments in json.load(sys.stdin):
    try:
        answer = salt.utils.http.query(opts=dict(opts), **arguments)
        if "headers" in answer:
            answer["headers"] = dict(answer["headers"])
    except Exception as error:  # noqa: BLE001 - what it raises is the answer
        answer = {"raised": type(error).__name__}
    told.append(answer)
json.dump(told, sys.stdout)
