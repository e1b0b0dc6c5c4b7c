"""Where samples come from: standard input, files, zenoh keys, MQTT topics. One file a kind."""

from laconic.site.sources.base import Sample, Source
from laconic.site.sources.reading import BadSample, Reader
from laconic.site.sources.settings import FileSettings, MqttSettings, SourceSettings, StdinSettings, ZenohSettings

__all__ = [
    "BadSample",
    "FileSettings",
    "MqttSettings",
    "Reader",
    "Sample",
    "Source",
    "SourceSettings",
    "StdinSettings",
    "ZenohSettings",
]
