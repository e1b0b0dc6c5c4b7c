"""How functions are compiled that only compiled code calls: to what is linked into it, and no further.

numba optimises every function with all that it calls and makes machine code of it, then does so again for the function
that calls it, and so on up to what Python calls: a row's arithmetic five times over. Here that is left to the last of
them, the entry, where all of it comes together anyway.
"""

from __future__ import annotations

from typing import Any

from numba import _dynfunc
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering


class _Linked(JITCodeLibrary):  # type: ignore[misc]
    """Code of one function and of all that it calls, as it is."""

    def finalize(self) -> None:
        """Put all of it into one module."""
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._final_module.verify()
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class _Lowering(NativeLowering):  # type: ignore[misc]
    """Types and steps to LLVM's language."""

    _name = "laconic_inner_lowering"

    def run_pass(self, state: Any) -> bool:
        """Leave in ``state`` what callers need."""
        state.library = _Linked(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        super().run_pass(state)
        lowered, library = state["cr"], state.library
        name = lowered.fndesc.qualname.split(".")[-1]
        # What stands for the function, though nobody can call it: there is no machine code at its address.
        stand_in = _dynfunc.make_function(lowered.fndesc.lookup_module(), name, name, 0, lowered.env, (library,))
        state.targetctx.insert_user_function(stand_in, lowered.fndesc, [library])
        state.reload_init.extend(library._reload_init)
        state["cr"] = lowered._replace(cfunc=stand_in)
        return True


class Inner(CompilerBase):  # type: ignore[misc]
    """numba's compiler, but for its last step."""

    def define_pipelines(self) -> list[Any]:
        """The passes, in order."""
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.passes[:] = [(_Lowering if one is NativeLowering else one, why) for one, why in passes.passes]
        passes.finalize()
        return [passes]
