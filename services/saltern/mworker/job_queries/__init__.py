"""Queries of the job cache: filters of jobs, statistics over many jobs, the status of one job."""
