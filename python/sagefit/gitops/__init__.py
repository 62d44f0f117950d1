"""The loop around a pull request: what changed, plans of it, the apply of exactly what was reviewed, the comment."""
