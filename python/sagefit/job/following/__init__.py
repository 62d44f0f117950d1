"""Follows the values of a script to the calls of libraries, without running it."""
