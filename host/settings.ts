import { PCSCD_SOCKET } from '../device-drivers/transports/link-settings.ts'
import { PROTECTION_ACTIONS } from '../policy/vocabulary.ts'
import { parseKeepDays, type KeepDays } from '../cloud/platform/foundation/keep-days.ts'
import type { Pooling } from '../cloud/platform/persistence/database.ts'
import {
  choice,
  euros,
  flag,
  optionalPort,
  perMinute,
  port,
  secret,
  text,
  type Option,
  url,
  wholeNumber,
} from './options.ts'

import { openIdSettings } from './openid-settings.ts'

/** All settings of all commands. Help texts, validation and docs/reference/configuration.md use this list. */

const dataDir = (fallback: string, help = 'Folder for data and keys') =>
  text({ flag: 'data', env: 'UNTAG_DATA_DIR', help }, 'DIR', fallback)
const host = text(
  { flag: 'host', env: 'UNTAG_HOST', help: 'Address to listen on. The default serves this machine only' },
  'HOST',
  '127.0.0.1',
)
/** Log levels. The log contains lines of the chosen level and of all levels after it in this list. */
const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'silent'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]
const logLevel = (fallback: LogLevel) =>
  choice(
    { flag: 'log-level', env: 'UNTAG_LOG_LEVEL', help: 'Lowest level of the log. The log is JSON lines on stderr' },
    LOG_LEVELS,
    fallback,
  )
const POSTGRES_PROTOCOLS = ['postgres:', 'postgresql:']
const databaseUrl = secret(
  url(
    { flag: 'database-url', env: 'UNTAG_DATABASE_URL', help: 'Use this PostgreSQL database instead of SQLite' },
    POSTGRES_PROTOCOLS,
  ),
)
const brokerUrl = secret(
  url(
    {
      flag: 'mqtt-url',
      env: 'UNTAG_MQTT_URL',
      help: 'Use this MQTT broker instead of the embedded one, such as mqtts://USER:PASSWORD@HOST',
    },
    ['mqtt:', 'mqtts:'],
  ),
)
const databasePooling = choice<Pooling>(
  {
    flag: 'database-pooling',
    env: 'UNTAG_DATABASE_POOLING',
    help: 'Use transaction if --database-url names a pooler in transaction mode, such as PgBouncer',
  },
  ['session', 'transaction'],
  'session',
)
const keyFiles = {
  keysDir: text(
    {
      flag: 'keys-dir',
      env: 'UNTAG_KEYS_DIR',
      help: 'Folder with master.key and root.json, for clouds on several machines. Default: keys in the data folder',
    },
    'DIR',
    undefined,
  ),
  masterKeyFile: text(
    {
      flag: 'master-key-file',
      env: 'UNTAG_MASTER_KEY_FILE',
      help: 'File with the master key. Default: master.key in --keys-dir',
    },
    'FILE',
    undefined,
  ),
  rootKeyFile: text(
    {
      flag: 'root-key-file',
      env: 'UNTAG_ROOT_KEY_FILE',
      help: 'File with the root key. Default: root.json in --keys-dir',
    },
    'FILE',
    undefined,
  ),
}
const replicaUrl = secret(
  url(
    {
      flag: 'replica-url',
      env: 'UNTAG_REPLICA_URL',
      help: 'Standby of --database-url. It answers catalogue pages, searches, reports and exports',
    },
    POSTGRES_PROTOCOLS,
  ),
)
const replicaMaxLag = wholeNumber(
  {
    flag: 'replica-max-lag',
    env: 'UNTAG_REPLICA_MAX_LAG',
    help: 'Seconds that data of --replica-url may be old. If the replica lags more, the primary answers',
  },
  'SECONDS',
  5,
  2,
  3_600,
)
const pcscdSocket = text(
  { flag: 'pcscd-socket', env: 'PCSCLITE_CSOCK_NAME', help: 'Socket of pcscd, the service for NFC readers' },
  'FILE',
  PCSCD_SOCKET,
)
const json = flag({ flag: 'json', env: 'UNTAG_JSON', help: 'Print the result as JSON' })
const jsonLines = flag({ flag: 'json', env: 'UNTAG_JSON', help: 'Print each line as JSON' })

const allowPrivateTargets = flag({
  flag: 'allow-private-targets',
  env: 'UNTAG_ALLOW_PRIVATE_TARGETS',
  help: 'Allow webhooks and merchants’ systems in private networks and on this machine. For tests and demonstrations',
})

const workers = wholeNumber(
  {
    flag: 'workers',
    env: 'UNTAG_WORKERS',
    help: 'Number of processes that share the ports. More than 1 need --database-url',
  },
  'N',
  1,
  1,
  64,
)

