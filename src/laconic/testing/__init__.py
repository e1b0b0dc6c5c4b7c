"""Checks that every learner passes, and schedules of faults that every agent survives."""
