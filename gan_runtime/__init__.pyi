"""The public names, for type checkers: gan_runtime/__init__.py loads them when they are used."""

from gan_runtime.api import evaluate as evaluate
from gan_runtime.api import images as images
from gan_runtime.api import open_home as open_home
from gan_runtime.api import register_data_set as register_data_set
from gan_runtime.api import register_workload as register_workload
from gan_runtime.api import runs as runs
from gan_runtime.api import sql as sql
from gan_runtime.api import train as train
from gan_runtime.spec import RunSpec as RunSpec

__version__: str
