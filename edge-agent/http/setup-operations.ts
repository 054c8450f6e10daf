import * as answers from './response-schemas.ts'
import * as requests from './request-schemas.ts'

/** Errors of operations that write to the ledger. */
export const LEDGER_ERRORS = ['ledger_full', 'ledger_unavailable'] as const

/** The operations of the set-up page, as rows of the table in operations.ts. */
export const SETUP_OPERATIONS = {
  findAtAddress: {
    method: 'POST',
    path: '/v1/setup/search',
    callers: 'pages',
    summary: 'Searches for an LLRP reader or a Modbus TCP board at an address.',
    needsCredential: true,
    request: requests.SearchRequest,
    response: answers.SearchAnswer,
    errors: ['busy'],
  },
  addDevice: {
    method: 'POST',
    path: '/v1/setup/devices',
    callers: 'pages',
    summary: 'Registers a device with a set-up code, writes it into the configuration file and connects it.',
    needsCredential: true,
    request: requests.AddDeviceRequest,
    response: answers.AddedDevice,
    errors: [
      'busy',
      'no_config_file',
      'setup_code_wrong',
      'setup_code_used',
      'setup_code_expired',
      'registration_refused',
      'cloud_unreachable',
      'config_not_written',
    ],
  },
  testDevice: {
    method: 'POST',
    path: '/v1/setup/test',
    callers: 'pages',
    summary: 'Switches a lamp, the siren or the release of a device that was registered with a set-up code.',
    needsCredential: true,
    request: requests.TestDeviceRequest,
    response: answers.TestedDevice,
    errors: ['busy', 'test_not_allowed', ...LEDGER_ERRORS],
  },
  checkDevice: {
    method: 'POST',
    path: '/v1/setup/check',
    callers: 'pages',
    summary: 'Connects a device again and describes it.',
    needsCredential: true,
    request: requests.CheckDeviceRequest,
    response: answers.DeviceStatus,
    errors: ['busy', 'not-found'],
  },
  startWalkTest: {
    method: 'POST',
    path: '/v1/setup/walk-test',
    callers: 'pages',
    summary: 'Starts to record which tags a gate sees, for one walk of a walk test.',
    needsCredential: true,
    request: requests.StartWalkTestRequest,
    response: answers.Done,
    errors: ['not-found'],
  },
  walkTest: {
    method: 'GET',
    path: '/v1/setup/walk-test',
    callers: 'pages',
    summary: 'Returns the recording of the last walk of a walk test.',
    needsCredential: true,
    query: requests.WalkTestQuery,
    response: answers.WalkRecording,
    errors: ['invalid-argument', 'not-found'],
  },
} as const
