"""Mutations of valid files for `fuzz.py`: bytes, tokens of a text, and the parts of safetensors and NumPy archives.

Every mutation draws from the given generator only, so that an input follows from its seed and number.
"""

from __future__ import annotations

import functools
import io
import json
import re
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from safetensors.numpy import load, save

from anyhull import policy_file

Mutation = Callable[[Random, list[bytes]], bytes]

NUMBERS = [
    *(b"0 -0 -1 1 1e308 -1e308 1e-308 1e-300 5e-324 1e999 -1e999 nan -nan inf -inf NaN Infinity -Infinity".split()),
    *(b"1e6 1e12 1e-12 1e30 1e100 1e154 -1e154 0x7fffffffffffffff 18446744073709551616 9007199254740993".split()),
    *(b"1_000 1. .5 1e 0b1 2**63 1,5 -90 90 180 1e5 32 33 4096".split()),
    b"9" * 25, b"9" * 400, b"9" * 5000, b"0." + b"0" * 400 + b"1",
]  # fmt: skip

VALUES = [
    *NUMBERS,
    *(b'true false null none "" [] {} [[]] {"a":1} [1,2] "1" 1979-05-27 1979-05-27T07:32:00Z'.split()),
    b'"' + b"x" * 3000 + b'"', b"x" * 70000, b'"\\ud800"', '"ψ\u2028\u202e\U0001f6a2"'.encode(), b"\xff\xfe", b"\x00",
    b'"\\n\\u001b[31m"', b"[" * 3000, b"[" * 3000 + b"]" * 3000, b'{"a":' * 2000 + b"1" + b"}" * 2000,
]  # fmt: skip
"""What replaces a number or a word."""

SNIPPETS = [
    b"\n", b"\r\n", b"\r", b"\x00", b"\xef\xbb\xbf", b"\xff", b",", b";", b"\t", b'"', b"'", b'"""', b"=", b"[[", b"#",
    b"//", b"/*", b"\\", b"\x1b[2J", b"{", b"}", b"[", b"]", b"<", b">", b"</", b"/>", b"<!--", b"<![CDATA[", b"&a;",
    b"a.b.c = 1\n", b'[thrusters]\n', b"[[thrusters]]\n", b"[fence]\n", b'"type": null,', b"__proto__", b'"a":1,' * 500,
    b'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">'
    b'<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;"><!ENTITY d "&c;&c;&c;&c;&c;&c;&c;&c;">]>',
    b'<!DOCTYPE x SYSTEM "file:///etc/passwd">', b"<a>" * 3000, b"1,2\n" * 3000, b"PK\x03\x04", b"\x93NUMPY",
]  # fmt: skip
"""What is inserted anywhere."""

TOKEN = re.compile(rb'"[^"\n]*"|[+-]?[\w.]+(?:[+-]\d+)?')


def mutate_bytes(random: Random, seeds: list[bytes]) -> bytes:
    """Some of: a flipped bit, a changed byte, a block removed, zeroed, repeated or moved, a splice, a snippet."""
    data = bytearray(random.choice(seeds))
    for _ in range(random.choice((1, 1, 1, 2, 4, 8))):
        at = random.randrange(len(data) + 1)
        size = random.choice((1, 2, 4, 8, 64, 1024))
        kind = random.randrange(9)
        if kind == 0 and data:
            data[at % len(data)] ^= 1 << random.randrange(8)
        elif kind == 1 and data:
            data[at % len(data)] = random.choice((0, 1, 32, 127, 128, 255, random.randrange(256)))
        elif kind == 2:
            del data[at:]
        elif kind == 3:
            del data[at : at + size]
        elif kind == 4:
            data[at : at + size] = bytes(len(data[at : at + size]))
        elif kind == 5:
            data[at:at] = data[at : at + size] * random.choice((1, 2, 50))
        elif kind == 6:
            other = random.choice(seeds)
            data[at:] = other[random.randrange(len(other) + 1) :]
        elif kind == 7:
            data[at:at] = random.choice(SNIPPETS)
        else:
            data[at : at + size] = random.randbytes(size)
    return bytes(data)


