"""What is said: a channel censors the uninteresting, quantizes the rest, and counts the bits."""

from laconic.channel.budget import Budget
from laconic.channel.censor import Censor
from laconic.channel.channel import Channel, Transmission, remembers
from laconic.channel.coder import Coder, Undecodable, can_code, decode_row, encode_row, longest_message
from laconic.channel.entropy import EntropyQuantizer
from laconic.channel.quantizer import Codes, Quantizer, pack, unpack
from laconic.channel.registry import CENSORS, QUANTIZERS, register

__all__ = [
    "CENSORS",
    "QUANTIZERS",
    "Budget",
    "Censor",
    "Channel",
    "Coder",
    "Codes",
    "EntropyQuantizer",
    "Quantizer",
    "Transmission",
    "Undecodable",
    "can_code",
    "decode_row",
    "encode_row",
    "longest_message",
    "pack",
    "register",
    "remembers",
    "unpack",
]
