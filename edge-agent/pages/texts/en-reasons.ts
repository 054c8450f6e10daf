import type { Texts } from './texts.ts'

/** English texts of the reasons for a denial. */
export const reasonsEn: Texts['reasons'] = {
  token_invalid: {
    what: 'This receipt is not valid here.',
    todo: 'It is forged, unreadable or from another store. Scan it again, or ask at the service desk.',
  },
  token_expired: { what: 'This receipt has expired.', todo: 'Ask at the till to look up the purchase.' },
  token_revoked: {
    what: 'This receipt is no longer valid.',
    todo: 'The purchase was cancelled or returned. Ask at the till.',
  },
  device_unknown: { what: 'This device is not registered.', todo: 'Use another device and call a technician.' },
  device_revoked: { what: 'This device is out of service.', todo: 'Use another device.' },
  store_mismatch: {
    what: 'This belongs to another store.',
    todo: 'Tags can be released only in the store of purchase.',
  },
  clock_untrusted: {
    what: 'The time of this device is not verified.',
    todo: 'Wait until the agent is online, or remove the tag by hand.',
  },
  policy_stale: {
    what: 'This store has been offline for too long.',
    todo: 'Only staff may release now. Please check the network.',
  },
  device_not_capable: { what: 'This device cannot do that.', todo: 'Try another device.' },
  technology_mismatch: { what: 'This tag does not fit this device.', todo: 'Try another device.' },
  item_unknown: { what: 'This item is unknown.', todo: 'Scan the receipt and compare the goods.' },
  item_not_paid: { what: 'This item is not paid.', todo: 'Please pay at the till first.' },
  already_redeemed: {
    what: 'This receipt or tag was already used.',
    todo: 'Each tag is released only once. Please ask at the service desk.',
  },
  authorization_outstanding: {
    what: 'Another device is releasing this right now.',
    todo: 'Wait a moment and scan again.',
  },
  action_not_allowed: { what: 'This is not allowed for this item.', todo: 'Ask at the till.' },
  workflow_not_allowed: {
    what: 'This is not allowed at this device.',
    todo: 'Please go to the till or the service desk.',
  },
  manual_assistance_required: {
    what: 'Staff must release this.',
    todo: 'Compare the goods with the receipt, then sign in and release.',
  },
  limit_exceeded: {
    what: 'The limit for releases is reached.',
    todo: 'Wait until the agent is online, or ask another operator to release.',
  },
}
