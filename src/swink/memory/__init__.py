"""Memory: sessions that survive, and stores that keep them."""

from swink.memory.backend import Backend as Backend
from swink.memory.backend import Hit as Hit
from swink.memory.backend import Query as Query
from swink.memory.backend import Stored as Stored
from swink.memory.checkpoints import Checkpoints as Checkpoints
from swink.memory.checkpoints import FileCheckpoints as FileCheckpoints
from swink.memory.checkpoints import PostgresCheckpoints as PostgresCheckpoints
from swink.memory.checkpoints import SavedCheckpoint as SavedCheckpoint
from swink.memory.checkpoints import SqliteCheckpoints as SqliteCheckpoints
from swink.memory.checkpoints import SyncCheckpoints as SyncCheckpoints
from swink.memory.inmemory import MemoryStore as MemoryStore
from swink.memory.jsonl import JsonlStore as JsonlStore
from swink.memory.jsonl import sessions_dir as sessions_dir
from swink.memory.leases import LeasingBackend as LeasingBackend
from swink.memory.meta import SessionMeta as SessionMeta
from swink.memory.notes import Note as Note
from swink.memory.notes import Notes as Notes
from swink.memory.notes import NotesError as NotesError
from swink.memory.postgres import PostgresStore as PostgresStore
from swink.memory.session import Session as Session
from swink.memory.session import SyncSession as SyncSession
from swink.memory.sqlite import SqliteStore as SqliteStore
from swink.memory.store import Store as Store
from swink.memory.store import SyncStore as SyncStore
from swink.memory.tools import memory_tools as memory_tools
