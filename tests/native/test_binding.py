"""The core's library, and what is said where it was not built."""

import pytest

from laconic.native import binding


def test_a_missing_core_is_named_in_one_sentence(monkeypatch):
    monkeypatch.setattr(binding, "library", lambda: None)
    with pytest.raises(ValueError, match="needs the core, which was not built"):
        binding.function("no_such_function")
