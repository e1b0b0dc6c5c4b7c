"""The data sets that ``load`` knows by name: a file each, with its facts and its reader.

Every module here has an ``ENTRY``, and a new one is found without being named anywhere else.

In a reader the protocol "paper" is what the paper describes; "prepared" is the rule of the sets that an earlier paper
on online multi-kernel learning published, from which the counts come. Where the two do not differ a reader ignores the
protocol. ``stop`` says how many rows are wanted, where a reader can save work by knowing it.
"""

from importlib import import_module
from pkgutil import iter_modules

from laconic.data.registry import Entry, register

_FOUND: list[Entry] = [import_module(f"{__name__}.{module.name}").ENTRY for module in iter_modules(__path__)]

for _entry in sorted(_FOUND, key=lambda entry: (entry.place, entry.name)):
    register(_entry)
