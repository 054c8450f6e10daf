import { PCSCD_SOCKET } from '../device-drivers/transports/link-settings.ts'
import { PROTECTION_ACTIONS } from '../policy/vocabulary.ts'
import { choice, euros, flag, perMinute, port, secret, text, url, wholeNumber, type Option } from './options.ts'

/** Every setting of every command, once: the help, docs/reference/configuration.md and the checks come from here. */

const dataDir = (fallback: string, help = 'folder for data and keys') =>
  text({ flag: 'data', env: 'UNTAG_DATA_DIR', help }, 'DIR', fallback)
const host = text(
  { flag: 'host', env: 'UNTAG_HOST', help: 'address to listen on; only loopback unless asked' },
  'HOST',
  '127.0.0.1',
)
/** What is written to stderr: this level and everything above it. */
const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'silent'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]
const logLevel = (fallback: LogLevel) =>
  choice(
    { flag: 'log-level', env: 'UNTAG_LOG_LEVEL', help: 'what is logged, as JSON lines on stderr' },
    LOG_LEVELS,
    fallback,
  )
const databaseUrl = secret(
  url({ flag: 'database-url', env: 'UNTAG_DATABASE_URL', help: 'PostgreSQL instead of SQLite' }, [
    'postgres:',
    'postgresql:',
  ]),
)
const pcscdSocket = text(
  { flag: 'pcscd-socket', env: 'PCSCLITE_CSOCK_NAME', help: 'socket of pcscd, which drives NFC readers' },
  'FILE',
  PCSCD_SOCKET,
)
const json = flag({ flag: 'json', env: 'UNTAG_JSON', help: 'answer as JSON' })
const jsonLines = flag({ flag: 'json', env: 'UNTAG_JSON', help: 'write each line as JSON' })

const allowPrivateTargets = flag({
  flag: 'allow-private-targets',
  env: 'UNTAG_ALLOW_PRIVATE_TARGETS',
  help: 'webhooks and merchants’ systems may be in private networks or on this machine; for tests and demonstrations',
})

/** Scripts that name the one process there is are right to; whoever wants more is told, instead of getting one. */
const workers: Option<number> = {
  ...wholeNumber(
    { flag: 'workers', env: 'UNTAG_WORKERS', help: 'processes of this cloud; one is all there is so far' },
    'N',
    1,
    1,
    1,
  ),
  read: (value) => (value === '1' ? { value: 1 } : { fault: `must be 1, not "${value}": this cloud is one process` }),
}

export const CLOUD_OPTIONS = {
  port: port({ flag: 'port', env: 'UNTAG_PORT', help: 'port of the API; 0 picks one' }, 8080),
  host,
  mqttPort: port({ flag: 'mqtt-port', env: 'UNTAG_MQTT_PORT', help: 'port of the broker; 0 picks one' }, 1883),
  data: dataDir('var/cloud'),
  databaseUrl,
  publicUrl: url(
    { flag: 'public-url', env: 'UNTAG_PUBLIC_URL', help: 'origin by which clients and QR codes reach the API' },
    ['http:', 'https:'],
  ),
  publicMqttUrl: url(
    { flag: 'public-mqtt-url', env: 'UNTAG_PUBLIC_MQTT_URL', help: 'address by which agents reach the broker' },
    ['mqtt:', 'mqtts:'],
  ),
  rateLimit: wholeNumber(
    { flag: 'rate-limit', env: 'UNTAG_RATE_LIMIT', help: 'requests per second and key; 0: no limit' },
    'N',
    50,
    0,
    1_000_000,
  ),
  trustedProxies: text(
    {
      flag: 'trusted-proxies',
      env: 'UNTAG_TRUSTED_PROXIES',
      help: 'addresses whose X-Forwarded-For is believed, with commas',
    },
    'LIST',
    undefined,
  ),
  workers,
  allowPrivateTargets,
  imagesBucket: url(
    {
      flag: 'images-bucket',
      env: 'UNTAG_IMAGES_BUCKET',
      help: 'address of an S3-compatible bucket for pictures, instead of a folder',
    },
    ['http:', 'https:'],
  ),
  imagesRegion: text(
    { flag: 'images-region', env: 'UNTAG_IMAGES_REGION', help: 'region of that bucket' },
    'REGION',
    'us-east-1',
  ),
  imagesAccessKeyId: text(
    { flag: 'images-access-key-id', env: 'UNTAG_IMAGES_ACCESS_KEY_ID', help: 'who we are at that bucket' },
    'ID',
    undefined,
  ),
  imagesSecretAccessKey: secret(
    text(
      { flag: 'images-secret-access-key', env: 'UNTAG_IMAGES_SECRET_ACCESS_KEY', help: 'and its secret' },
      'SECRET',
      undefined,
    ),
  ),
  logLevel: logLevel('info'),
  json: jsonLines,
}

