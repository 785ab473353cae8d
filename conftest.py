"""Before any test: notebooks run this folder's own code, and nothing depends on the home directory."""

from pathlib import Path

import pytest

from labs.site import environment


def pytest_configure():
    try:
        environment.require_own_code(Path(__file__).parent)
    except environment.SiteError as error:
        raise pytest.UsageError(str(error)) from None
    environment.leave_home_alone()
