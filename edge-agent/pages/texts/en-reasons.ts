import type { Texts } from './texts.ts'

/** English texts of the reasons for a denial. */
export const reasonsEn: Texts['reasons'] = {
  token_invalid: {
    what: 'This receipt is not valid here.',
    todo: 'It is not genuine, not readable, or from another store. Scan it again.',
  },
  token_expired: { what: 'This receipt has expired.', todo: 'Have the purchase looked up at the till.' },
  token_revoked: {
    what: 'This receipt is no longer valid.',
    todo: 'The purchase was cancelled or taken back. Have it looked up at the till.',
  },
  device_unknown: { what: 'This device is not registered.', todo: 'Use another device and tell the technicians.' },
  device_revoked: { what: 'This device is out of service.', todo: 'Use another device.' },
  store_mismatch: { what: 'This belongs to another store.', todo: 'Tags come off only where the goods were bought.' },
  clock_untrusted: {
    what: 'The time of this device is not certain.',
    todo: 'Wait until the connection is back, or take the tag off by hand.',
  },
  policy_stale: {
    what: 'Head office was out of reach for too long.',
    todo: 'Only staff may release now. Please check the connection.',
  },
  device_not_capable: { what: 'This device cannot do that.', todo: 'Try another device.' },
  technology_mismatch: { what: 'This tag does not fit this device.', todo: 'Try another device.' },
  item_unknown: { what: 'Nothing is known about this item.', todo: 'Scan the receipt and compare the goods.' },
  item_not_paid: { what: 'This item is not paid.', todo: 'Please pay at the till first.' },
  already_redeemed: {
    what: 'There is nothing left to release for this.',
    todo: 'Each tag is released only once. When in doubt call staff.',
  },
  authorization_outstanding: {
    what: 'Another device is releasing this right now.',
    todo: 'Wait a moment and scan again.',
  },
  action_not_allowed: { what: 'This is not intended for this item.', todo: 'Ask at the till.' },
  workflow_not_allowed: {
    what: 'This is not allowed at this place.',
    todo: 'Please go to the till or to the service station.',
  },
  manual_assistance_required: {
    what: 'Staff must release this.',
    todo: 'Compare goods and receipt, then sign in and release.',
  },
  limit_exceeded: {
    what: 'The limit for releases is reached.',
    todo: 'Wait until the connection is back, or have somebody else release.',
  },
}
