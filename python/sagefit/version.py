"""Which version this is, of the package and of the modules."""

__version__ = "0.1.0"
