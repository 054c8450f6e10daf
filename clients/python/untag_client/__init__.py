"""Client of the untag cloud."""
from .client import AsyncUntag, Untag
from .errors import UntagError, WebhookRefused
from .webhook import verify_webhook

__all__ = ["AsyncUntag", "Untag", "UntagError", "WebhookRefused", "verify_webhook"]
