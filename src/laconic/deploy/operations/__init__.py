"""What people do with a site: make one, start it, watch it, secure it."""
