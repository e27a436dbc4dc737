"""A command as a process: how it is started, its arguments, its output, its exit code."""
