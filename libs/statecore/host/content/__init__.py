"""Managed files: compare, plan, back up, replace atomically."""