const brokerLoginSecret = secret(
  text(
    {
      flag: 'broker-login-secret',
      env: 'UNTAG_BROKER_LOGIN_SECRET',
      help: 'Answer the logins of an EMQX broker that sends this secret. See docs/guides/brokers.md',
    },
    'SECRET',
    undefined,
  ),
)
const drainDelay = wholeNumber(
  {
    flag: 'drain-delay',
    env: 'UNTAG_DRAIN_DELAY',
    help: 'Seconds between SIGTERM and the last new connection. /readyz answers 503. Needs --database-url and --mqtt-url',
  },
  'SECONDS',
  3,
  0,
  300,
)

const tlsFiles = {
  tlsCert: text(
    {
      flag: 'tls-cert',
      env: 'UNTAG_TLS_CERT',
      help: 'Serve TLS with this certificate, PEM, intermediates after it. Read again every 5 s. See docs/guides/tls.md',
    },
    'FILE',
    undefined,
  ),
  tlsKey: text(
    { flag: 'tls-key', env: 'UNTAG_TLS_KEY', help: 'File with the private key of --tls-cert, PEM' },
    'FILE',
    undefined,
  ),
}
const ca = text(
  {
    flag: 'ca',
    env: 'UNTAG_CA',
    help: 'File with the certificates of a private CA, PEM, to trust beside the public CAs',
  },
  'FILE',
  undefined,
)

export const CLOUD_OPTIONS = {
  port: port({ flag: 'port', env: 'UNTAG_PORT', help: 'Port of the API. 0 chooses a free port' }, 8080),
  host,
  mqttPort: port(
    { flag: 'mqtt-port', env: 'UNTAG_MQTT_PORT', help: 'Port of the MQTT broker. 0 chooses a free port' },
    1883,
  ),
  data: dataDir('var/cloud'),
  ...keyFiles,
  databaseUrl,
  databasePooling,
  replicaUrl,
  replicaMaxLag,
  requireMigrated: flag({
    flag: 'require-migrated',
    env: 'UNTAG_REQUIRE_MIGRATED',
    help: 'Do not start if migrations are missing. By default the cloud applies them when it starts',
  }),
  publicUrl: url({ flag: 'public-url', env: 'UNTAG_PUBLIC_URL', help: 'Origin of the API for clients and QR codes' }, [
    'http:',
    'https:',
  ]),
  securityContact: url(
    {
      flag: 'security-contact',
      env: 'UNTAG_SECURITY_CONTACT',
      help: 'Contact for security reports, such as mailto:security@shop.example. Makes /.well-known/security.txt',
    },
    ['mailto:', 'https:'],
  ),
  publicMqttUrl: url(
    { flag: 'public-mqtt-url', env: 'UNTAG_PUBLIC_MQTT_URL', help: 'Address of the MQTT broker for agents' },
    ['mqtt:', 'mqtts:'],
  ),
  ...tlsFiles,
  tlsOn: choice(
    {
      flag: 'tls-on',
      env: 'UNTAG_TLS_ON',
      help: 'Listeners with TLS. mqtt: only the MQTT broker, if a proxy serves HTTPS',
    },
    ['both', 'mqtt'],
    'both',
  ),
  mqttUrl: brokerUrl,
  mqttCa: text(
    { flag: 'mqtt-ca', env: 'UNTAG_MQTT_CA', help: 'File with the private CA of the outside broker, PEM' },
    'FILE',
    undefined,
  ),
  brokerLoginSecret,
  silentMinutes: wholeNumber(
    {
      flag: 'silent-minutes',
      env: 'UNTAG_SILENT_MINUTES',
      help: 'Raise an exception if an agent is silent, a device is not ready or a policy does not arrive for this time, minutes. 0: never',
    },
    'N',
    15,
    0,
    10_080,
  ),
  minFreeMb: wholeNumber(
    {
      flag: 'min-free-mb',
      env: 'UNTAG_MIN_FREE_MB',
      help: 'Raise an exception if less is free on the disk of --data, MiB. 0: never',
    },
    'N',
    1_024,
    0,
    1_000_000,
  ),
  keepDays: {
    flag: 'keep-days',
    env: 'UNTAG_KEEP_DAYS',
    placeholder: 'KIND=DAYS,…',
    help: 'Days for which data is kept, such as purchases=2922,chats=14. See docs/guides/data-protection.md',
    fallback: undefined,
    read: parseKeepDays,
  } satisfies Option<KeepDays | undefined> as Option<KeepDays | undefined>,
  metricsPort: optionalPort({
    flag: 'metrics-port',
    env: 'UNTAG_METRICS_PORT',
    help: 'Port of /metrics for Prometheus. 0 chooses a free port. Without this option there are no metrics',
  }),
  metricsHost: text(
    {
      flag: 'metrics-host',
      env: 'UNTAG_METRICS_HOST',
      help: 'Address of /metrics to listen on. The default serves this machine only',
    },
    'HOST',
    '127.0.0.1',
  ),
  rateLimit: wholeNumber(
    { flag: 'rate-limit', env: 'UNTAG_RATE_LIMIT', help: 'Requests per second for each key. 0 means no limit' },
    'N',
    50,
    0,
    1_000_000,
  ),
  ...openIdSettings,
  trustedProxies: text(
    {
      flag: 'trusted-proxies',
      env: 'UNTAG_TRUSTED_PROXIES',
      help: 'Addresses of proxies whose X-Forwarded-For the cloud trusts, separated by commas',
    },
    'LIST',
    undefined,
  ),
  workers,
  drainDelay,
  allowPrivateTargets,
  imagesBucket: url(
    {
      flag: 'images-bucket',
      env: 'UNTAG_IMAGES_BUCKET',
      help: 'Store pictures in this S3-compatible bucket instead of a folder',
    },
    ['http:', 'https:'],
  ),
  imagesRegion: text(
    { flag: 'images-region', env: 'UNTAG_IMAGES_REGION', help: 'Region of the bucket' },
    'REGION',
    'us-east-1',
  ),
  imagesAccessKeyId: text(
    { flag: 'images-access-key-id', env: 'UNTAG_IMAGES_ACCESS_KEY_ID', help: 'Access key id for the bucket' },
    'ID',
    undefined,
  ),
  imagesSecretAccessKey: secret(
    text(
      {
        flag: 'images-secret-access-key',
        env: 'UNTAG_IMAGES_SECRET_ACCESS_KEY',
        help: 'Secret access key for the bucket',
      },
      'SECRET',
      undefined,
    ),
  ),
  logLevel: logLevel('info'),
  json: jsonLines,
}

