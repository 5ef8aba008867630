"""Programs that serve agents and models to other programs."""
