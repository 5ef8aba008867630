"""An agent set up for a person in a directory; the terminal interface and the plain chat share it."""