export const BROKER_SYNC_OPTIONS = {
  data: dataDir('var/cloud'),
  ...keyFiles,
  databaseUrl,
  mqttUrl: brokerUrl,
  format: choice(
    { flag: 'format', env: 'UNTAG_BROKER_FORMAT', help: 'Broker for which the file is written' },
    ['none', 'mosquitto', 'nats', 'rabbitmq'],
    'none',
  ),
  out: text({ flag: 'out', env: 'UNTAG_BROKER_FILE', help: 'File to write' }, 'FILE', undefined),
  json,
}

export const KEYS_CREATE_OPTIONS = {
  data: dataDir('var/cloud'),
  databaseUrl,
  databasePooling,
  account: text(
    { flag: 'account', env: 'UNTAG_ACCOUNT', help: 'Name of the account. A new name creates an account' },
    'NAME',
    undefined,
  ),
  mode: choice(
    {
      flag: 'mode',
      env: 'UNTAG_MODE',
      help: 'Test keys use the sandbox, live keys use real data. Admin keys are always live',
    },
    ['test', 'live'],
    'test',
  ),
  kind: choice(
    { flag: 'kind', env: 'UNTAG_KEY_KIND', help: 'Kind of key' },
    ['secret', 'publishable', 'admin'],
    'secret',
  ),
  package: choice(
    { flag: 'package', env: 'UNTAG_PACKAGE', help: 'Package of a new account' },
    ['DISCOVER', 'ASSIST', 'GO', 'GROW', 'PRIME'],
    'GROW',
  ),
  name: text({ flag: 'name', env: 'UNTAG_KEY_NAME', help: 'What the key is for' }, 'TEXT', 'command line'),
  json,
}

const account = text({ flag: 'account', env: 'UNTAG_ACCOUNT', help: 'Name of the account' }, 'NAME', undefined)
const email = text({ flag: 'email', env: 'UNTAG_EMAIL', help: 'E-mail address of the person' }, 'ADDRESS', undefined)

export const USERS_INVITE_OPTIONS = {
  data: dataDir('var/cloud'),
  databaseUrl,
  databasePooling,
  account,
  email,
  role: choice(
    { flag: 'role', env: 'UNTAG_ROLE', help: 'Role of the user' },
    ['owner', 'admin', 'manager', 'associate', 'viewer'],
    'viewer',
  ),
  store: text(
    {
      flag: 'store',
      env: 'UNTAG_STORE',
      help: 'Store that the user is limited to. Several: separate the ids by commas',
    },
    'ID',
    undefined,
  ),
  publicUrl: url(
    {
      flag: 'public-url',
      env: 'UNTAG_PUBLIC_URL',
      help: 'Origin of the link. Default: the origin of the cloud that uses this database',
    },
    ['http:', 'https:'],
  ),
  json,
}

