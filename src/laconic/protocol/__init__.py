"""One agent as a state machine without I/O: messages in, messages out; checkpoints and repair.

The rooms, from the inside out. Over any kind of numbers: ``messages`` is what is said, ``session`` one end of an edge,
``ends`` all of a process, ``table`` what is done when, ``handshake`` how sessions begin and end, ``conversation`` what
happens in them. Over vectors: ``ledger`` holds the numbers of an agent and lets ``engine.one`` compute, ``accounts``
are the shares of its edges. Where waves run, ``waving`` stands for both (``unshared`` is what it has no use for),
``chart`` is who hears whom, ``wave_parts`` what is said, and ``wave_state`` what is kept. In bytes: ``wire`` encodes
and decodes, ``dialogue`` puts it all together, ``wave_dialogue`` for waves. ``agent`` is what people use, made by
``parts``; ``checkpoint`` and ``state`` are its memory; ``pacer``, with its two ``paces``, decides when an agent does
what, and says so in ``actions``.
"""

from laconic.protocol.agent import Agent
from laconic.protocol.checkpoint import AgentState
from laconic.protocol.dialogue import Alert, Message
from laconic.protocol.info import Info, NotReady

__all__ = ["Agent", "AgentState", "Alert", "Info", "Message", "NotReady"]
