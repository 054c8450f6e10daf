import { pluralOf, type SetupTexts } from './texts.ts'

const plural = pluralOf('en')

export const setupEn: SetupTexts = {
  title: 'Set-up',
  configured: 'Configured devices',
  check: 'Check',
  checkHint: 'A check connects the device again. It is unavailable for a moment.',
  changeHint: (file) =>
    `A device that was added here can be changed or removed here for 15 minutes. Later, edit its entry in "devices" of ${file} and restart the agent. To end its registration too, retire it in the console, on its page under Devices.`,
  attached: 'Attached to this machine',
  nothingAttached: 'No serial port and no NFC reader found.',
  entryHint:
    'This page cannot save devices, because the agent was started without a configuration file. Start it again with --config FILE. Or fill in the deviceId and add an entry of this page to "devices" in the file.',
  entry: 'Entry in the configuration file (JSON)',
  setUp: 'Set up this device',
  byHand: 'Enter a device by hand',
  byHandHint: 'For a device that is not found here.',
  driver: 'Connection',
  deviceId: 'Id of the device, only without a code',
  deviceIdHint:
    'Leave it empty if you have a code. Without one, write the id of a registered device that only reads. Or choose a new id for a scanner that serves a device which was added here in the last 15 minutes.',
  settings: 'Settings',
  moreSettings: 'More settings',
  details: 'Details',
  detailsHint: 'The form fills in this entry. You can also change it here.',
  notSet: 'not set',
  yes: 'yes',
  no: 'no',
  range: (from, to) => `${from} to ${to}`,
  otherwise: (value) => `if empty: ${value}`,
  correct: (fields) => `Please correct: ${fields}. A code is still unused.`,
  missing: 'Please fill in this field.',
  unfit: 'This value does not fit.',
  outside: (range) => `Please give a number: ${range}.`,
  addHint: (file) =>
    `Choose a device, search for one below, or enter one by hand. Its form asks for a set-up code, which a manager makes in the console, on the page Devices. The device is then registered, saved to ${file}, and can be tested here.`,
  code: 'Set-up code',
  codeHint: 'Works for one device, 15 minutes. Every device that switches something needs a code.',
  type: 'Kind of device',
  name: 'Name (optional)',
  add: 'Register and save',
  added: (name, file) => `${name} is saved to ${file} and in use.`,
  restartNeeded: (file) => `The device is saved, but ${file} has other changes too, so it is not in use yet.`,
  next: {
    test: 'Next: test it below, and open its page on the screen at the device. No restart is needed.',
    read: 'Next: scan or read something, and look at the page of the device that it serves. No restart is needed.',
    restart:
      'Next: restart the agent. A service: sudo systemctl restart untag-edge. In a terminal, also in the demo: stop it with Ctrl-C and run the same command again.',
  },
  openPage: 'Open its page',
  pages: 'To the pages of the devices',
  noEntry: 'This is not a JSON object. Please correct the entry.',
  kinds: { serial: 'Serial port', nfc: 'NFC reader', llrp: 'UHF reader', board: 'Relay board' },
  network: 'In the network',
  networkHint: 'Finds UHF readers (LLRP) and relay boards (Modbus TCP) at their address. The search moves nothing.',
  address: 'Address of the device',
  look: 'Search',
  change: 'Change or remove',
  saveChange: 'Save the change',
  remove: 'Remove the device',
  removeQuestion:
    'Remove this device from the configuration? If it was registered, then retire it in the console, too.',
  removed: 'Removed. The agent uses it until the agent is restarted.',
  changed: (file) => `The change is saved to ${file}, and not in use yet.`,
  noAddress:
    'This is no address. Write a host name or an IP address such as 10.0.0.7, with a port if it is not the usual one.',
  searchCauses: {
    other_device:
      'A device answers there, but it is no UHF reader (LLRP) and no relay board (Modbus TCP). Please check the address and the port.',
    refused:
      'A device has this address, but nothing listens at the port. Please check the port, and that the reader or board is on.',
    unreachable: 'No device answers at this address. Please check cable, power and address.',
    unknown_name: 'No device has this name. Please use the IP address of the device.',
  },
  failed: 'That did not work. Please try again.',
  problems: {
    code_missing: 'Please enter the set-up code. A device that only reads may have an id instead.',
    setup_code_wrong: 'This code is wrong, or a newer one replaced it. Please compare it with the manager.',
    setup_code_used: 'This code was used already. Please ask a manager for a new one.',
    setup_code_expired: 'This code is over 15 minutes old. Please ask a manager for a new one.',
    setup_code_needed:
      'This entry switches something or serves another device, so it needs a set-up code. Or an administrator writes it into the configuration file and restarts the agent.',
    registration_refused: 'The cloud refused the device.',
    cloud_unreachable: 'No connection to the cloud. Please try again with the same code.',
    config_not_written: 'The configuration file cannot be written. Please correct that and use the same code again.',
    change_not_allowed: 'A device can be changed here only in the 15 minutes after it was added here.',
    operator_required: 'Please sign in on the page of the gate first. Then start the walk test again.',
    busy: 'Another test is running. Please wait until it has ended.',
    test_not_allowed: 'A test is possible only in the 15 minutes after the registration with a code.',
    'invalid-argument': 'The set-up code is missing, or the entry has a fault. A code is still unused.',
  },
  test: 'Test',
  testHint: 'Look at the device. Each release is recorded.',
  outputs: { green: 'Green lamp', amber: 'Amber lamp', siren: 'Siren', release: 'Release' },
  tested: {
    confirmed: 'The device has carried it out.',
    failed: 'The device has not carried it out.',
    unknown: 'The device did not answer. Please look at it.',
    not_supported: 'This device has no such output.',
  },
  walk: 'Walk test',
  walkHint: (seconds) => `Carry a tag through the gate within ${seconds} seconds.`,
  walked: (tags, left, alarms) =>
    `The gate read ${plural(tags, 'tag', 'tags')}, saw ${left} leave, and alarmed for ${alarms}.`,
}
