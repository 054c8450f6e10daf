import { PROTECTION_ACTIONS } from '../../policy/vocabulary.ts'
import { choice, euros, flag, perMinute, port, text, url, wholeNumber, type Option } from '../options.ts'
import { ca, host, json, jsonLines } from './shared.ts'

/** Settings of the tools for developers: simulators, API, webhooks, policy. */

/** Devices that `untag simulate` offers on a TCP port with their real wire protocol. */
export const SIMULATORS = [
  'relay-board',
  'scanner',
  'gate',
  'uhf-m100',
  'osdp',
  'thingmagic',
  'impinj-iot',
  'http-ingest',
  'zebra-iotc',
] as const

export type SimulatorName = (typeof SIMULATORS)[number]

/** Peculiarities of real devices that `untag simulate` models, with the devices that have them. */
export const QUIRKS = {
  none: SIMULATORS,
  echo: ['relay-board', 'osdp', 'uhf-m100'],
  slow: ['relay-board', 'osdp', 'uhf-m100'],
  'silent-01': ['relay-board'],
  'repeats-unknown': ['relay-board'],
  'reversed-bytes': ['relay-board'],
  'other-unit': ['relay-board'],
  'wrong-flag': ['osdp'],
  'select-mode': ['uhf-m100'],
  'foreign-access-spec': ['gate'],
  'other-channel': ['gate'],
  'never-starts': ['gate', 'impinj-iot', 'zebra-iotc'],
  'slow-start': ['impinj-iot'],
  'no-stream-settings': ['impinj-iot'],
  'needs-content-length': ['impinj-iot'],
} as const satisfies Record<string, readonly SimulatorName[]>

export type Quirk = keyof typeof QUIRKS

export const SIMULATE_OPTIONS = {
  port: port({ flag: 'port', env: 'UNTAG_SIMULATOR_PORT', help: 'TCP port. 0 chooses a free port', fallback: 0 }),
  host,
  framing: choice({
    flag: 'framing',
    env: 'UNTAG_SIMULATOR_FRAMING',
    help: 'relay-board: Modbus framing on the wire',
    values: ['tcp', 'rtu'],
    fallback: 'tcp',
  }),
  quirk: choice({
    flag: 'quirk',
    env: 'UNTAG_SIMULATOR_QUIRK',
    help: 'peculiarity of real devices; the page of each device lists them',
    values: Object.keys(QUIRKS) as Quirk[],
    fallback: 'none',
  }),
  lockOutput: wholeNumber({
    flag: 'lock-output',
    env: 'UNTAG_SIMULATOR_LOCK_OUTPUT',
    help: 'relay-board: output that drives the lock',
    placeholder: 'N',
    fallback: 0,
    min: 0,
    max: 7,
  }),
  lockInput: wholeNumber({
    flag: 'lock-input',
    env: 'UNTAG_SIMULATOR_LOCK_INPUT',
    help: 'relay-board: input that shows that the lock moved',
    placeholder: 'N',
    fallback: 0,
    min: 0,
    max: 7,
  }),
  tags: wholeNumber({
    flag: 'tags',
    env: 'UNTAG_SIMULATOR_TAGS',
    help: 'gate: number of tags in the shop',
    placeholder: 'N',
    fallback: 200,
    min: 1,
    max: 100_000,
  }),
  walkers: perMinute({
    flag: 'walkers',
    env: 'UNTAG_SIMULATOR_WALKERS',
    help: 'gate: people who walk through',
    fallback: 30,
    max: 600,
  }),
  pushTo: url({
    flag: 'push-to',
    env: 'UNTAG_SIMULATOR_PUSH_TO',
    help: 'http-ingest: address that receives the reads',
    protocols: ['http:', 'https:'],
  }),
  pushSecret: text({
    flag: 'push-secret',
    env: 'UNTAG_SIMULATOR_PUSH_SECRET',
    help: 'http-ingest: secret of the device',
    placeholder: 'SECRET',
    fallback: '',
  }),
  pushFormat: choice({
    flag: 'push-format',
    env: 'UNTAG_SIMULATOR_PUSH_FORMAT',
    help: 'http-ingest: make of the reader',
    values: ['keonn', 'impinj'],
    fallback: 'keonn',
  }),
  answerDelay: wholeNumber({
    flag: 'answer-delay',
    env: 'UNTAG_SIMULATOR_ANSWER_DELAY',
    help: 'gate, impinj-iot, zebra-iotc: time before each answer, ms',
    placeholder: 'MS',
    fallback: 0,
    min: 0,
    max: 30_000,
  }),
  tagTtl: wholeNumber({
    flag: 'tag-ttl',
    env: 'UNTAG_SIMULATOR_TAG_TTL',
    help: 'http-ingest: time after a read in which further reads of the tag are dropped, ms',
    placeholder: 'MS',
    fallback: 0,
    min: 0,
    max: 600_000,
  }),
  vendorDefaults: flag({
    flag: 'vendor-defaults',
    env: 'UNTAG_SIMULATOR_VENDOR_DEFAULTS',
    help: 'Start with the settings of a factory device instead of the settings that untag advises',
  }),
  json: jsonLines,
}

export const SIMULATE_NFC_OPTIONS = {
  socket: text({
    flag: 'socket',
    env: 'UNTAG_SIMULATOR_SOCKET',
    help: 'Socket to create in place of the one of pcscd. Pass it to untag edge as --pcscd-socket',
    placeholder: 'FILE',
    fallback: 'var/pcscd.sock',
  }),
  json: jsonLines,
}

