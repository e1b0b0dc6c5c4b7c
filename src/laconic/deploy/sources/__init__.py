"""Where samples come from: standard input, files, zenoh keys, MQTT topics. One file a kind."""

from laconic.deploy.sources.base import Sample, Source
from laconic.deploy.sources.reading import BadSample, Reader

__all__ = ["BadSample", "Reader", "Sample", "Source"]
