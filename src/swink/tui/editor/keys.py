"""The keys of the editor, for the help and the pages."""

EDITOR_KEYS: tuple[tuple[str, str], ...] = (
    ("Enter", "send; while the agent works: steer it"),
    ("Alt+Enter", "while the agent works: say it when it would stop; when idle: a new line"),
    ("Shift+Enter, Ctrl+J", "a new line; so does \\ at the end of a line"),
)
