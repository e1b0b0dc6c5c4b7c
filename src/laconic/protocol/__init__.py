"""One agent as a state machine without I/O: messages in, messages out; checkpoints and repair.

The rooms, from the inside out: ``ledger`` holds the numbers and lets ``engine.one`` compute; ``messages`` are what is
said, ``edge`` is what is known of each neighbour and edge, ``wire`` turns messages into bytes and back; ``speaker`` and
``dialogue`` are the protocol; ``agent`` is what people use; ``checkpoint`` and ``state`` are its memory on disk;
``pacer``, with its two ``paces``, decides when an agent does what, and says so in ``actions``.
"""

from laconic.protocol.agent import Agent, Info, NotReady
from laconic.protocol.checkpoint import AgentState
from laconic.protocol.dialogue import Message

__all__ = ["Agent", "AgentState", "Info", "Message", "NotReady"]
