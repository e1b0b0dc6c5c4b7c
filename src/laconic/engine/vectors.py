"""Arithmetic that compiles to the same bits everywhere.

Compilers are free to fuse a product and a sum, or not, and to sum in any order once told that speed matters. Two agents
must not disagree about a last bit because their code was inlined differently or runs on another machine. So the kernels
are compiled without any fast-math flag, fused operations are asked for by name, and sums have a written order.

numba can neither fuse nor vectorise under those rules. This file gives it what it lacks: a fused multiply-add, bit
casts, and a 32-byte ``Vector`` of floats with its operators.
"""

from __future__ import annotations

import operator
from functools import reduce

from llvmlite import ir
from numba import njit
from numba.core import cgutils, types
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, register_model

from laconic.engine.inner import Inner

_OPTIONS = {
    "nogil": True,
    "error_model": "numpy",
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    "pipeline_class": Inner,
}
jit = njit(**_OPTIONS)
# Of functions that allocate nothing: numba would count references to each array that it passes, which costs more than
# most of what is done to a row.
lean = njit(**_OPTIONS, _nrt=False)
# What is called from there inherits that, unless it says that it does allocate.
counted = njit(**_OPTIONS, _nrt=True)
# A call passes some seventy numbers for its arrays: what is called for every row of a round is not called at all.
ladder = njit(**_OPTIONS, _nrt=False, forceinline=True)

VECTOR_BYTES = 32  # one AVX2 register, two NEON ones
INDEX = ir.IntType(64)
_LANE = ir.IntType(32)


# --------------------------------------------------------------------------------------------------------------------
# Scalars
# --------------------------------------------------------------------------------------------------------------------


@intrinsic
def fma(typing_context, a, b, c):
    """``a * b + c`` with a single rounding."""

    def codegen(context, builder, signature, args):
        return builder.fma(*args)

    return a(a, a, a), codegen


@intrinsic
def to_bits(typing_context, x):
    """The bits of a float as an unsigned integer of its width."""

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], ir.IntType(x.bitwidth))

    return (types.uint64 if x.bitwidth == 64 else types.uint32)(x), codegen


@intrinsic
def from_bits(typing_context, bits):
    """The float that has these bits."""
    result = types.float64 if bits.bitwidth == 64 else types.float32

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], context.get_value_type(result))

    return result(bits), codegen


# --------------------------------------------------------------------------------------------------------------------
# Vectors
# --------------------------------------------------------------------------------------------------------------------


class Vector(types.Type):
    """As many floats of one kind as fit into ``VECTOR_BYTES``; all arithmetic is lane by lane."""

    def __init__(self, dtype):
        self.dtype = dtype
        self.width = 8 * VECTOR_BYTES // dtype.bitwidth
        super().__init__(name=f"Vector({dtype} x {self.width})")


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager, vector):
        scalar = manager.lookup(vector.dtype).get_value_type()
        super().__init__(manager, vector, ir.VectorType(scalar, vector.width))


def element(context, builder, array_type, array, index, vector):
    """Pointer to the vector that starts at ``array[index]``."""
    data = cgutils.create_struct_proxy(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), vector.as_pointer())


def splat_value(builder, scalar, vector):
    """The LLVM vector with ``scalar`` in every lane."""
    undefined = ir.Constant(vector, ir.Undefined)
    lane = builder.insert_element(undefined, scalar, ir.Constant(_LANE, 0))
    zeros = ir.Constant(ir.VectorType(_LANE, vector.count), [0] * vector.count)
    return builder.shuffle_vector(lane, undefined, zeros)


def call_llvm(builder, name, vector, args):
    """Call the LLVM intrinsic ``name`` on vectors."""
    bits = 64 if isinstance(vector.element, ir.DoubleType) else 32
    kind = ir.FunctionType(vector, [vector] * len(args))
    function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.{name}.v{vector.count}f{bits}")
    return builder.call(function, args)


