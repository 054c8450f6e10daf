import { elapsedText } from '../model/elapsed.ts'
import { setupEn } from './en-setup.ts'
import { pluralOf, type Texts } from './texts.ts'

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
    what: 'This purchase was refunded or cancelled.',
    todo: 'Please ask our staff if we can still help you.',
  },
  device_unknown: { what: 'This device is not registered.', todo: 'Please use another device, or ask our staff.' },
  device_revoked: { what: 'This device is out of service.', todo: 'Please use another device, or ask our staff.' },
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
    todo: 'Please go to a station with staff: they can release there.',
  },
  policy_stale: {
    what: 'This store has been offline for too long.',
    todo: 'Please go to a station with staff: they can release there.',
  },
  device_not_capable: {
    what: 'This device cannot do that.',
    todo: 'Take the goods to another device: the self-detacher or the service desk.',
  },
  technology_mismatch: {
    what: 'This tag does not fit this device.',
    todo: 'Take the goods to another device: the self-detacher or the service desk.',
  },
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
    what: 'This purchase has no secured goods.',
    todo: 'If an item does have a tag, staff compare goods and receipt.',
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

const plural = pluralOf('en')
const STAGES = { stale: 'outdated', expired: 'expired' }

export const en: Texts = {
  language: 'en',
  languageName: 'English',
  needsScript: 'This page needs JavaScript. The scanner works without it.',

  deviceTypes: {
    pos_deactivator: {
      name: 'Service desk',
      prompt: 'Scan the receipt',
      hint: 'Hold the QR code of the receipt to the scanner.',
    },
    self_checkout_detacher: {
      name: 'Self-detacher',
      prompt: 'Put paid goods here',
      hint: 'Hold the hard tag into the detacher, or scan the receipt.',
    },
    exit_gate: { name: 'Exit', prompt: 'Scan the receipt', hint: 'Hold the QR code of the receipt to the scanner.' },
    handheld_reader: {
      name: 'Handheld',
      prompt: 'Read the tag',
      hint: 'Read the tag, or scan its number or a pick-up code.',
    },
    cabinet_unlocker: {
      name: 'Cabinet',
      prompt: 'Scan receipt or code',
      hint: 'Scan the receipt or the pick-up code to open. Staff sign in and scan the item.',
    },
  },
  anyDevice: { name: 'Station', prompt: 'Scan the receipt', hint: 'Hold the QR code of the receipt to the scanner.' },
  chooseDevice: 'Which device?',
  noDevices: 'No device is set up here yet. Add devices to the configuration file of the agent.',
  noSuchDevice: 'This agent does not have this device. Please choose one:',
  stationPage: 'Station',
  gatePage: 'Exit display',
  pair: {
    title: 'Pair this browser',
    what: 'This browser is not paired yet.',
    run: 'Run this command on the machine that the agent runs on:',
    command: 'Command',
    open: 'Open the link that it prints in this browser. The link works once, for 15 minutes.',
    paste: 'Or paste the link here:',
    send: 'Pair',
    wrong: 'This link was already used, or is older than 15 minutes. Run the command above to get a new one.',
    programs: 'Programs send the credential that “untag edge credential” prints.',
  },
  notHere: {
    what: 'This page exists only at the device itself.',
    todo: 'Please open it on the machine that the agent runs on.',
  },
  problems: {
    notFound: {
      what: 'This page does not exist',
      todo: 'Check the address, or choose a device.',
    },
    forPrograms: {
      what: 'This address is for programs',
      todo: 'Please use the pages of the devices.',
    },
    hostNotAllowed: {
      what: 'This agent does not accept this host name',
      todo: 'Add the name with its port to "hosts" in the configuration of the agent, or open the page on the machine of the agent as 127.0.0.1.',
    },
    unavailable: {
      what: 'This is not possible right now',
      todo: 'Reload the page in a minute. If that does not help, call a technician.',
    },
  },
  technical: 'Technical message',

  online: 'Online',
  offline: 'Offline',
  since: (ms) =>
    elapsedText(ms, { since: 'for', underAMinute: 'less than 1 min', minutes: 'min', hours: 'h', days: 'days' }),
  eventsWait: (count) => plural(count, 'event waits', 'events wait'),
  policy: (stage) => `Rules ${STAGES[stage]}`,
  noPolicy: 'No rules',
  clockUntrusted: 'Time not verified',
  deviceStates: {
    absent: 'Device missing',
    opening: 'Looking for the device',
    identifying: 'Device is starting',
    ready: 'Device ready',
    degraded: 'Device fault',
    stopped: 'Device stopped',
    unknown_device: 'Device not registered',
    device_of_another_agent: 'Device of another agent',
    decommissioned_device: 'Device decommissioned',
  },
  registrationFixes: {
    unknown_device: (deviceId) =>
      `This store has no device ${deviceId}. The agent refuses every release. Please call a technician: correct deviceId in the configuration, or register the device in this store with registerDevice and enter the new id.`,
    device_of_another_agent: (deviceId) =>
      `Device ${deviceId} belongs to another agent of the store. This agent refuses every release. Please call a technician: remove the device from this configuration, or move it to this agent with updateDevice and agentId.`,
    decommissioned_device: (deviceId) =>
      `Device ${deviceId} was decommissioned. The agent refuses every release. Please call a technician: register the device again with registerDevice and enter the new id, or remove it from the configuration.`,
  },
  doors: { shut: 'Door shut', open: 'Door open', forced: 'Door forced', left_open: 'Door left open' },
  deviceAway:
    'The device has a fault and releases nothing. Please call a technician: the page "Set-up" has the details.',
  feederAway: (deviceId) =>
    `The reader ${deviceId} of this device is not connected. Please call a technician: the page "Set-up" has the details.`,
  findings: {
    reader_filters: 'A reader drops reads that the gate needs, so people may pass unnoticed. Please call a technician.',
    reader_mode: 'A reader is in a mode that a gate cannot use. Please call a technician.',
    reader_session: 'Tags stay silent for too long, so the gate may miss a walk. Please call a technician.',
    reader_antenna: 'An antenna of the gate does not read. Check its cable, or call a technician.',
    unreadable_data: 'The agent cannot read what a device sends. Please call a technician.',
    echo: 'The line repeats every command, so nothing proves that the device moves. Please call a technician.',
    too_many_tags: 'Too many tags are at the reader. Please move goods and blank labels away from it.',
    no_tag_reader:
      'No reader reads tags here. This exit sees no goods and never alarms. Set up a reader, unless it is only a barrier.',
    wrong_address: 'Another address answers than the configured one. Please call a technician.',
  },
  emergency: {
    title: 'Emergency',
    leave: { what: 'Please leave the store now.', todo: 'Please follow our staff.' },
    opened: 'Emergency: this exit is open until the fire panel or switch is reset.',
    leaveElsewhere: 'Please leave now through an open exit.',
    elsewhere: 'Emergency: please leave now through an open exit.',
    lost: (devices) => `The agent cannot read the emergency input of ${devices}: check its network and power.`,
  },
  tooOld: (release) =>
    `This agent is too old for the store’s new rules (they need release ${release}) and uses the previous ones. Please call the store manager: the agent must be upgraded.`,
  withoutItems:
    'This agent does not know the goods of the store yet. Until it has reached the cloud, gates also alarm for paid goods: compare them with the receipt.',
  ledgerDoubts: {
    revoked:
      'This agent was revoked and releases nothing. Please call the store manager: the agent must be enrolled again.',
    forked:
      'There are two copies of this agent. It releases nothing while offline. Please call the store manager: one copy must be removed.',
    put_back:
      'This agent lacks entries: it was restored from a copy or damaged. For now it releases nothing while offline.',
  },
  lost: {
    what: 'Agent not reachable',
    todo: 'This page keeps trying to connect. If this lasts, call a technician.',
  },
  forShoppers: {
    fault: 'This device has a fault at the moment. Please ask our staff.',
    note: 'A note for staff is here after the sign-in.',
    lost: 'Please ask our staff. This page connects again by itself.',
  },
  lostSince: (time) => `No answer since ${time}.`,
  asOf: (time) => `as of ${time}`,
  notChecked: {
    what: 'We cannot check receipts at the moment.',
    todo: 'Please wait a moment, or ask our staff: they help you.',
  },

  soundOn: 'Sound: on',
  soundOff: 'Sound: off',
  fullScreen: 'Full screen',

  busy: 'Checking …',
  granted: {
    deactivate_label: 'Released',
    detach_hard_tag: 'Released',
    suppress_alarm: 'No alarm',
    authorize_exit: 'You may leave',
    unlock_fixture: 'Open',
    verify_item_status: 'Information',
  },
  labelsLeft: (count) => `${plural(count, 'label', 'labels')} left`,
  stillOn: (goods) => `Next: ${goods}`,
  andMore: (count) => `+ ${count} more`,
  item: 'item',
  allDone: (count) => `All ${plural(count, 'label', 'labels')} done.`,
  moreForStaff: (count) => `Then ask our staff: they release ${plural(count, 'more item', 'more items')}.`,
  leftForStaff: (count) => `${plural(count, 'more item', 'more items')}`,
  restNeedsStaff: 'This label is released. Our staff release the rest of the receipt.',
  refused: 'Not released yet',
  nothingToRelease: 'Nothing to release',
  callStaff: 'Please ask our staff',
  unknown: {
    what: 'Is the label off?',
    why: 'The device did not confirm the release.',
    todo: 'Please check. If the label is still on, call staff. Do not scan again.',
  },
  failed: {
    what: 'Did not move',
    why: 'Released, but the device did not move.',
    todo: 'Place the label again and try once more. If it fails again, call staff.',
  },
  reasons: reasonsEn,
  noReason: 'No reason was given.',
  notUnderstood: {
    unknown_code: {
      headline: 'Not recognised',
      what: 'This code is not a receipt.',
      todo: 'Please scan the QR code on the receipt.',
    },
    unknown_code_or_number: {
      headline: 'Staff only',
      what: 'The number of a purchase works with staff only.',
      todo: 'Please scan the QR code on the receipt, or ask our staff.',
    },
    needs_connection: {
      headline: 'Needs a connection',
      what: 'This code needs a connection.',
      todo: 'Please try again later, or ask our staff.',
    },
    needs_staff: {
      headline: 'Staff only',
      what: 'This code works with staff only.',
      todo: 'Please scan the QR code on the receipt, or ask our staff.',
    },
    purchase_not_paid: {
      headline: 'Not paid yet',
      what: 'This purchase is not paid yet.',
      todo: 'Please pay, then scan the receipt.',
    },
    number_ambiguous: {
      headline: 'Several purchases',
      what: 'Several purchases end with these characters.',
      todo: 'Staff: enter the whole number of the purchase.',
    },
    code_for_exit: {
      headline: 'For the exit',
      what: 'This code opens the barrier at the exit.',
      todo: 'Please put the goods here. If a label stays on, ask our staff.',
    },
    receipt_expired: {
      headline: 'Receipt expired',
      what: 'This receipt is older than a day.',
      todo: 'Please ask our staff.',
    },
    product_code: {
      headline: 'Not a receipt',
      what: 'This is the bar code of the goods.',
      todo: 'Please scan the QR code on the receipt.',
    },
    wrong_badge: {
      headline: 'Badge not valid',
      what: 'This badge is not valid here.',
      todo: 'Sign in with name and PIN, or get a new badge.',
    },
    locked: { headline: 'Please wait', what: 'Too many wrong attempts.', todo: 'Wait a moment, then try again.' },
    no_store_key: {
      headline: 'Not ready yet',
      what: 'The agent cannot check PINs and badges yet.',
      todo: 'It fetches a new key from the cloud. Try again in a few seconds. If that does not help, check the network.',
    },
    out_of_order: {
      headline: 'Please ask our staff',
      what: 'The check failed because of a fault.',
      todo: 'Please scan again, or wait a moment: our staff help you.',
    },
  },
  receiptRead: { what: 'Receipt read', todo: 'Now present the goods, one after the other.' },
  alreadyReleased: 'Already released',
  nothingLeft: 'All labels of this receipt were already released.',
  nothingLeftSince: (when, deviceName) =>
    `All labels came off, last on ${when}${deviceName === undefined ? '' : ` at this device: ${deviceName}`}.`,
  nothingLeftAdvice: 'If a tag is still on the goods, staff remove it by hand.',
  alarms: {
    door_forced: { what: 'The door was opened without a release.', todo: 'Please check it at once, and close it.' },
    door_left_open: { what: 'The door has been open for too long.', todo: 'Please check it, and close it.' },
    unexpected_release: {
      what: 'A tag came off without a release.',
      todo: 'Please check which tag it is, and whether the item is paid.',
    },
  },
  orders: {
    pending: { what: 'Order not confirmed yet', todo: 'Confirm the order first.' },
    confirmed: { what: 'Order not ready yet', todo: 'Staff must still prepare it.' },
    preparing: { what: 'Order not ready yet', todo: 'Staff are preparing it.' },
    ready: { what: 'Hand over', todo: 'The pick-up code is correct.' },
    picked_up: { what: 'Already picked up', todo: 'Do not hand over anything.' },
  },
  unknownOrder: { what: 'Order cannot be picked up', todo: 'Please check the order.' },
  itemStatuses: {
    sellable: 'not paid',
    paid: 'paid',
    reserved_bopis: 'reserved for pick-up',
    picked_up: 'picked up',
    returned: 'returned',
    transfer_in_transit: 'on its way to another store',
    cancelled: 'purchase cancelled',
    exception_hold: 'on hold',
  },
  statusUnknown: 'The status of this item is unknown.',
  decidedOffline: 'Decided offline.',
  last: (time) => `Last at ${time}`,

  nextLabel: 'Next label',
  tryAgain: 'Try again',
  approve: 'Release with PIN',
  approveThenScan: 'Sign in and scan again.',
  done: 'Done',

  typeCode: 'Code or purchase number',
  check: 'Check',
  tooLong: 'This code is too long.',
  requestFailed: {
    unreachable: { what: 'The agent does not answer.', todo: 'Try again in a moment.' },
    ledger_full: {
      what: 'The disk of this machine is full.',
      todo: 'Nothing is released until there is room. Please call a technician.',
    },
    ledger_unavailable: {
      what: 'The record of releases has a fault.',
      todo: 'Nothing is released. Please call a technician.',
    },
    other: { what: 'That did not work.', todo: 'Try again. If it fails again, call a technician.' },
  },

  signIn: 'Sign in',
  signOut: 'Sign out',
  signedInAs: (name) => `Signed in: ${name} (all screens)`,
  whoAreYou: 'Who are you?',
  badgeToo: 'Or scan your badge.',
  signInFor:
    'Signed-in staff find purchases by number, approve releases and handle alarms. The sign-in counts on all screens of this device, until you sign out or 15 minutes after your last action.',
  noOperators: 'No operator is registered for this store.',
  badgeOnly: 'badge only',
  pin: 'PIN',
  pinOf: (name) => `PIN of ${name}`,
  deleteDigit: 'Delete the last digit',
  confirm: 'OK',
  close: 'Close',
  back: 'Back',
  wrongPin: 'The PIN is wrong.',
  pinTooShort: 'This PIN is too short. PINs have 6 to 12 digits, older ones at least 4.',
  lockedFor: (seconds) => `Locked after too many wrong attempts. Try again in ${seconds} s.`,
  signInFailed: 'The sign-in failed. Please try again.',

  setup: setupEn,

  gate: {
    ready: 'Ready',
    readyHint: 'Please hold your receipt to the reader.',
    wayOut: 'Exit open',
    wayOutHint: 'Emergency: please leave this way.',
    outHint: 'This exit is out of order at the moment.',
    noTagReader: 'No tag reader',
    green: 'Thank you, goodbye',
    greenHint: 'You may leave.',
    amber: 'Please see our staff',
    amberHint: 'We are glad to help.',
    alarm: 'Alarm',
    stuck: 'Released, but the exit did not open.',
    lost: 'Display fault',
    lostHint: 'Please ask our staff.',
    lastDecisions: 'Alarms and last decisions',
    moreOpen: (count, isCut) => `${isCut ? 'At least ' : ''}${plural(count, 'more open alarm', 'more open alarms')}`,
    noDecisions: 'None yet.',
    toNewest: 'To the newest',
    recalled: 'Recalled: stays here, even if it is paid',
    held: 'On hold: stays here until the office releases it',
    inEmergency: 'During an emergency',
    listSince: (start) => `Since ${start}, and open alarms of a day before. Earlier ones: console, Alarms.`,
    listCut: 'Only the newest open alarms. All: console, Alarms.',
    recovered: 'Value of recovered goods (EUR), if you like',
    amountLike: 'such as 49.90',
    noAmount: 'This is no amount. Write it such as 49.90, or leave the field empty.',
    handle: 'Handle',
    change: 'Change',
    careBy: (name) => (name === '' ? 'Somebody takes care' : `${name} takes care`),
    handleTitle: (time) => `Alarm at ${time}: what was it?`,
    recorded: (cause) => `Recorded: ${cause}. Choose another cause only if this one is wrong. Both are kept.`,
    steps: {
      acknowledged: 'I take care of it',
      real: 'Theft',
      unintentional: 'Forgot to pay',
      tag_left_on: 'Paid, tag was still on',
      staff_error: 'Staff carried goods',
      phantom: 'False alarm, no goods',
    },
    notStored: 'The agent answers again. It has not recorded the cause: please choose again.',
    tooLate: 'This display no longer has this alarm. Please handle it in the console.',
  },
}