export const USERS_LIST_OPTIONS = { data: dataDir('var/cloud'), databaseUrl, databasePooling, account, json }

export const USERS_REMOVE_OPTIONS = { data: dataDir('var/cloud'), databaseUrl, databasePooling, account, email, json }

export const VERIFY_AUDIT_OPTIONS = {
  data: dataDir('var/cloud'),
  databaseUrl,
  databasePooling,
  json,
}

export const RESEAL_OPTIONS = {
  data: dataDir('var/cloud'),
  ...keyFiles,
  databaseUrl,
  databasePooling,
  dropOldKeys: flag({
    flag: 'drop-old-keys',
    env: 'UNTAG_DROP_OLD_KEYS',
    help: 'Delete the former keys. Older backups of the database become unreadable',
  }),
  json,
}

export const MIGRATE_OPTIONS = {
  data: dataDir('var/cloud'),
  databaseUrl,
  databasePooling,
  json,
}

export const COMPLETION_OPTIONS = { json }

export const DATABASE_COPY_OPTIONS = {
  from: text(
    { flag: 'from', env: 'UNTAG_COPY_FROM', help: 'Folder of the cloud whose SQLite database is copied' },
    'DIR',
    'var/cloud',
  ),
  ...keyFiles,
  to: secret(
    url(
      { flag: 'to', env: 'UNTAG_COPY_TO', help: 'Empty PostgreSQL database that receives the copy' },
      POSTGRES_PROTOCOLS,
    ),
  ),
  json,
}

export const BACKUP_OPTIONS = {
  data: dataDir('var/cloud'),
  ...keyFiles,
  databaseUrl,
  to: text(
    { flag: 'to', env: 'UNTAG_BACKUP_DIR', help: 'Folder for backups. Each backup is a new folder in it' },
    'DIR',
    'var/backups',
  ),
  withKeys: flag({
    flag: 'with-keys',
    env: 'UNTAG_BACKUP_WITH_KEYS',
    help: 'Include the keys. Anyone who has such a backup can sign as this cloud',
  }),
  every: wholeNumber(
    {
      flag: 'every',
      env: 'UNTAG_BACKUP_EVERY',
      help: 'Keep running, and make a backup each time these hours have passed. 0: make one backup',
    },
    'HOURS',
    0,
    0,
    168,
  ),
  keep: wholeNumber(
    {
      flag: 'keep',
      env: 'UNTAG_BACKUP_KEEP',
      help: 'Keep this number of newest backups, and delete older ones after each backup. 0: see --keep-days',
    },
    'N',
    0,
    0,
    10_000,
  ),
  keepDays: wholeNumber(
    {
      flag: 'keep-days',
      env: 'UNTAG_BACKUP_KEEP_DAYS',
      help: 'Keep backups of this number of days, beside those of --keep. Without both options all backups stay',
    },
    'DAYS',
    0,
    0,
    36_500,
  ),
  json,
}

export const RESTORE_OPTIONS = {
  data: dataDir('var/cloud'),
  ...keyFiles,
  databaseUrl,
  from: text({ flag: 'from', env: 'UNTAG_RESTORE_FROM', help: 'Folder of the backup to restore' }, 'DIR', undefined),
  after: flag({
    flag: 'after',
    env: 'UNTAG_RESTORE_AFTER',
    help: 'Instead of --from: the database was restored by other means. Prepares the cloud to synchronize with its agents',
  }),
  force: flag({
    flag: 'force',
    env: 'UNTAG_RESTORE_FORCE',
    help: 'Replace the existing data. SQLite files are renamed, PostgreSQL tables are dropped',
  }),
  json,
}

export const KEYS_CHECK_OPTIONS = {
  data: dataDir('var/cloud'),
  ...keyFiles,
  databaseUrl,
  databasePooling,
  json,
}

export const KEYS_LIST_OPTIONS = {
  data: dataDir('var/cloud'),
  databaseUrl,
  databasePooling,
  account: text(
    { flag: 'account', env: 'UNTAG_ACCOUNT', help: 'Name of the account. Default: all accounts' },
    'NAME',
    undefined,
  ),
  json,
}

const keyId = text(
  { flag: 'key-id', env: 'UNTAG_KEY_ID', help: 'Id of the API key, from untag keys list' },
  'ID',
  undefined,
)

export const KEYS_ROLL_OPTIONS = {
  data: dataDir('var/cloud'),
  databaseUrl,
  databasePooling,
  keyId,
  overlapHours: wholeNumber(
    { flag: 'overlap-hours', env: 'UNTAG_OVERLAP_HOURS', help: 'Hours that the old key stays valid' },
    'N',
    24,
    0,
    168,
  ),
  json,
}

