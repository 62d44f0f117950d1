"""The entry point of script jobs inside the training container: sets up, starts, watches, reports.

Standard library only and Python 3.8, because it runs in whatever image the job uses. ``make launcher``
writes this package and the table of failure patterns into one file, ``launcher.pyz``, which a job ships as a channel
and starts with ``python3 launcher.pyz --entry-point train.py``.
"""
