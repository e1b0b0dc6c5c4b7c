"""Pictures of networks and of runs."""
