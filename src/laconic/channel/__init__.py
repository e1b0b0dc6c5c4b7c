"""What is said: a channel censors the uninteresting, quantizes the rest, and counts the bits."""

from laconic.channel.censor import Censor
from laconic.channel.channel import Channel, Transmission
from laconic.channel.quantizer import Codes, Quantizer

__all__ = ["Censor", "Channel", "Codes", "Quantizer", "Transmission"]
