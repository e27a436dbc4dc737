"""The command ``statecore``: check, plan, apply, graph, explain. Needs no master, and no root for what does not change the host."""
