"""When things are due that a minion does by itself: cron expressions, dates as people write them, the jobs of a schedule.

Pure: whoever asks brings the clock. Nothing here is loaded by a minion that has no schedule.
"""
