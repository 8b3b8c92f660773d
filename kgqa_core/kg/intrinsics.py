"""Machine instructions that numba has no name for: bytes at any address, bits of a word, loading ahead."""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_intrinsic: Any = intrinsic


@_intrinsic
def pointer(typing_context: Any, array: Any) -> Any:
    """The elements of an array without the array: nothing to count references of, which halves the time."""
    if not isinstance(array, types.Array):
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return context.make_array(signature.args[0])(context, builder, arguments[0]).data

    return types.CPointer(array.dtype)(array), generate


@_intrinsic
def pointers(typing_context: Any, arrays: Any) -> Any:
    """A named tuple of arrays as one of the pointers to their elements."""
    result = types.NamedTuple([types.CPointer(array.dtype) for array in arrays], arrays.instance_class)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        values = cgutils.unpack_tuple(builder, arguments[0])
        data = [context.make_array(kind)(context, builder, one).data for kind, one in zip(arrays, values, strict=True)]
        return context.make_tuple(builder, result, data)

    return result(arrays), generate


@_intrinsic
def word(typing_context: Any, data: Any, at: Any) -> Any:
    """The 8 bytes from an index of a `pointer` to bytes, little-endian, however aligned; they must lie in the array."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address = builder.gep(arguments[0], [arguments[1]])
        return builder.load(builder.bitcast(address, ir.IntType(64).as_pointer()), align=1)

    return types.uint64(data, types.int64), generate


@_intrinsic
def put(typing_context: Any, data: Any, at: Any, value: Any) -> Any:
    """Writes 8 bytes to an index of a `pointer` to bytes, however aligned; they must lie in the array."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address = builder.gep(arguments[0], [arguments[1]])
        builder.store(arguments[2], builder.bitcast(address, ir.IntType(64).as_pointer()), align=1)
        return context.get_dummy_value()

    return types.void(data, types.int64, types.uint64), generate


@_intrinsic
def prefetch(typing_context: Any, array: Any, at: Any) -> Any:
    """Starts to load array[at]; harmless for indices that do not exist."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        address = builder.bitcast(builder.gep(data, [arguments[1]]), byte)
        builder.call(function, [address, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


@_intrinsic
def lowest_bit(typing_context: Any, value: Any) -> Any:
    """Index of the lowest set bit of a uint64 that is not 0."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], context.get_constant(types.boolean, True))

    return types.uint64(types.uint64), generate


@_intrinsic
def bit_count(typing_context: Any, value: Any) -> Any:
    """Number of set bits of a uint64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate
