"""Verification of webhook deliveries."""
import base64
import binascii
import hashlib
import hmac
import json
import re
import time
from typing import Any, Dict, Mapping, Optional

from .errors import WebhookRefused


def verify_webhook(
    raw_body: bytes,
    headers: Mapping[str, str],
    secret: str,
    *,
    tolerance: float = 300.0,
    now: Optional[float] = None,
) -> Dict[str, Any]:
    """Verifies a delivery and returns its event. Raises ``WebhookRefused``.

    ``raw_body`` must be the received bytes. ``tolerance``: maximum difference to the time of the delivery, s.
    """
    given = {name.lower(): value for name, value in headers.items()}
    if "webhook-signature" in given:
        _verify_standard(raw_body, given, secret, tolerance, time.time() if now is None else now)
    elif "x-untag-signature" in given:
        expected = hmac.new(secret.encode(), raw_body, hashlib.sha256).hexdigest()
        if not hmac.compare_digest(expected.encode(), given["x-untag-signature"].lower().encode()):
            raise WebhookRefused("bad_signature", "the signature of the delivery does not match")
    else:
        raise WebhookRefused("no_signature", "the delivery carries no signature")
    try:
        event = json.loads(raw_body)
    except ValueError:
        event = None
    if not isinstance(event, dict):
        raise WebhookRefused("not_json", "the body is no JSON object")
    return event


def _verify_standard(raw_body: bytes, headers: Mapping[str, str], secret: str, tolerance: float, now: float) -> None:
    webhook_id, timestamp = headers.get("webhook-id"), headers.get("webhook-timestamp")
    if webhook_id is None or timestamp is None:
        raise WebhookRefused("no_signature", "webhook-id or webhook-timestamp is missing")
    if not re.fullmatch(r"[0-9]{1,12}", timestamp) or abs(now - int(timestamp)) > tolerance:
        raise WebhookRefused("too_old", "the time of the delivery is too far from now: check the clock")
    signed = f"{webhook_id}.{timestamp}.".encode() + raw_body
    expected = base64.b64encode(hmac.new(_key(secret), signed, hashlib.sha256).digest())
    # During a rotation of the secret, the header has two signatures.
    for signature in headers["webhook-signature"].split(" ")[:8]:
        version, _, value = signature.partition(",")
        if version == "v1" and hmac.compare_digest(expected, value.encode()):
            return
    raise WebhookRefused("bad_signature", "no signature of the delivery matches: check the webhook secret")


def _key(secret: str) -> bytes:
    """The base64 after ``whsec_``, or the bytes of any other text."""
    if secret.startswith("whsec_"):
        try:
            decoded = base64.b64decode(secret[6:], validate=True)
            if decoded:
                return decoded
        except binascii.Error:
            pass
    return secret.encode()
