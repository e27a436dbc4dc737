"""The role reactor: starts reactions for events, and hands events and jobs to returners."""
