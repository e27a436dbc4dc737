"""Files of other programs on the host (fstab, cron tables, network files, ...), read and written in their own formats,
for execution and state modules.
"""