@intrinsic
def width_of(typing_context, array):
    """How many entries of ``array`` make a vector, as a constant of the compiled code."""
    width = Vector(array.dtype).width
    return types.intp(array), lambda context, builder, signature, args: ir.Constant(INDEX, width)


@intrinsic
def doubled(typing_context):
    """Whether registers hold two vectors, as a constant of the compiled code."""

    def codegen(context, builder, signature, args):
        features = context.codegen().magic_tuple()[2].split(",")
        return context.get_constant(types.boolean, "+avx512f" in features)

    return types.boolean(), codegen


@intrinsic
def load(typing_context, array, index):
    """The vector that starts at ``array[index]`` of a contiguous array."""
    result = Vector(array.dtype)

    def codegen(context, builder, signature, args):
        vector = context.get_value_type(result)
        pointer = element(context, builder, signature.args[0], args[0], args[1], vector)
        return builder.load(pointer, align=array.dtype.bitwidth // 8)

    return result(array, types.intp), codegen


@intrinsic
def store(typing_context, array, index, value):
    """Write a vector to ``array[index]`` and the entries after it."""

    def codegen(context, builder, signature, args):
        vector = context.get_value_type(value)
        pointer = element(context, builder, signature.args[0], args[0], args[1], vector)
        builder.store(args[2], pointer, align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.none(array, types.intp, value), codegen


@intrinsic
def load_half(typing_context, array, index):
    """The first half of a vector from ``array[index]`` on, and zeros."""
    result = Vector(array.dtype)

    def codegen(context, builder, signature, args):
        half = ir.VectorType(context.get_value_type(array.dtype), result.width // 2)
        pointer = element(context, builder, signature.args[0], args[0], args[1], half)
        value = builder.load(pointer, align=array.dtype.bitwidth // 8)
        lanes = ir.Constant(ir.VectorType(_LANE, result.width), list(range(result.width)))
        return builder.shuffle_vector(value, ir.Constant(half, [0.0] * half.count), lanes)

    return result(array, types.intp), codegen


@intrinsic
def store_half(typing_context, array, index, value):
    """Write the first half of a vector to ``array[index]`` and the entries after it."""

    def codegen(context, builder, signature, args):
        half = ir.VectorType(context.get_value_type(value.dtype), value.width // 2)
        pointer = element(context, builder, signature.args[0], args[0], args[1], half)
        lanes = ir.Constant(ir.VectorType(_LANE, half.count), list(range(half.count)))
        part = builder.shuffle_vector(args[2], ir.Constant(args[2].type, ir.Undefined), lanes)
        builder.store(part, pointer, align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.none(array, types.intp, value), codegen


@ladder
def load_some(array, index, half):
    """``load_half``, or ``load``: to be called with True or False as it stands, so that nobody asks at run time."""
    return load_half(array, index) if half else load(array, index)


@ladder
def store_some(array, index, value, half):
    """``store_half``, or ``store``."""
    if half:
        store_half(array, index, value)
    else:
        store(array, index, value)


@intrinsic
def store_bytes(typing_context, array, index, value):
    """Write a vector of whole numbers from 0 to 255 to ``array[index]`` and the bytes after it."""

    def codegen(context, builder, signature, args):
        narrow = ir.VectorType(ir.IntType(8), value.width)
        pointer = element(context, builder, signature.args[0], args[0], args[1], narrow)
        builder.store(builder.fptoui(args[2], narrow), pointer, align=1)
        return context.get_dummy_value()

    return types.none(array, types.intp, value), codegen


@intrinsic
def load_bytes(typing_context, array, index, like):
    """The bytes from ``array[index]`` on as a vector of the kind of ``like``."""

    def codegen(context, builder, signature, args):
        narrow = ir.VectorType(ir.IntType(8), like.width)
        pointer = element(context, builder, signature.args[0], args[0], args[1], narrow)
        return builder.uitofp(builder.load(pointer, align=1), context.get_value_type(like))

    return like(array, types.intp, like), codegen


@intrinsic
def add_bits(typing_context, total, index, value):
    """``total[index:]`` += the bits of each lane, as whole numbers that wrap around; ``total`` has its width."""

    def codegen(context, builder, signature, args):
        whole = ir.VectorType(ir.IntType(value.dtype.bitwidth), value.width)
        pointer = element(context, builder, signature.args[0], args[0], args[1], whole)
        align = value.dtype.bitwidth // 8
        builder.store(
            builder.add(builder.load(pointer, align=align), builder.bitcast(args[2], whole)), pointer, align=align
        )
        return context.get_dummy_value()

    return types.none(total, types.intp, value), codegen


@intrinsic
def prefetch(typing_context, array, index):
    """Ask for the cache line of ``array[index]``, to be read soon; beyond the array it does nothing."""

    def codegen(context, builder, signature, args):
        data = cgutils.create_struct_proxy(signature.args[0])(context, builder, args[0]).data
        pointer = builder.bitcast(builder.gep(data, [args[1]]), ir.IntType(8).as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [pointer.type, _LANE, _LANE, _LANE])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        # for reading, to be kept in the second-level cache, data
        builder.call(function, [pointer, *(ir.Constant(_LANE, flag) for flag in (0, 2, 1))])
        return context.get_dummy_value()

    return types.none(array, types.intp), codegen


@ladder
def prefetch_row(array, at, size):
    """Ask for ``size`` entries from ``array[at]`` on, a line of 64 bytes after the other.

    By a constant step: numba divides to find out how often a range of another one goes, which a row would feel.
    """
    k = 0
    while k < size:
        prefetch(array, at + k)
        k += 2 * width_of(array)


@intrinsic
def keep(typing_context, value, mask, index):
    """``value`` where the bits of ``mask[index:]`` are set, and zero where they are not."""

    def codegen(context, builder, signature, args):
        whole = ir.VectorType(ir.IntType(value.dtype.bitwidth), value.width)
        pointer = element(context, builder, signature.args[1], args[1], args[2], whole)
        mask_bits = builder.load(pointer, align=value.dtype.bitwidth // 8)
        kept = builder.and_(builder.bitcast(args[0], whole), mask_bits)
        return builder.bitcast(kept, context.get_value_type(value))

    return value(value, mask, types.intp), codegen


@intrinsic
def splat(typing_context, value):
    """A vector with ``value`` in every lane."""
    result = Vector(value)

    def codegen(context, builder, signature, args):
        return splat_value(builder, args[0], context.get_value_type(result))

    return result(value), codegen


@intrinsic
def splat_at(typing_context, array, index):
    """A vector with ``array[index]`` in every lane; ``splat`` of an entry asks first whether its index is negative."""
    result = Vector(array.dtype)

    def codegen(context, builder, signature, args):
        data = cgutils.create_struct_proxy(signature.args[0])(context, builder, args[0]).data
        return splat_value(builder, builder.load(builder.gep(data, [args[1]])), context.get_value_type(result))

    return result(array, types.intp), codegen


def _fold(combine):
    """A function of a vector that combines its lanes, from the first to the last."""

    @intrinsic
    def fold(typing_context, vector):
        def codegen(context, builder, signature, args):
            entries = [builder.extract_element(args[0], ir.Constant(_LANE, k)) for k in range(vector.width)]
            return reduce(lambda a, b: combine(builder, a, b), entries)

        return vector.dtype(vector), codegen

    return fold


sum_of = _fold(lambda builder, a, b: builder.fadd(a, b))
largest_of = _fold(lambda builder, a, b: builder.select(builder.fcmp_ordered(">", a, b), a, b))


def _operator(python_operator, instruction):
    """Let ``python_operator`` work on two vectors, as the LLVM instruction of that name."""

    @infer_global(python_operator)
    class _Signature(AbstractTemplate):
        def generic(self, args, kws):
            same = len(args) == 2 and isinstance(args[0], Vector) and args[0] == args[1]
            return signature(args[0], *args) if same else None

    @lower_builtin(python_operator, Vector, Vector)
    def _emit(context, builder, signature, args):
        return getattr(builder, instruction)(*args)


def _named(name, n_arguments):
    """A function of vectors that is one LLVM intrinsic."""

    @intrinsic
    def one(typing_context, a):
        return a(a), lambda context, builder, signature, args: call_llvm(builder, name, context.get_value_type(a), args)

    @intrinsic
    def three(typing_context, a, b, c):
        return a(a, b, c), lambda context, builder, signature, args: call_llvm(
            builder, name, context.get_value_type(a), args
        )

    return one if n_arguments == 1 else three


def _choose(predicate):
    """A function of two vectors that takes the first where ``first predicate second``, else the second."""

    @intrinsic
    def instruction(typing_context, a, b):
        def codegen(context, builder, signature, args):
            return builder.select(builder.fcmp_ordered(predicate, *args), *args)

        return a(a, b), codegen

    return instruction


_operator(operator.add, "fadd")
_operator(operator.sub, "fsub")
_operator(operator.mul, "fmul")
_operator(operator.truediv, "fdiv")
vector_fma = _named("fma", 3)


@intrinsic
def vector_fnma(typing_context, a, b, c):
    """``c - a * b`` with a single rounding."""

    def codegen(context, builder, signature, args):
        vector = context.get_value_type(a)
        return call_llvm(builder, "fma", vector, [builder.fneg(args[0]), *args[1:]])

    return a(a, b, c), codegen


vector_floor = _named("floor", 1)
vector_rint = _named("rint", 1)
vector_sqrt = _named("sqrt", 1)
vector_abs = _named("fabs", 1)
vector_larger = _choose(">")
vector_smaller = _choose("<")


@intrinsic
def count_apart(typing_context, count, a, b):
    """``count`` + 1 in lanes where ``a`` and ``b`` have different signs."""

    def codegen(context, builder, signature, args):
        whole = ir.VectorType(ir.IntType(count.dtype.bitwidth), count.width)
        signs = builder.xor(*(builder.bitcast(arg, whole) for arg in args[1:]))
        more = builder.fadd(args[0], splat_value(builder, ir.Constant(args[0].type.element, 1.0), args[0].type))
        return builder.select(builder.icmp_signed("<", signs, ir.Constant(whole, None)), more, args[0])

    return count(count, a, b), codegen


@intrinsic
def all_less(typing_context, vector, limit):
    """Whether every lane is less than that lane of ``limit``; NaN is not."""

    def codegen(context, builder, signature, args):
        mask = builder.fcmp_ordered("<", *args)
        bits = builder.bitcast(mask, ir.IntType(vector.width))
        return builder.icmp_unsigned("==", bits, ir.Constant(ir.IntType(vector.width), -1))

    return types.boolean(vector, limit), codegen


@intrinsic
def turned(typing_context, a, b, c, d):
    """Four vectors of four lanes turned over: the first lanes of all, the second ones, and so on."""

    def codegen(context, builder, signature, args):
        # (a0 b0 a1 b1), (a2 b2 a3 b3), and the same of c and d
        low, high = (_shuffled(builder, *args[:2], order) for order in ((0, 4, 1, 5), (2, 6, 3, 7)))
        other_low, other_high = (_shuffled(builder, *args[2:], order) for order in ((0, 4, 1, 5), (2, 6, 3, 7)))
        rows = [
            _shuffled(builder, one, other, order)
            for one, other in ((low, other_low), (high, other_high))
            for order in ((0, 1, 4, 5), (2, 3, 6, 7))
        ]
        return context.make_tuple(builder, signature.return_type, rows)

    if a.width != 4:
        return None
    return types.UniTuple(a, 4)(a, b, c, d), codegen


def _shuffled(builder, one, other, order):
    """Four of the lanes of two vectors of four."""
    return builder.shuffle_vector(one, other, ir.Constant(ir.VectorType(_LANE, 4), order))


@jit
def sums_of(a, b, c, d):
    """``sum_of`` each of four vectors of four lanes, with its bits, a lane each."""
    one, two, three, four = turned(a, b, c, d)
    return one + two + three + four
