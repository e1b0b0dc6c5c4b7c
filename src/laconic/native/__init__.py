"""The C core: finding its library, and handing arrays to it."""
