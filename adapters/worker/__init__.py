"""What runs in a worker process: it calls subjects and imports nothing but the framework, NumPy, ``spec`` and adapters.

A worker is started by :mod:`hardmask.adapters.remote` as ``python bootstrap.py``. It reads frames
(:mod:`~hardmask.adapters.worker.frames`) from its standard input and writes frames to its standard output; both are
moved out of the way of what a subject prints before anything else happens.
"""
