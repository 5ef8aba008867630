"""Adapters: one stream function per provider."""