const signingKey = {
  use: choice(
    { flag: 'use', env: 'UNTAG_KEY_USE', help: 'Act on a signing key instead of an API key: what the key signs' },
    ['none', 'token', 'receipt', 'policy', 'freshness'],
    'none',
  ),
  account: text(
    { flag: 'account', env: 'UNTAG_ACCOUNT', help: 'Name of the account, for a token or receipt key' },
    'NAME',
    undefined,
  ),
  mode: choice(
    { flag: 'mode', env: 'UNTAG_MODE', help: 'Side of the account: sandbox, real data or both' },
    ['both', 'test', 'live'],
    'both',
  ),
}

export const KEYS_ROTATE_OPTIONS = {
  data: dataDir('var/cloud'),
  ...keyFiles,
  databaseUrl,
  databasePooling,
  ...signingKey,
  use: choice(
    {
      flag: 'use',
      env: 'UNTAG_KEY_USE',
      help: 'What the key signs. root signs the key sets: afterwards all agents must be re-enrolled',
    },
    ['none', 'token', 'receipt', 'policy', 'freshness', 'root'],
    'none',
  ),
  json,
}

export const KEYS_REVOKE_OPTIONS = {
  data: dataDir('var/cloud'),
  ...keyFiles,
  databaseUrl,
  databasePooling,
  keyId,
  ...signingKey,
  kid: text(
    {
      flag: 'kid',
      env: 'UNTAG_KID',
      help: 'Id of the signing key, or all: the one that signs now, the next and former ones. Default: the one that signs now',
    },
    'KID',
    undefined,
  ),
  json,
}

export const EDGE_OPTIONS = {
  data: dataDir('var/edge'),
  config: text(
    { flag: 'config', env: 'UNTAG_EDGE_CONFIG', help: 'Configuration file that lists the devices' },
    'FILE',
    undefined,
  ),
  port: port(
    { flag: 'port', env: 'UNTAG_PORT', help: 'Port of the pages and the local API. 0 chooses a free port' },
    8090,
  ),
  host,
  mqttUrl: url(
    {
      flag: 'mqtt-url',
      env: 'UNTAG_MQTT_URL',
      help: 'Address of the MQTT broker. Default: the address from enrolment',
    },
    ['mqtt:', 'mqtts:'],
  ),
  trace: text(
    {
      flag: 'trace',
      env: 'UNTAG_TRACE_DIR',
      help: 'Record all bytes to and from devices in this folder, passwords included. See docs/reference/hardware/traces.md',
    },
    'DIR',
    undefined,
  ),
  runtimeDir: text(
    {
      flag: 'runtime-dir',
      env: 'UNTAG_RUNTIME_DIR',
      help: 'Folder outside --data that a reboot empties. It reveals a restored ledger. Default: XDG_RUNTIME_DIR/untag, or untag-UID in the temporary folder',
    },
    'DIR',
    undefined,
  ),
  ...tlsFiles,
  ca,
  pcscdSocket,
  logLevel: logLevel('info'),
  json: jsonLines,
}

export const EDGE_ENROL_OPTIONS = {
  cloud: url({ flag: 'cloud', env: 'UNTAG_CLOUD', help: 'Base URL of the API, such as https://shop.example/api/v1' }, [
    'http:',
    'https:',
  ]),
  code: text({ flag: 'code', env: 'UNTAG_ENROL_CODE', help: 'Code from createEnrolmentCode' }, 'CODE', undefined),
  data: dataDir('var/edge'),
  ca,
  name: text({ flag: 'name', env: 'UNTAG_AGENT_NAME', help: 'Name of this agent' }, 'TEXT', undefined),
  replace: flag({
    flag: 'replace',
    env: 'UNTAG_ENROL_REPLACE',
    help: 'Replace the agent in this folder. The new agent takes over its ledger, devices and receipt home; used release rights stay used',
  }),
  json,
}

export const EDGE_PAIR_OPTIONS = {
  data: dataDir('var/edge'),
  name: text(
    { flag: 'name', env: 'UNTAG_PROGRAM_NAME', help: 'Name of the program that uses the credential' },
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
    help: 'Replace the credential. A running agent rejects the former one at once',
  }),
  json,
}

export const EDGE_LINK_OPTIONS = {
  data: dataDir('var/edge'),
  host: text(
    {
      flag: 'host',
      env: 'UNTAG_LINK_HOST',
      help: 'Host in the link, for browsers on other machines. Must be one of hosts in the agent’s configuration',
    },
    'NAME',
    undefined,
  ),
  json,
}

