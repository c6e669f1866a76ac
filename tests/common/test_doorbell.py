"""The doorbell: rings reach the configured broker, many become one, and a broken broker costs nobody anything."""

import threading
import time

from celery import current_app
from django.conf import settings

from common.doorbell import Doorbell


def test_every_process_speaks_to_the_configured_broker() -> None:
    assert current_app.main == "placet"
    assert current_app.conf.broker_url == settings.CELERY_BROKER_URL


def test_so_does_every_thread_of_it() -> None:
    """The doorbell publishes from a thread of its own, and Celery's current application is one per thread."""
    seen: list[str] = []
    thread = threading.Thread(target=lambda: seen.append(current_app.conf.broker_url))
    thread.start()
    thread.join(5)
    assert seen == [settings.CELERY_BROKER_URL]


def test_many_rings_become_few_messages() -> None:
    heard: list[str] = []
    done = threading.Event()
    bell = Doorbell(lambda task: (heard.append(task), done.set())[0])
    for _ in range(1000):
        bell.ring("work")
    assert done.wait(5)
    time.sleep(0.1)
    assert set(heard) == {"work"}
    assert len(heard) < 100


def test_a_broker_that_raises_is_no_error_of_the_ringer_and_later_rings_are_heard() -> None:
    heard = threading.Event()
    tries: list[str] = []

    def publish(task: str) -> None:
        tries.append(task)
        if len(tries) == 1:
            raise OSError("the broker is gone")
        heard.set()

    bell = Doorbell(publish)
    bell.ring("work")
    while not tries:
        time.sleep(0.005)
    bell.ring("work")
    assert heard.wait(5)


def test_a_ringer_never_waits_for_a_broker_that_hangs() -> None:
    hung = threading.Event()
    bell = Doorbell(lambda task: hung.wait(30) and None)
    began = time.perf_counter()
    for _ in range(100):
        bell.ring("work")
    assert time.perf_counter() - began < 1
    hung.set()