export const SIMULATE_TILL_OPTIONS = {
  agent: {
    ...url({ flag: 'agent', env: 'UNTAG_AGENT', help: 'Address of the agent', protocols: ['http:', 'https:'] }),
    fallback: 'http://127.0.0.1:8090',
  } as Option<string>,
  credential: text({
    flag: 'credential',
    env: 'UNTAG_CREDENTIAL',
    help: 'Credential that untag edge pair --may sales,returns printed',
    placeholder: 'SECRET',
  }),
  tillId: text({
    flag: 'till-id',
    env: 'UNTAG_TILL_ID',
    help: 'Name of the till in its sales',
    placeholder: 'NAME',
    fallback: 'till-1',
  }),
  price: wholeNumber({
    flag: 'price',
    env: 'UNTAG_SIMULATOR_PRICE',
    placeholder: 'CENTS',
    help: 'Price of each piece, cents',
    fallback: 8_990,
    min: 0,
    max: 100_000_000,
  }),
  json: jsonLines,
}

export const SIMULATE_VENDOR_OPTIONS = { port: SIMULATE_OPTIONS.port, host, json: jsonLines }

/** Base URL of the API of an `untag cloud` with default settings. */
export const DEFAULT_BASE_URL = 'http://127.0.0.1:8080/api/v1'

const apiUrl = url({ flag: 'base-url', env: 'UNTAG_API', help: 'Address of the API', protocols: ['http:', 'https:'] })

export const API_OPTIONS = {
  key: text({ flag: 'key', env: 'UNTAG_KEY', help: 'API key', placeholder: 'KEY' }),
  baseUrl: {
    ...apiUrl,
    fallback: DEFAULT_BASE_URL,
    // The address of the cloud is enough.
    read(value) {
      const read = apiUrl.read(value)
      const address = 'value' in read ? read.value : undefined
      return address !== undefined && new URL(address).pathname === '/' ? { value: `${address}/api/v1` } : read
    },
  } as Option<string>,
  ca,
  idempotencyKey: text({
    flag: 'idempotency-key',
    env: 'UNTAG_IDEMPOTENCY_KEY',
    help: 'Key to repeat a call safely. Default: a new key for each call',
    placeholder: 'TEXT',
  }),
}

/** Options of `untag simulate psp`. `providers`: names of the simulated providers; the first is the default. */
export const simulatePspOptions = <Name extends string>(providers: readonly [Name, ...Name[]]) => ({
  port: SIMULATE_OPTIONS.port,
  host,
  provider: choice({
    flag: 'provider',
    env: 'UNTAG_SIMULATOR_PROVIDER',
    help: 'Payment provider to simulate',
    values: providers,
    fallback: providers[0],
  }),
  storeId: text({
    flag: 'store',
    env: 'UNTAG_STORE',
    help: 'Store that receives payment notifications. Default: no notifications are sent',
    placeholder: 'ID',
  }),
  baseUrl: API_OPTIONS.baseUrl,
  json: jsonLines,
})

export const LISTEN_OPTIONS = {
  key: API_OPTIONS.key,
  baseUrl: API_OPTIONS.baseUrl,
  ca,
  forwardTo: url({
    flag: 'forward-to',
    env: 'UNTAG_FORWARD_TO',
    help: 'URL of your receiver. It may be on this machine',
    protocols: ['http:', 'https:'],
  }),
  events: text({
    flag: 'events',
    env: 'UNTAG_EVENTS',
    help: 'Names of events, separated by commas, or * for all',
    placeholder: 'LIST',
    fallback: '*',
  }),
  storeId: text({ flag: 'store', env: 'UNTAG_STORE', help: 'Only events of this store', placeholder: 'ID' }),
  secret: text({
    flag: 'secret',
    env: 'UNTAG_WEBHOOK_SECRET',
    help: 'Secret that signs the events. Default: a new secret, which is printed',
    placeholder: 'SECRET',
  }),
  json: jsonLines,
}

export const TRIGGER_OPTIONS = {
  key: API_OPTIONS.key,
  baseUrl: API_OPTIONS.baseUrl,
  ca,
  webhookId: text({
    flag: 'webhook',
    env: 'UNTAG_WEBHOOK',
    help: 'Send to this webhook only. Default: all webhooks for the event, and untag listen',
    placeholder: 'ID',
  }),
  storeId: text({ flag: 'store', env: 'UNTAG_STORE', help: 'Store in the event', placeholder: 'ID' }),
  json,
}

export const POLICY_EXPLAIN_OPTIONS = {
  key: API_OPTIONS.key,
  baseUrl: API_OPTIONS.baseUrl,
  ca,
  storeId: text({
    flag: 'store',
    env: 'UNTAG_STORE',
    help: 'Store of the device. Default: search all stores',
    placeholder: 'ID',
  }),
  deviceId: text({ flag: 'device', env: 'UNTAG_DEVICE', help: 'Device that sends the request', placeholder: 'ID' }),
  action: choice({
    flag: 'action',
    env: 'UNTAG_ACTION',
    help: 'Action that the device requests',
    values: ['none', ...PROTECTION_ACTIONS],
    fallback: 'none',
  }),
  category: text({
    flag: 'category',
    env: 'UNTAG_CATEGORY',
    help: 'Category of the item. Default: none; unknown offline',
    placeholder: 'TEXT',
  }),
  brand: text({
    flag: 'brand',
    env: 'UNTAG_BRAND',
    help: 'Brand of the item. Default: none; unknown offline',
    placeholder: 'TEXT',
  }),
  priceCent: euros({
    flag: 'price',
    env: 'UNTAG_PRICE',
    help: 'Price of the item. Default: unknown, as for a receipt without items',
  }),
  operator: flag({
    flag: 'operator',
    env: 'UNTAG_OPERATOR',
    help: 'An operator has signed in and approves the request',
  }),
  json,
}

export const COMPLETION_OPTIONS = { json }