export const EDGE_PAIRINGS_OPTIONS = {
  data: dataDir('var/edge'),
  revoke: text(
    { flag: 'revoke', env: 'UNTAG_REVOKE_PAIRING', help: 'Id of a pairing to end at once' },
    'ID',
    undefined,
  ),
  json,
}

export const EDGE_ROTATE_KEY_OPTIONS = { data: dataDir('var/edge'), json }

export const EDGE_WALK_TEST_OPTIONS = {
  data: dataDir('var/edge'),
  device: text({ flag: 'device', env: 'UNTAG_WALK_DEVICE', help: 'deviceId of the gate' }, 'ID', undefined),
  unpaid: text(
    { flag: 'unpaid', env: 'UNTAG_WALK_UNPAID', help: 'EPC or UID of a test tag that is registered and not paid' },
    'TAG',
    undefined,
  ),
  paid: text(
    { flag: 'paid', env: 'UNTAG_WALK_PAID', help: 'EPC or UID of a test tag whose item is paid' },
    'TAG',
    undefined,
  ),
  operator: text(
    { flag: 'operator', env: 'UNTAG_WALK_OPERATOR', help: 'Name of the person who tests the gate, for the report' },
    'NAME',
    undefined,
  ),
  positions: text(
    { flag: 'positions', env: 'UNTAG_WALK_POSITIONS', help: 'How the tag is carried, separated by semicolons' },
    'LIST',
    'knee, upright; knee, flat; hip, upright; hip, flat; chest, upright; chest, flat; in a bag',
  ),
  repeats: wholeNumber(
    { flag: 'repeats', env: 'UNTAG_WALK_REPEATS', help: 'Walks with the unpaid tag in each position' },
    'NUMBER',
    3,
    1,
    100,
  ),
  seconds: wholeNumber(
    { flag: 'seconds', env: 'UNTAG_WALK_SECONDS', help: 'Maximum duration of one walk, s' },
    'SECONDS',
    10,
    1,
    120,
  ),
  minPercent: wholeNumber(
    { flag: 'min-percent', env: 'UNTAG_WALK_MIN_PERCENT', help: 'Share of walks that the gate must detect, %' },
    'PERCENT',
    95,
    1,
    100,
  ),
  config: text(
    {
      flag: 'config',
      env: 'UNTAG_EDGE_CONFIG',
      help: 'Configuration file of the agent, whose reader settings the report shows without secrets',
    },
    'FILE',
    undefined,
  ),
  agent: url({ flag: 'agent', env: 'UNTAG_AGENT', help: 'Address of the agent. Default: the address that it stored' }, [
    'http:',
    'https:',
  ]),
  out: text(
    { flag: 'out', env: 'UNTAG_WALK_REPORT', help: 'Also write the report to this file: .html, .json or text' },
    'FILE',
    undefined,
  ),
  json,
}

