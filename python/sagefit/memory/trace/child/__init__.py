"""The tracing program, which runs in the user's own Python environment; see ``__main__``."""
