"""The project's errors. Each message names what went wrong, with which input, and what to do next."""


class CdbError(Exception):
    """Base of every error a user is meant to read. `exit_code` is what the command line ends with."""

    exit_code = 1


class UsageError(CdbError):
    """The caller asked for something that cannot be: a wrong folder, an unknown name, a bad setting."""

    exit_code = 2


class DataError(CdbError):
    """Outside data is not what its format promises: a bad checksum, a broken seal, an unknown shape."""


class InfraError(CdbError):
    """The machine failed, not the agent and not the application: engine, image, disk, registry, browser.

    Never turned into a verdict; what it hit stays unscored and may be tried again.
    """


class Interrupted(CdbError):
    """The user or the system asked the run to stop (SIGINT, SIGTERM)."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(f"stopped by signal {signal_number}; the same command goes on where this ended")
        self.exit_code = 128 + signal_number