export const START_OPTIONS = {
  port: port({ flag: 'port', env: 'UNTAG_PORT', help: 'Port of the API. 0 chooses a free port' }, 8080),
  mqttPort: port(
    { flag: 'mqtt-port', env: 'UNTAG_MQTT_PORT', help: 'Port of the MQTT broker. 0 chooses a free port' },
    1883,
  ),
  edgePort: port(
    { flag: 'edge-port', env: 'UNTAG_EDGE_PORT', help: 'Port of the station and gate pages. 0 chooses a free port' },
    8090,
  ),
  data: dataDir(
    'var/demo',
    'Folder for data and keys, with a folder cloud (as for untag cloud) and edge (as for untag edge)',
  ),
  // Not UNTAG_DATABASE_URL: the demonstration must not write into the database of a real cloud.
  databaseUrl: secret(
    url(
      {
        flag: 'database-url',
        env: 'UNTAG_DEMO_DATABASE_URL',
        help: 'Use this PostgreSQL database instead of SQLite. It must be empty at the first start',
      },
      POSTGRES_PROTOCOLS,
    ),
  ),
  allowPrivateTargets,
  logLevel: logLevel('error'),
  json: jsonLines,
}

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
  port: port({ flag: 'port', env: 'UNTAG_SIMULATOR_PORT', help: 'TCP port. 0 chooses a free port' }, 0),
  host,
  framing: choice(
    { flag: 'framing', env: 'UNTAG_SIMULATOR_FRAMING', help: 'relay-board: Modbus framing on the wire' },
    ['tcp', 'rtu'],
    'tcp',
  ),
  quirk: choice(
    {
      flag: 'quirk',
      env: 'UNTAG_SIMULATOR_QUIRK',
      help: 'peculiarity of real devices; the page of each device lists them',
    },
    Object.keys(QUIRKS) as Quirk[],
    'none',
  ),
  lockOutput: wholeNumber(
    { flag: 'lock-output', env: 'UNTAG_SIMULATOR_LOCK_OUTPUT', help: 'relay-board: output that drives the lock' },
    'N',
    0,
    0,
    7,
  ),
  lockInput: wholeNumber(
    {
      flag: 'lock-input',
      env: 'UNTAG_SIMULATOR_LOCK_INPUT',
      help: 'relay-board: input that shows that the lock moved',
    },
    'N',
    0,
    0,
    7,
  ),
  tags: wholeNumber(
    { flag: 'tags', env: 'UNTAG_SIMULATOR_TAGS', help: 'gate: number of tags in the shop' },
    'N',
    200,
    1,
    100_000,
  ),
  walkers: perMinute(
    { flag: 'walkers', env: 'UNTAG_SIMULATOR_WALKERS', help: 'gate: people who walk through' },
    30,
    600,
  ),
  pushTo: url(
    { flag: 'push-to', env: 'UNTAG_SIMULATOR_PUSH_TO', help: 'http-ingest: address that receives the reads' },
    ['http:', 'https:'],
  ),
  pushSecret: text(
    { flag: 'push-secret', env: 'UNTAG_SIMULATOR_PUSH_SECRET', help: 'http-ingest: secret of the device' },
    'SECRET',
    '',
  ),
  pushFormat: choice(
    { flag: 'push-format', env: 'UNTAG_SIMULATOR_PUSH_FORMAT', help: 'http-ingest: make of the reader' },
    ['keonn', 'impinj'],
    'keonn',
  ),
  answerDelay: wholeNumber(
    {
      flag: 'answer-delay',
      env: 'UNTAG_SIMULATOR_ANSWER_DELAY',
      help: 'gate, impinj-iot, zebra-iotc: time before each answer, ms',
    },
    'MS',
    0,
    0,
    30_000,
  ),
  tagTtl: wholeNumber(
    {
      flag: 'tag-ttl',
      env: 'UNTAG_SIMULATOR_TAG_TTL',
      help: 'http-ingest: time after a read in which further reads of the tag are dropped, ms',
    },
    'MS',
    0,
    0,
    600_000,
  ),
  vendorDefaults: flag({
    flag: 'vendor-defaults',
    env: 'UNTAG_SIMULATOR_VENDOR_DEFAULTS',
    help: 'Start with the settings of a factory device instead of the settings that untag advises',
  }),
  json: jsonLines,
}

export const SIMULATE_NFC_OPTIONS = {
  socket: text(
    {
      flag: 'socket',
      env: 'UNTAG_SIMULATOR_SOCKET',
      help: 'Socket to create in place of the one of pcscd. Pass it to untag edge as --pcscd-socket',
    },
    'FILE',
    'var/pcscd.sock',
  ),
  json: jsonLines,
}

export const SIMULATE_VENDOR_OPTIONS = { port: SIMULATE_OPTIONS.port, host, json: jsonLines }

/** Base URL of the API of an `untag cloud` with default settings. */
export const DEFAULT_BASE_URL = 'http://127.0.0.1:8080/api/v1'

const apiUrl = url({ flag: 'base-url', env: 'UNTAG_API', help: 'Address of the API' }, ['http:', 'https:'])

export const API_OPTIONS = {
  key: text({ flag: 'key', env: 'UNTAG_KEY', help: 'API key' }, 'KEY', undefined),
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
  idempotencyKey: text(
    {
      flag: 'idempotency-key',
      env: 'UNTAG_IDEMPOTENCY_KEY',
      help: 'Key to repeat a call safely. Default: a new key for each call',
    },
    'TEXT',
    undefined,
  ),
}

export const SIMULATE_PSP_OPTIONS = {
  port: port({ flag: 'port', env: 'UNTAG_SIMULATOR_PORT', help: 'TCP port. 0 chooses a free port' }, 0),
  host,
  provider: choice(
    { flag: 'provider', env: 'UNTAG_SIMULATOR_PROVIDER', help: 'Payment provider to simulate' },
    ['custom', 'stripe', 'mollie', 'adyen', 'paypal', 'klarna', 'sumup', 'worldline'],
    'custom',
  ),
  storeId: text(
    {
      flag: 'store',
      env: 'UNTAG_STORE',
      help: 'Store that receives payment notifications. Default: no notifications are sent',
    },
    'ID',
    undefined,
  ),
  baseUrl: API_OPTIONS.baseUrl,
  json: jsonLines,
}

