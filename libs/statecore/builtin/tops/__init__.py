"""Modules for the master's option ``master_tops`` that Saltern ships. Each returns the SLS names of one minion."""
