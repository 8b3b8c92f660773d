"""The process of `convert`: reads pickled weights and writes safetensors, without network and within limits.

Run by its path, it imports nothing of ours.  stdin: `files` (pairs of paths, read and written) and `bytes` (of one file
at most) as JSON; stdout: `tensors`, `tied` and `alone` (without network), or `fault` and `refused`, a global.
"""

from __future__ import annotations

import ctypes
import json
import re
import resource
import sys
from pathlib import Path
from typing import Any

NEW_USER, NEW_NETWORK = 0x10000000, 0x40000000
"""Flags of unshare(2): namespaces of users and of networks."""
MEMORY = 1 << 30
"""Bytes of memory beyond what is loaded and twice the largest file."""
_REFUSED = re.compile(r"(?:GLOBAL|[Uu]nsupported class|Can only \w+ on) '?([\w.]+)")


def leave_network() -> bool:
    """Whether this process is now in a network of its own that has no way out (Linux, where the system allows it)."""
    unshare = getattr(ctypes.CDLL(None), "unshare", None)
    return unshare is not None and (unshare(NEW_NETWORK) == 0 or unshare(NEW_USER | NEW_NETWORK) == 0)


def limit(written: int) -> None:
    """Limits of this process from now on, by the bytes of a file that it may write: memory, file size, CPU time."""
    status = Path("/proc/self/statm")
    pages = int(status.read_text().split()[0]) if status.exists() else 0
    memory = pages * resource.getpagesize() + MEMORY + 2 * written
    for name, most in {"AS": memory, "FSIZE": written, "CORE": 0, "CPU": 120 + (written >> 24)}.items():
        kind = getattr(resource, f"RLIMIT_{name}")
        hard = resource.getrlimit(kind)[1]
        resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard),) * 2)


def tensors_of(file: Path, written: int) -> tuple[dict[str, Any], int]:
    """The tensors of a file, and how many share their memory with an earlier one, of which they are copies now.

    Every name stays, so that a model is whole whichever of its tied weights it reads.  Raises ValueError where the file
    holds something else, or claims more bytes than may be written.
    """
    import torch

    with file.open("rb") as stream:
        packed = stream.read(4) == b"PK\x03\x04"
    held = torch.load(file, map_location="cpu", weights_only=True, mmap=packed)
    if not isinstance(held, dict) or not held:
        raise ValueError(f"it holds {type(held).__name__}, not tensors by name")
    tensors: dict[str, Any] = {}
    memory: set[int] = set()
    tied = total = 0
    for name, tensor in held.items():
        if not isinstance(tensor, torch.Tensor) or not isinstance(name, str) or tensor.layout != torch.strided:
            what = getattr(tensor, "layout", type(tensor).__name__)
            raise ValueError(f"{str(name)[:80]!r} is a {what}; only a flat table of dense tensors can be converted")
        size, storage = tensor.numel() * tensor.element_size(), tensor.untyped_storage()
        total += size
        if total > written:
            raise ValueError(f"its tensors claim more than {written:,} bytes, which is more than the file can hold")
        shared = storage.data_ptr() in memory
        memory.add(storage.data_ptr())
        tied += shared
        whole = tensor.is_contiguous() and storage.nbytes() == size and not shared  # else a view of a larger memory
        tensors[name] = tensor.detach() if whole else tensor.detach().clone().contiguous()
    return tensors, tied


def converted(files: list[tuple[str, str]], written: int) -> dict[str, Any]:
    """What pairs of files, read and written, of at most `written` bytes became: `tensors` and `tied`, or the fault."""
    from safetensors.torch import save_file

    names: dict[str, list[str]] = {}
    tied = 0
    for source, target in files:
        try:
            tensors, shared = tensors_of(Path(source), written)
            save_file(tensors, target, metadata={"format": "pt"})
        except Exception as fault:  # torch's loader has many
            refused = _REFUSED.search(str(fault))
            first = (str(fault).strip().splitlines() or [type(fault).__name__])[0][:200]
            return {"fault": first, "refused": refused and refused[1], "file": Path(source).name}
        names[Path(target).name] = sorted(tensors)
        tied += shared
    return {"tensors": names, "tied": tied}


def main() -> dict[str, Any]:
    """Does what stdin says."""
    alone = leave_network()  # before torch has threads
    job = json.loads(sys.stdin.read())
    import safetensors.torch  # noqa: F401  the limit of memory is beyond what is loaded

    limit(job["bytes"])
    return converted(job["files"], job["bytes"]) | {"alone": alone}


if __name__ == "__main__":
    sys.stdout.write("\n" + json.dumps(main()))
