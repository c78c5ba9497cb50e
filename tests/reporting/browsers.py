"""A browser to look at reports with, for tests and for fuzzing."""

import shutil
import tempfile
from contextlib import contextmanager

OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)


def has_browser():
    """Whether there is a browser, and the program that drives it."""
    return shutil.which("chromium") is not None and shutil.which("chromedriver") is not None


@contextmanager
def open_browser():
    """A browser without a window."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    with tempfile.TemporaryDirectory() as profile:
        for argument in (*OPTIONS, f"--user-data-dir={profile}"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        service = webdriver.ChromeService(shutil.which("chromedriver"))
        session = webdriver.Chrome(options=options, service=service)
        session.set_page_load_timeout(60)
        try:
            yield session
        finally:
            session.quit()
