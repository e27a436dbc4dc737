"""Looks at state trees and at what a run would do: check, plan, graph, explain (the commands, and ``state.*`` of the same names).

Each takes a ``Bench`` (the parts of a run that has not begun), renders and compiles on it, and asks ``statecore.analysis`` what
is to be said. Nothing here prints; nothing but ``plan.apply`` touches the host.
"""
