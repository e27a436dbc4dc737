"""Processes of the managed host, and what the kernel counts (Salt's ``ps`` module), read from /proc.

Processes are the host's own; processors, memory, disks and network are the kernel's, which a mounted host shares with us.
"""

from __future__ import annotations

from statecore.builtin.modules.ps import machine, processes

#: The modules whose functions make up this one.
PARTS = (processes, machine)
