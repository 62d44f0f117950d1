"""Slips that people make in job files, each with the words that its answer must hold."""
