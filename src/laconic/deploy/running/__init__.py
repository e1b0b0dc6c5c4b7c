"""One agent of a site as a process: driven, measured, logged."""
