"""Programs that run in processes of their own, started by path: they import nothing of swink."""
