"""What a run is recorded in: the session behind the engine's port."""
