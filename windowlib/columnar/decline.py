"""What says that the event engine must take a batch."""


class Decline(Exception):  # noqa: N818 - a refusal, not an error: the event engine takes over
    """A batch that array arithmetic cannot do exactly; the message says why."""
