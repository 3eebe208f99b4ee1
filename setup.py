"""Discover the packages: the top-level folders spec/, adapters/ and conformance/ are the packages hardmask.spec and so on.

``find_packages`` alone would ship a top-level ``spec``; a list written by hand would forget new subpackages.
"""

from setuptools import find_packages, setup

FOLDERS = ("spec", "adapters", "conformance")

setup(
    package_dir={f"hardmask.{folder}": folder for folder in FOLDERS},
    packages=[
        name
        for folder in FOLDERS
        for name in [f"hardmask.{folder}", *(f"hardmask.{folder}.{sub}" for sub in find_packages(folder))]
    ],
)
