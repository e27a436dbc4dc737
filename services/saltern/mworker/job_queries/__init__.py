"""Queries of the job cache: filters, statistics, the status of one job."""
