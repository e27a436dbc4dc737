"""Edits of a file's text: functions without I/O that return the new text.

The ``file`` states use them to plan, and the execution module ``file`` uses them to write at once. An edit raises
InvocationError for invalid arguments, and CommandError for a text that it cannot change.
"""
