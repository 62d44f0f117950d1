"""Code of the job whose state is kept; it never runs."""
