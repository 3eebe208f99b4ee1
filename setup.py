"""Discover the packages: the folders spec/, adapters/ and conformance/ are the packages hardmask.spec and so on.

``find_packages`` alone would ship a top-level ``spec``; a list written by hand would forget new subpackages and data.
Everything else about the distribution is in pyproject.toml.
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
    package_data={"": ["**/*"]},
    exclude_package_data={"": ["*.pyc", "**/*.pyc"]},
)
