"""The launcher, run for real in folders like those of a training container."""
