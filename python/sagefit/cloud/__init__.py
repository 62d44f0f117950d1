"""The embedded cloud: the AWS services Sagefit uses, in one process on 127.0.0.1, with training that really runs.

Start reading at :mod:`sagefit.cloud.control` (the outside) and :mod:`sagefit_cloud.server` (the inside).
"""
