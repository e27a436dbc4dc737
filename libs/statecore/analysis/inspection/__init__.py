"""Inspect state trees and planned state runs: check, plan, graph, explain (CLI commands, and ``state.*`` functions of
these names).

Each function takes ``RunParts`` (the parts of a state run), renders and compiles the tree with them, and calls
``statecore.analysis``. Nothing here prints. Only ``plan.apply`` changes the host.
"""