export const LISTEN_OPTIONS = {
  key: API_OPTIONS.key,
  baseUrl: API_OPTIONS.baseUrl,
  ca,
  forwardTo: url(
    { flag: 'forward-to', env: 'UNTAG_FORWARD_TO', help: 'URL of your receiver. It may be on this machine' },
    ['http:', 'https:'],
  ),
  events: text(
    { flag: 'events', env: 'UNTAG_EVENTS', help: 'Names of events, separated by commas, or * for all' },
    'LIST',
    '*',
  ),
  storeId: text({ flag: 'store', env: 'UNTAG_STORE', help: 'Only events of this store' }, 'ID', undefined),
  secret: text(
    {
      flag: 'secret',
      env: 'UNTAG_WEBHOOK_SECRET',
      help: 'Secret that signs the events. Default: a new secret, which is printed',
    },
    'SECRET',
    undefined,
  ),
  json: jsonLines,
}

export const TRIGGER_OPTIONS = {
  key: API_OPTIONS.key,
  baseUrl: API_OPTIONS.baseUrl,
  ca,
  webhookId: text(
    {
      flag: 'webhook',
      env: 'UNTAG_WEBHOOK',
      help: 'Send to this webhook only. Default: all webhooks for the event, and untag listen',
    },
    'ID',
    undefined,
  ),
  storeId: text({ flag: 'store', env: 'UNTAG_STORE', help: 'Store in the event' }, 'ID', undefined),
  json,
}

export const POLICY_EXPLAIN_OPTIONS = {
  key: API_OPTIONS.key,
  baseUrl: API_OPTIONS.baseUrl,
  ca,
  storeId: text(
    { flag: 'store', env: 'UNTAG_STORE', help: 'Store of the device. Default: search all stores' },
    'ID',
    undefined,
  ),
  deviceId: text({ flag: 'device', env: 'UNTAG_DEVICE', help: 'Device that sends the request' }, 'ID', undefined),
  action: choice(
    { flag: 'action', env: 'UNTAG_ACTION', help: 'Action that the device requests' },
    ['none', ...PROTECTION_ACTIONS],
    'none',
  ),
  category: text(
    { flag: 'category', env: 'UNTAG_CATEGORY', help: 'Category of the item. Default: none; unknown offline' },
    'TEXT',
    undefined,
  ),
  brand: text(
    { flag: 'brand', env: 'UNTAG_BRAND', help: 'Brand of the item. Default: none; unknown offline' },
    'TEXT',
    undefined,
  ),
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

const serviceOut = text(
  {
    flag: 'out',
    env: 'UNTAG_SERVICE_OUT',
    help: 'Folder for systemd/system and sysusers.d. Packages write to another folder',
  },
  'DIR',
  '/etc',
)

export const SERVICE_EDGE_OPTIONS = {
  out: serviceOut,
  ...tlsFiles,
  print: flag({ flag: 'print', env: 'UNTAG_SERVICE_PRINT', help: 'Print the files and write nothing' }),
  json,
}

export const SERVICE_CLOUD_OPTIONS = {
  ...SERVICE_EDGE_OPTIONS,
  keysDir: text(
    {
      flag: 'keys-dir',
      env: 'UNTAG_KEYS_DIR',
      help: 'Folder of the keys, for root only. Missing keys are created. The service gets a copy in memory',
    },
    'DIR',
    '/etc/untag/keys',
  ),
}

export const SERVICE_REMOVE_OPTIONS = { out: serviceOut, json }

export const DOCTOR_OPTIONS = {
  data: dataDir('var/edge'),
  config: text(
    {
      flag: 'config',
      env: 'UNTAG_EDGE_CONFIG',
      help: 'Configuration file to check. If no agent runs, the doctor connects to its devices',
    },
    'FILE',
    undefined,
  ),
  ca,
  minFreeMb: wholeNumber(
    {
      flag: 'min-free-mb',
      env: 'UNTAG_DOCTOR_MIN_FREE_MB',
      help: 'Free space of the disk below which is a fault, MiB',
    },
    'N',
    200,
    0,
    1_000_000,
  ),
  backups: text(
    {
      flag: 'backups',
      env: 'UNTAG_BACKUP_DIR',
      help: 'Folder of untag backup. A newest backup over 26 hours old is a fault',
    },
    'DIR',
    undefined,
  ),
  add: wholeNumber(
    {
      flag: 'add',
      env: 'UNTAG_DOCTOR_ADD',
      help: 'Add the found device with this number to the configuration file. 0 adds nothing',
    },
    'NUMBER',
    0,
    0,
    1_000,
  ),
  device: text({ flag: 'device', env: 'UNTAG_DOCTOR_DEVICE', help: 'deviceId for the added device' }, 'ID', undefined),
  pcscdSocket,
  json,
}