def mutate_text(random: Random, seeds: list[bytes], most: int = 400_000) -> bytes:
    """Mostly one to three numbers or words replaced, or a line repeated, removed or moved; else bytes.

    A text longer than `most` bytes is cut.
    """
    if random.random() < 0.2:
        return mutate_bytes(random, seeds)
    data = random.choice(seeds)
    for _ in range(random.choice((1, 1, 2, 3))):
        tokens = [match.span() for match in TOKEN.finditer(data)]
        kind = random.random()
        if kind < 0.75 and tokens:
            start, end = random.choice(tokens)
            with_number = random.random() < 0.6
            data = data[:start] + random.choice(NUMBERS if with_number else VALUES)[:most] + data[end:]
        elif kind < 0.82 and tokens:
            start, end = random.choice(tokens)
            first, last = random.choice(tokens)
            data = data[:start] + data[first:last] + data[end:]
        else:
            lines = data.splitlines(keepends=True) or [b""]
            line = lines.pop(random.randrange(len(lines)))
            for _ in range(min(random.choice((0, 1, 2, 2, 100, 1000)), 1 + most // (1 + len(line)))):
                lines.insert(random.randrange(len(lines) + 1), line)
            data = b"".join(lines)
        data = data[:most]
    return data


def mutate_message(random: Random, seeds: list[bytes]) -> bytes:
    """A text, mostly of at most the size of a datagram."""
    return mutate_text(random, seeds, most=random.choice((1400,) * 50 + (1401, 70_000)))


def array(random: Random, like: Any) -> Any:
    """An array unlike the one that belongs there: of another shape or type, or with absurd values."""
    kind = random.randrange(8)
    if kind == 0:
        shape = tuple(random.choice((0, 1, 2, 3, 9, 72, like.size)) for _ in range(random.randrange(4)))
        return np.zeros(shape if np.prod(shape) < 1e6 else (3,), like.dtype)
    if kind == 1:
        types = (np.float16, np.float64, np.int8, np.int64, np.bool_, np.uint8)
        with np.errstate(all="ignore"):
            return like.astype(random.choice(types))
    if kind == 2:
        return like[..., :-1] if like.ndim else like
    if kind == 3:
        return np.concatenate([like, like]) if like.ndim else like
    if kind == 4:
        return like.T if like.ndim else like
    changed = np.array(like)
    values = (np.nan, np.inf, -np.inf, 3e38, -3e38, 1e30, 1e20, 1e10, 1e-40, -0.0)
    if changed.size:
        with np.errstate(all="ignore"):
            chosen = np.array(random.choice(values)).astype(changed.dtype)
        if kind == 5:
            changed[...] = chosen
        else:
            changed.flat[random.randrange(changed.size)] = chosen
    return changed


def mutate_policy(random: Random, seeds: list[bytes]) -> bytes:
    """Bytes, the header, or tensors and metadata with the right SHA-256."""
    data, kind = random.choice(seeds), random.random()
    if kind < 0.2:
        return mutate_bytes(random, seeds)
    try:
        size = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + size])
        if kind < 0.45:
            text = mutate_text(random, [data[8 : 8 + size]])
            stated = random.choice((len(text), len(text), len(text), size, 2**62, 2**40, 100_000_001))
            return stated.to_bytes(8, "little") + text + data[8 + size :]
        tensors, about = load(data), {name: value for name, value in header["__metadata__"].items() if name != "sha256"}
        for _ in range(random.choice((1, 1, 2))):
            name = random.choice(sorted(tensors))
            chosen = random.randrange(6)
            if chosen == 0:
                del tensors[name]
            elif chosen == 1:
                tensors[random.choice((name + "x", name.replace("0", "1"), "", "teacher." + name))] = tensors.pop(name)
            elif chosen in (2, 3):
                tensors[name] = array(random, tensors[name])
            else:
                entry = random.choice(sorted(about))
                about[entry] = mutate_text(random, [about[entry].encode()]).decode(errors="replace")
        plain = {name: np.ascontiguousarray(tensor).reshape(tensor.shape) for name, tensor in tensors.items()}
        return bytes(save(plain, about | {"sha256": json.dumps(policy_file.digest(plain))}))
    except Exception:  # the seed is itself a damaged file
        return mutate_bytes(random, seeds)


