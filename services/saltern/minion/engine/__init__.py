"""The process that has the state engine loaded (zygote), and how jobs are forked from it."""
