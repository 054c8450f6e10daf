"""Errors of calls and of webhook deliveries."""
from typing import Any, List, Mapping, Optional


class UntagError(Exception):
    """A call that the API rejected or did not answer. ``status`` is 0 if no response arrived."""

    def __init__(self, message: str, status: int, code: str, body: Optional[Mapping[str, Any]] = None) -> None:
        super().__init__(message)
        fields = body or {}
        self.status = status
        #: Code of the API, or ``network``, ``timeout`` or ``bad-answer``.
        self.code = code
        self.reason: Optional[str] = fields.get("reason")
        #: What the caller can do next.
        self.fix: Optional[str] = fields.get("fix")
        self.details: List[Mapping[str, str]] = list(fields.get("details") or [])
        self.allowed_next: List[str] = list(fields.get("allowedNext") or [])
        self.request_id: Optional[str] = fields.get("requestId")
        #: Delay that the server requests, s.
        self.retry_after: Optional[float] = None

    @property
    def field(self) -> Optional[str]:
        """Path of the first invalid field."""
        return self.details[0].get("path") if self.details else None


class WebhookRefused(Exception):
    """A rejected delivery. Answer the sender with 400. ``code`` says why."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
