"""State modules: one module, or package of modules, for each of Salt's state modules."""
