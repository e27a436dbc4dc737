"""Scheduling on the minion: cron expressions, dates in schedules, and the time at which a scheduled job is due.

The functions are pure: the caller passes the current time. A minion without a schedule loads none of these modules.

Source: docs/execution.md#schedule
"""
