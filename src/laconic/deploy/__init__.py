"""A site: agents that run, with their configuration, data, metrics and keepers."""
