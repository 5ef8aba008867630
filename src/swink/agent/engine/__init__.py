"""The engine: turns until done. Programs import what they need from `swink`; nothing here is public."""