export const KEYS_CREATE_OPTIONS = {
  data: dataDir('var/cloud'),
  databaseUrl,
  account: text(
    { flag: 'account', env: 'UNTAG_ACCOUNT', help: 'name of the account; made when it is new' },
    'NAME',
    undefined,
  ),
  mode: choice(
    { flag: 'mode', env: 'UNTAG_MODE', help: 'test keys see the sandbox, live keys real data; admin keys are live' },
    ['test', 'live'],
    'test',
  ),
  kind: choice(
    { flag: 'kind', env: 'UNTAG_KEY_KIND', help: 'kind of key' },
    ['secret', 'publishable', 'admin'],
    'secret',
  ),
  package: choice(
    { flag: 'package', env: 'UNTAG_PACKAGE', help: 'package of a new account' },
    ['DISCOVER', 'ASSIST', 'GO', 'GROW', 'PRIME'],
    'GROW',
  ),
  name: text({ flag: 'name', env: 'UNTAG_KEY_NAME', help: 'what the key is for' }, 'TEXT', 'command line'),
  json,
}

export const VERIFY_AUDIT_OPTIONS = {
  data: dataDir('var/cloud'),
  databaseUrl,
  json,
}

export const RESEAL_OPTIONS = {
  data: dataDir('var/cloud'),
  databaseUrl,
  dropOldKeys: flag({
    flag: 'drop-old-keys',
    env: 'UNTAG_DROP_OLD_KEYS',
    help: 'forget the former keys: backups of the database from before cannot be read any more',
  }),
  json,
}

export const BACKUP_OPTIONS = {
  data: dataDir('var/cloud'),
  databaseUrl,
  to: text(
    { flag: 'to', env: 'UNTAG_BACKUP_DIR', help: 'folder in which each backup gets a folder of its own' },
    'DIR',
    'var/backups',
  ),
  withKeys: flag({
    flag: 'with-keys',
    env: 'UNTAG_BACKUP_WITH_KEYS',
    help: 'the keys too: whoever has such a backup can sign as this cloud',
  }),
  json,
}

export const RESTORE_OPTIONS = {
  data: dataDir('var/cloud'),
  databaseUrl,
  from: text({ flag: 'from', env: 'UNTAG_RESTORE_FROM', help: 'the folder of one backup' }, 'DIR', undefined),
  after: flag({
    flag: 'after',
    env: 'UNTAG_RESTORE_AFTER',
    help: 'instead: the database was put back by other means; tell its agents',
  }),
  force: flag({
    flag: 'force',
    env: 'UNTAG_RESTORE_FORCE',
    help: 'replace what is there: it is put aside (SQLite) or dropped (PostgreSQL)',
  }),
  json,
}

export const KEYS_LIST_OPTIONS = {
  data: dataDir('var/cloud'),
  databaseUrl,
  account: text(
    { flag: 'account', env: 'UNTAG_ACCOUNT', help: 'name of the account; all when left out' },
    'NAME',
    undefined,
  ),
  json,
}

const keyId = text(
  { flag: 'key-id', env: 'UNTAG_KEY_ID', help: 'the key, as untag keys list names it' },
  'ID',
  undefined,
)

export const KEYS_ROLL_OPTIONS = {
  data: dataDir('var/cloud'),
  databaseUrl,
  keyId,
  overlapHours: wholeNumber(
    { flag: 'overlap-hours', env: 'UNTAG_OVERLAP_HOURS', help: 'hours for which the old key goes on; 0: none' },
    'N',
    24,
    0,
    168,
  ),
  json,
}

