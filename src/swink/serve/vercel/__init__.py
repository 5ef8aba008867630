"""The Vercel door: runs of agents as version 1 of the UI message stream, which `useChat` reads."""
