"""What every Saltern command (salt, salt-key, salt-run, ...) shares as a process: start, arguments, output, exit codes."""