@functools.cache
def bomb(megabytes: int, log: bytes) -> bytes:
    """A log with zeros in place of its state, which take a thousandth of their size."""
    with tempfile.TemporaryFile() as file:
        header: Any = {"descr": "<f8", "fortran_order": False, "shape": (megabytes * 1_000_000 // 48, 6)}
        with (
            zipfile.ZipFile(io.BytesIO(log)) as members,
            zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        ):
            for name in members.namelist():
                if name != "state.npy":
                    archive.writestr(name, members.read(name))
            with archive.open("state.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array_header_1_0(member, header)
                for _ in range(megabytes):
                    member.write(bytes(1_000_000))
        file.seek(0)
        return file.read()


def mutate_log(random: Random, seeds: list[bytes]) -> bytes:
    """Bytes; a member removed, added, replaced or with a changed header; or an archive that expands a thousandfold."""
    data, kind = random.choice(seeds), random.random()
    if kind < 0.25:
        return mutate_bytes(random, seeds)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
    except Exception:  # the seed is itself a damaged file
        return mutate_bytes(random, seeds)
    if kind > 0.995:
        return bomb(random.choice((30, 300)), seeds[0])
    for _ in range(random.choice((1, 1, 2))):
        name = random.choice(sorted(members))
        chosen = random.randrange(6)
        if chosen == 0:
            del members[name]
        elif chosen == 1:
            members[random.choice((name[:-4], "x.npy", "latent.npy", "../" + name, "estimate.npy"))] = members[name]
        elif chosen == 2:
            header, rest = members[name][:128], members[name][128:]
            members[name] = mutate_text(random, [header]) + rest
        elif chosen == 3:
            members[name] = mutate_bytes(random, [members[name]])
        elif (held := _array(members[name])) is None:
            members[name] = b""
        elif name == "about.npy":
            about = str(held)
            text = mutate_text(random, [about.encode()]).decode(errors="replace")
            members[name] = _npy(
                random.choice((np.array(text), np.array([text]), np.array(text.encode()), np.array(3)))
            )
        else:
            members[name] = _npy(array(random, held))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", random.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return mutate_bytes(random, [out.getvalue()]) if random.random() < 0.1 else out.getvalue()


def _array(content: bytes) -> Any:
    """The array of a .npy, or None where it is damaged."""
    try:
        return np.load(io.BytesIO(content))
    except Exception:  # whatever NumPy raises
        return None


def _npy(value: Any) -> bytes:
    out = io.BytesIO()
    np.save(out, value)
    return out.getvalue()


def mutate_command(random: Random, seeds: list[bytes]) -> bytes:
    """A command line with one argument or one file changed; its `keep` stays, so that no run is long."""
    command = json.loads(random.choice(seeds))
    arguments, files = command["arguments"], command["files"]
    if files and random.random() < 0.6:
        name = random.choice(sorted(files))
        data = Path(name).suffix in (".npz", ".safetensors")
        content = files[name].encode("latin-1")
        files[name] = (mutate_bytes if data else mutate_text)(random, [content]).decode("latin-1")
    else:
        at = random.randrange(len(arguments))
        value = random.choice(VALUES).decode(errors="replace").replace("\x00", "")[:10_000]
        chosen = random.randrange(8)
        if chosen == 0:
            del arguments[at]
        elif chosen == 1:
            arguments.insert(at, value)
        elif arguments[at].startswith("--") and at + 1 < len(arguments):
            arguments[at + 1] = value
        else:
            arguments[at] = value
    return json.dumps(command).encode()
