"""A role as a process: start, signals, health port, metrics, logs, traces, staged shutdown."""
