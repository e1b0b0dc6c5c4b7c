"""What a site is: ``site.toml``, read and checked."""
