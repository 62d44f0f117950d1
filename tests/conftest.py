"""Shared by all tests: job files live in a folder of their own, and nothing touches the checkout's state."""
