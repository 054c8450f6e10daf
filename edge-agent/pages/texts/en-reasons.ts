import type { Texts } from './texts.ts'

/** English texts of the reasons for a denial. */
export const reasonsEn: Texts['reasons'] = {
  token_invalid: {
    what: 'This receipt cannot be read here.',
    todo: 'Scan it again. Otherwise our staff look up the purchase.',
  },
  token_expired: {
    what: 'This receipt has expired.',
    todo: 'Staff look up the purchase, then sign in and release the tag.',
  },
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
  locker_mismatch: {
    what: 'This code does not open this door.',
    todo: 'Please go to the right locker, or ask at the counter.',
  },
  clock_untrusted: {
    what: 'The time of this device is not verified.',
    todo: 'Staff may release at a station with staff. Please check the network.',
  },
  policy_stale: {
    what: 'This store has been offline for too long.',
    todo: 'Staff may release at a station with staff. Please check the network.',
  },
  device_not_capable: { what: 'This device cannot do that.', todo: 'Try another device.' },
  technology_mismatch: { what: 'This tag does not fit this device.', todo: 'Try another device.' },
  item_unknown: { what: 'This item is unknown.', todo: 'Scan the receipt and compare the goods.' },
  recalled: {
    what: 'This item is being recalled.',
    todo: 'It stays here: please give it to our staff. Staff set it aside, and read in the console what to do with it.',
  },
  item_not_paid: {
    what: 'We have no payment for this item yet.',
    todo: 'Please pay at the till, or show the receipt there. Goods on hold stay here.',
  },
  no_tagged_goods: {
    what: 'Nothing on this receipt has a security tag.',
    todo: 'There is nothing to release. If an item has a tag, ask at the service desk.',
  },
  already_redeemed: {
    what: 'This tag or receipt is already released.',
    todo: 'That works only once. If a tag is still on, staff remove it by hand.',
  },
  authorization_outstanding: {
    what: 'Another device is releasing this right now.',
    todo: 'Wait a moment and scan again.',
  },
  action_not_allowed: {
    what: 'This is not allowed for this item.',
    todo: 'The rules of this store forbid it, also for staff. Ask the manager.',
  },
  workflow_not_allowed: {
    what: 'This is not allowed at this device.',
    todo: 'Please go to the till or the service desk.',
  },
  manual_assistance_required: {
    what: 'Staff must release this.',
    todo: 'Staff compare goods and receipt, then release, or remove the tag by hand.',
  },
  limit_exceeded: {
    what: 'The limit for releases is reached.',
    todo: 'After the limit for an hour, other staff release.',
  },
  tag_not_read: { what: 'The reader has not read the tag.', todo: 'Please hold the goods to the reader.' },
}
