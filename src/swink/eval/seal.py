"""Seals: the head of results.jsonl and a digest of run.json, for summary.json; signed if there is a key.

Without the seal somebody could cut lines off the end of a signed file, and name an earlier line as its head.
"""

import hashlib
import hmac
from pathlib import Path
from typing import Any

import msgspec

from swink.policies.chain import Head


def seal(head: Head, manifest: Path, key: str | bytes | None = None) -> dict[str, Any]:
    """What summary.json keeps of the files beside it."""
    kept = msgspec.to_builtins(head) | {"run": digest(manifest)}
    return kept if key is None else kept | {"seal": signature(kept, key)}


def digest(path: Path) -> str | None:
    """SHA-256 of a file; None if it is not there."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except FileNotFoundError:
        return None


def signature(kept: dict[str, Any], key: str | bytes) -> str:
    """HMAC-SHA-256 over number and hash of the newest line and the digest of run.json."""
    key = key.encode() if isinstance(key, str) else key
    said = f"{kept.get('records')} {kept.get('hash')} {kept.get('run')}"
    return hmac.new(key, said.encode(), hashlib.sha256).hexdigest()
