"""The command ``statecore``: check, plan, apply, graph, explain. Needs no master. Needs root only to change the host."""
