"""Run by the oracle's Python: what Salt's ``http.query`` state says. Standard input: a list of arguments; output: of verdicts."""

import json
import sys

import salt.config
import salt.states.http
import salt.utils.http

opts = {**salt.config.DEFAULT_MINION_OPTS, "cachedir": sys.argv[1], "file_roots": {"base": []}, "test": False}
salt.states.http.__opts__ = opts
salt.states.http.__salt__ = {"http.query": lambda url, **kwargs: salt.utils.http.query(url, opts=dict(opts), **kwargs)}
told = [salt.states.http.query(**arguments) for arguments in json.load(sys.stdin)]
json.dump([[each["result"], each["comment"]] for each in told], sys.stdout)
