"""Formats and rules of other programs: their files, package versions, databases, certificates, schedules."""
