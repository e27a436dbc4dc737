"""The zygote: the process that has the state engine loaded, from which jobbers are forked."""