const signingKey = {
  use: choice(
    { flag: 'use', env: 'UNTAG_KEY_USE', help: 'a signing key instead: what it signs' },
    ['none', 'token', 'receipt', 'policy', 'freshness'],
    'none',
  ),
  account: text(
    { flag: 'account', env: 'UNTAG_ACCOUNT', help: 'name of the account whose token or receipt key it is' },
    'NAME',
    undefined,
  ),
  mode: choice(
    { flag: 'mode', env: 'UNTAG_MODE', help: 'which side of the account' },
    ['both', 'test', 'live'],
    'both',
  ),
}

export const KEYS_ROTATE_OPTIONS = {
  data: dataDir('var/cloud'),
  databaseUrl,
  ...signingKey,
  use: choice(
    {
      flag: 'use',
      env: 'UNTAG_KEY_USE',
      help: 'what it signs; root: the key sets themselves, after which every agent must be enrolled anew',
    },
    ['none', 'token', 'receipt', 'policy', 'freshness', 'root'],
    'none',
  ),
  json,
}

export const KEYS_REVOKE_OPTIONS = {
  data: dataDir('var/cloud'),
  databaseUrl,
  keyId,
  ...signingKey,
  kid: text(
    { flag: 'kid', env: 'UNTAG_KID', help: 'which signing key; the one that signs when left out' },
    'KID',
    undefined,
  ),
  json,
}

export const EDGE_OPTIONS = {
  data: dataDir('var/edge'),
  config: text(
    { flag: 'config', env: 'UNTAG_EDGE_CONFIG', help: 'configuration file with the devices' },
    'FILE',
    undefined,
  ),
  port: port({ flag: 'port', env: 'UNTAG_PORT', help: 'port of the pages and the local API; 0 picks one' }, 8090),
  host,
  mqttUrl: url({ flag: 'mqtt-url', env: 'UNTAG_MQTT_URL', help: 'the broker, when it is not where enrolment said' }, [
    'mqtt:',
    'mqtts:',
  ]),
  trace: text(
    {
      flag: 'trace',
      env: 'UNTAG_TRACE_DIR',
      help: 'folder to write down every byte to and from devices, passwords included; see docs/reference/hardware/traces.md',
    },
    'DIR',
    undefined,
  ),
  runtimeDir: text(
    {
      flag: 'runtime-dir',
      env: 'UNTAG_RUNTIME_DIR',
      help: 'folder outside --data that is emptied at a reboot, not at a restart; shows a restored ledger. Default: XDG_RUNTIME_DIR/untag, else untag-UID in the temporary folder',
    },
    'DIR',
    undefined,
  ),
  pcscdSocket,
  logLevel: logLevel('info'),
  json: jsonLines,
}

export const EDGE_ENROL_OPTIONS = {
  cloud: url({ flag: 'cloud', env: 'UNTAG_CLOUD', help: 'base URL of the API, such as https://shop.example/api/v1' }, [
    'http:',
    'https:',
  ]),
  code: text({ flag: 'code', env: 'UNTAG_ENROL_CODE', help: 'code from createEnrolmentCode' }, 'CODE', undefined),
  data: dataDir('var/edge'),
  name: text({ flag: 'name', env: 'UNTAG_AGENT_NAME', help: 'what this agent is called' }, 'TEXT', undefined),
  replace: flag({
    flag: 'replace',
    env: 'UNTAG_ENROL_REPLACE',
    help: 'in the place of the agent that is there, which ends: what it has used up stays used, its devices and the home go along',
  }),
  json,
}

export const EDGE_PAIR_OPTIONS = {
  data: dataDir('var/edge'),
  name: text(
    { flag: 'name', env: 'UNTAG_PROGRAM_NAME', help: 'which program the credential is for' },
    'TEXT',
    'program',
  ),
  json,
}

export const EDGE_CREDENTIAL_OPTIONS = {
  data: dataDir('var/edge'),
  renew: flag({
    flag: 'renew',
    env: 'UNTAG_CREDENTIAL_RENEW',
    help: 'make a new credential in its place; a running agent refuses the former at once',
  }),
  json,
}

export const EDGE_LINK_OPTIONS = {
  data: dataDir('var/edge'),
  host: text(
    {
      flag: 'host',
      env: 'UNTAG_LINK_HOST',
      help: 'name of the agent in the link, for browsers on other machines; one of hosts in its configuration',
    },
    'NAME',
    undefined,
  ),
  json,
}

