"""Where samples come from: standard input, files, zenoh keys, MQTT topics. One file a kind."""

from laconic.deploy.sources.base import Reading, Source
from laconic.deploy.sources.reading import BadSample, Reader

__all__ = ["BadSample", "Reader", "Reading", "Source"]
