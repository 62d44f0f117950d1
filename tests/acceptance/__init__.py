"""The suite for one real account, on the embedded cloud."""
