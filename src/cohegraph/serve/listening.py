"""Where a server listens."""

import socket

from cohegraph.errors import CohegraphError


def bound(host: str, port: int) -> socket.socket:
    """A socket that listens; a CohegraphError where there can be none."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
        sock.listen(2048)
    except (OSError, OverflowError, UnicodeError, TypeError) as error:  # the last two: names that cannot be names
        reason = getattr(error, "strerror", None) or str(error)
        message = f"The server cannot listen on {host}, port {port} ({reason}): choose another --host or --port."
        raise CohegraphError(message, code="cannot-listen") from None
    return sock
