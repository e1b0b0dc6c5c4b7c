"""One agent as a state machine without I/O: messages in, messages out; checkpoints and repair.

The rooms, from the inside out: ``messages`` is what is said, ``session`` one end of an edge, ``table`` what is done
when, ``conversation`` all edges of a process, over any kind of numbers. ``ledger`` holds the numbers of an agent and calls
the simulator's kernels, ``accounts`` the shares of its edges; ``wire`` turns messages into bytes and back; ``dialogue``
puts these together; ``agent`` is what people use; ``checkpoint`` and ``state`` are its memory; ``pacer``, with its two
``paces``, decides when an agent does what, and says so in ``actions``.
"""

from laconic.protocol.agent import Agent, Info, NotReady
from laconic.protocol.checkpoint import AgentState
from laconic.protocol.dialogue import Alert, Message

__all__ = ["Agent", "AgentState", "Alert", "Info", "Message", "NotReady"]
