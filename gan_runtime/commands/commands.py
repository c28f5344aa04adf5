"""The one door for changes: everything that a person may change is a function of this module, and is told who asks.

Pages and command line call nothing else that changes something. Each request is a file or a journal line, so any process may
make it: the owner of the home (dashboard or command line) sees it within a moment and acts. The code stands in the modules
that are named below; `asker` is written down where the change itself is, or else in the log of the process. Each change refuses
a viewer before it does anything (`askers.for_operators`), so what a page shows or hides decides nothing.
"""

from gan_runtime.commands.bin_requests import delete, remove_for_good, restore
from gan_runtime.commands.checkpoint_requests import keep_best
from gan_runtime.commands.data_removal import remove_data
from gan_runtime.commands.home_requests import import_bundle, make_store_anew
from gan_runtime.commands.job_requests import cancel_job, check_on_tpu, evaluate, prepare_data, request_job
from gan_runtime.commands.mark_requests import mark
from gan_runtime.commands.queue_requests import move_in_queue, start_after
from gan_runtime.commands.run_requests import (
    check,
    rename,
    resume,
    stop,
    submit,
    submit_study,
    why_not_resumed,
    with_engine,
)
from gan_runtime.commands.upload_requests import forget_upload, keep_upload, receive_upload, use_uploads
from gan_runtime.domains.flows.iterate_requests import iterate
from gan_runtime.domains.showers.physics_requests import make_showers, measure_physics
from gan_runtime.records.run_state import latest_status

__all__ = [
    "cancel_job",
    "check",
    "check_on_tpu",
    "delete",
    "evaluate",
    "forget_upload",
    "import_bundle",
    "iterate",
    "keep_best",
    "keep_upload",
    "latest_status",
    "make_showers",
    "make_store_anew",
    "mark",
    "measure_physics",
    "move_in_queue",
    "prepare_data",
    "receive_upload",
    "remove_data",
    "remove_for_good",
    "rename",
    "request_job",
    "restore",
    "resume",
    "start_after",
    "stop",
    "submit",
    "submit_study",
    "use_uploads",
    "why_not_resumed",
    "with_engine",
]
