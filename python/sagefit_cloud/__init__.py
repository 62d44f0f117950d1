"""The server of the embedded cloud: AWS's answers by moto, extended, and an executor that really trains.

It is started by :mod:`sagefit.cloud.control`; start reading at :mod:`sagefit_cloud.server`. It needs moto, which the
extra ``local`` brings.
"""