export const EDGE_PAIRINGS_OPTIONS = {
  data: dataDir('var/edge'),
  revoke: text(
    { flag: 'revoke', env: 'UNTAG_REVOKE_PAIRING', help: 'ends the pairing with this id at once' },
    'ID',
    undefined,
  ),
  json,
}

export const EDGE_ROTATE_KEY_OPTIONS = { data: dataDir('var/edge'), json }

export const START_OPTIONS = {
  port: port({ flag: 'port', env: 'UNTAG_PORT', help: 'port of the API; 0 picks one' }, 8080),
  mqttPort: port({ flag: 'mqtt-port', env: 'UNTAG_MQTT_PORT', help: 'port of the broker; 0 picks one' }, 1883),
  edgePort: port(
    { flag: 'edge-port', env: 'UNTAG_EDGE_PORT', help: 'port of the station and gate pages; 0 picks one' },
    8090,
  ),
  data: dataDir('var/demo', 'folder for data and keys: cloud in it is that of untag cloud, edge that of untag edge'),
  allowPrivateTargets,
  logLevel: logLevel('error'),
  json: jsonLines,
}

/** Devices that can be simulated on a TCP port, speaking their real wire protocol. */
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

export const SIMULATE_OPTIONS = {
  port: port({ flag: 'port', env: 'UNTAG_SIMULATOR_PORT', help: 'TCP port; 0 picks one' }, 0),
  host,
  framing: choice(
    { flag: 'framing', env: 'UNTAG_SIMULATOR_FRAMING', help: 'relay-board: framing on the wire' },
    ['tcp', 'rtu'],
    'tcp',
  ),
  lockOutput: wholeNumber(
    { flag: 'lock-output', env: 'UNTAG_SIMULATOR_LOCK_OUTPUT', help: 'relay-board: output that moves a lock' },
    'N',
    0,
    0,
    7,
  ),
  lockInput: wholeNumber(
    { flag: 'lock-input', env: 'UNTAG_SIMULATOR_LOCK_INPUT', help: 'relay-board: input that shows that it moved' },
    'N',
    0,
    0,
    7,
  ),
  tags: wholeNumber(
    { flag: 'tags', env: 'UNTAG_SIMULATOR_TAGS', help: 'gate: tags in the shop' },
    'N',
    200,
    1,
    100_000,
  ),
  walkers: perMinute({ flag: 'walkers', env: 'UNTAG_SIMULATOR_WALKERS', help: 'gate: people who go through' }, 30, 600),
  pushTo: url(
    { flag: 'push-to', env: 'UNTAG_SIMULATOR_PUSH_TO', help: 'http-ingest: address that reads are sent to' },
    ['http:', 'https:'],
  ),
  pushSecret: text(
    { flag: 'push-secret', env: 'UNTAG_SIMULATOR_PUSH_SECRET', help: 'http-ingest: secret of the device' },
    'SECRET',
    '',
  ),
  pushFormat: choice(
    { flag: 'push-format', env: 'UNTAG_SIMULATOR_PUSH_FORMAT', help: 'http-ingest: whose reader' },
    ['keonn', 'impinj'],
    'keonn',
  ),
  json: jsonLines,
}

export const SIMULATE_NFC_OPTIONS = {
  socket: text(
    {
      flag: 'socket',
      env: 'UNTAG_SIMULATOR_SOCKET',
      help: 'the socket that stands for that of pcscd; give it to the agent as --pcscd-socket',
    },
    'FILE',
    'var/pcscd.sock',
  ),
  json: jsonLines,
}

export const SIMULATE_VENDOR_OPTIONS = { port: SIMULATE_OPTIONS.port, host, json: jsonLines }

/** Where `untag cloud` listens when nothing else is said. */
export const DEFAULT_BASE_URL = 'http://127.0.0.1:8080/api/v1'

export const API_OPTIONS = {
  key: text({ flag: 'key', env: 'UNTAG_KEY', help: 'API key' }, 'KEY', undefined),
  baseUrl: {
    ...url({ flag: 'base-url', env: 'UNTAG_API', help: 'address of the API' }, ['http:', 'https:']),
    fallback: DEFAULT_BASE_URL,
  } as Option<string>,
  idempotencyKey: text(
    { flag: 'idempotency-key', env: 'UNTAG_IDEMPOTENCY_KEY', help: 'to repeat a call; else each has a new one' },
    'TEXT',
    undefined,
  ),
}

