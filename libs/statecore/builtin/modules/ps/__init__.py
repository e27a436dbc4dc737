"""Processes of the managed host, and figures of the kernel, read from /proc: Salt's ``ps`` execution module.

The processes are those of the host. Processors, memory, disks and network belong to the kernel, which a mounted host
shares with the machine that Saltern runs on.
"""

from __future__ import annotations

from statecore.builtin.modules.ps import machine, processes

#: The modules that define the functions of ``ps``.
PARTS = (processes, machine)
