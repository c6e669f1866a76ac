"""The WSGI entry point (`gunicorn config.wsgi`)."""

import atexit
import os
import shutil
import tempfile

from django.core.wsgi import get_wsgi_application

from common.charsets import in_utf8

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")


def share_counters() -> None:
    """A folder for the counters of all processes that gunicorn forks from this one (`--preload`).

    It must be named before the library of `config/request_counters.py` is imported. It goes with the process that made
    it, and with no child of that one.
    """
    if os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
        return
    folder, ours = tempfile.mkdtemp(prefix="placet-counters-"), os.getpid()
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
    atexit.register(lambda: shutil.rmtree(folder, ignore_errors=True) if os.getpid() == ours else None)


share_counters()
application = in_utf8(get_wsgi_application())