export const SIMULATE_PSP_OPTIONS = {
  port: port({ flag: 'port', env: 'UNTAG_SIMULATOR_PORT', help: 'TCP port; 0 picks one' }, 0),
  host,
  provider: choice(
    { flag: 'provider', env: 'UNTAG_SIMULATOR_PROVIDER', help: 'whose API it speaks' },
    ['custom', 'stripe', 'mollie', 'adyen', 'paypal', 'klarna', 'sumup', 'worldline'],
    'custom',
  ),
  storeId: text(
    { flag: 'store', env: 'UNTAG_STORE', help: 'the store whose payments are notified; without it nobody is told' },
    'ID',
    undefined,
  ),
  baseUrl: API_OPTIONS.baseUrl,
  json: jsonLines,
}

export const LISTEN_OPTIONS = {
  key: API_OPTIONS.key,
  baseUrl: API_OPTIONS.baseUrl,
  forwardTo: url({ flag: 'forward-to', env: 'UNTAG_FORWARD_TO', help: 'your receiver; may be on this machine' }, [
    'http:',
    'https:',
  ]),
  events: text({ flag: 'events', env: 'UNTAG_EVENTS', help: 'names of events with commas, or * for all' }, 'LIST', '*'),
  storeId: text({ flag: 'store', env: 'UNTAG_STORE', help: 'the events of this store alone' }, 'ID', undefined),
  secret: text(
    {
      flag: 'secret',
      env: 'UNTAG_WEBHOOK_SECRET',
      help: 'what events are signed with; made and printed when left out',
    },
    'SECRET',
    undefined,
  ),
  json: jsonLines,
}

export const TRIGGER_OPTIONS = {
  key: API_OPTIONS.key,
  baseUrl: API_OPTIONS.baseUrl,
  webhookId: text(
    {
      flag: 'webhook',
      env: 'UNTAG_WEBHOOK',
      help: 'for this webhook alone; else for all that are registered, and untag listen',
    },
    'ID',
    undefined,
  ),
  storeId: text({ flag: 'store', env: 'UNTAG_STORE', help: 'the store that the event is about' }, 'ID', undefined),
  json,
}

export const POLICY_EXPLAIN_OPTIONS = {
  key: API_OPTIONS.key,
  baseUrl: API_OPTIONS.baseUrl,
  storeId: text(
    { flag: 'store', env: 'UNTAG_STORE', help: 'the store of the device; all are looked through when left out' },
    'ID',
    undefined,
  ),
  deviceId: text({ flag: 'device', env: 'UNTAG_DEVICE', help: 'the device that would ask' }, 'ID', undefined),
  action: choice(
    { flag: 'action', env: 'UNTAG_ACTION', help: 'what it would do' },
    ['none', ...PROTECTION_ACTIONS],
    'none',
  ),
  category: text(
    { flag: 'category', env: 'UNTAG_CATEGORY', help: 'category of the item; none when left out, and offline unknown' },
    'TEXT',
    undefined,
  ),
  brand: text(
    { flag: 'brand', env: 'UNTAG_BRAND', help: 'its brand; none when left out, and offline unknown' },
    'TEXT',
    undefined,
  ),
  priceCent: euros({
    flag: 'price',
    env: 'UNTAG_PRICE',
    help: 'its price; unknown when left out, as with a receipt alone',
  }),
  operator: flag({ flag: 'operator', env: 'UNTAG_OPERATOR', help: 'an operator stands behind it' }),
  json,
}

export const DOCTOR_OPTIONS = {
  data: dataDir('var/edge'),
  config: text({ flag: 'config', env: 'UNTAG_EDGE_CONFIG', help: 'configuration file to check' }, 'FILE', undefined),
  add: wholeNumber(
    {
      flag: 'add',
      env: 'UNTAG_DOCTOR_ADD',
      help: 'write the thing with this number in the list of what was found to the configuration file; 0: nothing',
    },
    'NUMBER',
    0,
    0,
    1_000,
  ),
  device: text({ flag: 'device', env: 'UNTAG_DOCTOR_DEVICE', help: 'the deviceId that it gets' }, 'ID', undefined),
  pcscdSocket,
  json,
}
