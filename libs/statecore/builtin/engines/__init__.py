"""Built-in engines: programs that run beside a minion or master for as long as it runs (option ``engines``).

Each module has ``start(ctx, ...)``, whose arguments are those of the option. It runs in a process of its own.
"""
