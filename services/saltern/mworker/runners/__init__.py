"""Runners: functions that `salt-run`, reactions and schedules run on the master. ``runners.table`` lists them."""
