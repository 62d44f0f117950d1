"""The entry point of script jobs inside the training container: sets up, starts, watches, reports.

Standard library only and Python 3.8, because it runs in whatever image the job uses. A job ships this folder
and the table of failure patterns as a channel and starts it with ``python3 FOLDER --entry-point train.py``.
"""
