"""One agent as a state machine without I/O: messages in, messages out; checkpoints and repair."""
