import { choice, flag, text, url, wholeNumber } from '../options.ts'
import {
  POSTGRES_PROTOCOLS,
  account,
  brokerUrl,
  dataDir,
  databasePooling,
  databaseUrl,
  json,
  keyFiles,
} from './shared.ts'

/** Settings of the commands that read or change the data of a cloud. */

const database = { data: dataDir('var/cloud'), databaseUrl, databasePooling }
const dataAndKeys = { data: dataDir('var/cloud'), ...keyFiles, databaseUrl }
const databaseAndKeys = { ...dataAndKeys, databasePooling }

export const BROKER_SYNC_OPTIONS = {
  ...dataAndKeys,
  mqttUrl: brokerUrl,
  format: choice({
    flag: 'format',
    env: 'UNTAG_BROKER_FORMAT',
    help: 'Broker for which the file is written',
    values: ['none', 'mosquitto', 'nats', 'rabbitmq'],
    fallback: 'none',
  }),
  out: text({ flag: 'out', env: 'UNTAG_BROKER_FILE', help: 'File to write', placeholder: 'FILE' }),
  json,
}

export const KEYS_CREATE_OPTIONS = {
  ...database,
  account: text({
    flag: 'account',
    env: 'UNTAG_ACCOUNT',
    help: 'Name of the account. A new name creates an account',
    placeholder: 'NAME',
  }),
  mode: choice({
    flag: 'mode',
    env: 'UNTAG_MODE',
    help: 'Test keys use the sandbox, live keys use real data. Admin keys are always live',
    values: ['test', 'live'],
    fallback: 'test',
  }),
  kind: choice({
    flag: 'kind',
    env: 'UNTAG_KEY_KIND',
    help: 'Kind of key',
    values: ['secret', 'publishable', 'admin'],
    fallback: 'secret',
  }),
  package: choice({
    flag: 'package',
    env: 'UNTAG_PACKAGE',
    help: 'Package of a new account',
    values: ['DISCOVER', 'ASSIST', 'GO', 'GROW', 'PRIME'],
    fallback: 'GROW',
  }),
  name: text({
    flag: 'name',
    env: 'UNTAG_KEY_NAME',
    help: 'What the key is for',
    placeholder: 'TEXT',
    fallback: 'command line',
  }),
  json,
}

const email = text({ flag: 'email', env: 'UNTAG_EMAIL', help: 'E-mail address of the person', placeholder: 'ADDRESS' })

const linkOrigin = url({
  flag: 'public-url',
  env: 'UNTAG_PUBLIC_URL',
  help: 'Origin of the link. Default: the origin of the cloud that uses this database',
  protocols: ['http:', 'https:'],
})

export const USERS_INVITE_OPTIONS = {
  ...database,
  account,
  email,
  role: choice({
    flag: 'role',
    env: 'UNTAG_ROLE',
    help: 'Role of the user',
    values: ['owner', 'admin', 'manager', 'associate', 'viewer'],
    fallback: 'viewer',
  }),
  store: text({
    flag: 'store',
    env: 'UNTAG_STORE',
    help: 'Store that the user is limited to. Several: separate the ids by commas',
    placeholder: 'ID',
  }),
  publicUrl: linkOrigin,
  json,
}

export const USERS_LIST_OPTIONS = { ...database, account, json }

export const USERS_REMOVE_OPTIONS = { ...database, account, email, json }

export const ADMINS_INVITE_OPTIONS = { ...database, email, publicUrl: linkOrigin, json }

export const ADMINS_LIST_OPTIONS = { ...database, json }

export const ADMINS_REMOVE_OPTIONS = { ...database, email, json }

export const VERIFY_AUDIT_OPTIONS = { ...database, json }

export const RESEAL_OPTIONS = {
  ...databaseAndKeys,
  dropOldKeys: flag({
    flag: 'drop-old-keys',
    env: 'UNTAG_DROP_OLD_KEYS',
    help: 'Delete the former keys. Older backups of the database become unreadable',
  }),
  json,
}

export const MIGRATE_OPTIONS = { ...database, json }

export const DATABASE_COPY_OPTIONS = {
  from: text({
    flag: 'from',
    env: 'UNTAG_COPY_FROM',
    help: 'Folder of the cloud whose SQLite database is copied',
    placeholder: 'DIR',
    fallback: 'var/cloud',
  }),
  ...keyFiles,
  to: url({
    flag: 'to',
    env: 'UNTAG_COPY_TO',
    help: 'Empty PostgreSQL database that receives the copy',
    protocols: POSTGRES_PROTOCOLS,
    isSecret: true,
  }),
  json,
}

export const BACKUP_OPTIONS = {
  ...dataAndKeys,
  to: text({
    flag: 'to',
    env: 'UNTAG_BACKUP_DIR',
    help: 'Folder for backups. Each backup is a new folder in it',
    placeholder: 'DIR',
    fallback: 'var/backups',
  }),
  withKeys: flag({
    flag: 'with-keys',
    env: 'UNTAG_BACKUP_WITH_KEYS',
    help: 'Include the keys. Anyone who has such a backup can sign as this cloud',
  }),
  every: wholeNumber({
    flag: 'every',
    env: 'UNTAG_BACKUP_EVERY',
    help: 'Keep running, and make a backup each time these hours have passed. 0: make one backup',
    placeholder: 'HOURS',
    fallback: 0,
    min: 0,
    max: 168,
  }),
  keep: wholeNumber({
    flag: 'keep',
    env: 'UNTAG_BACKUP_KEEP',
    help: 'Keep this number of newest backups, and delete older ones after each backup. 0: see --keep-days',
    placeholder: 'N',
    fallback: 0,
    min: 0,
    max: 10_000,
  }),
  keepDays: wholeNumber({
    flag: 'keep-days',
    env: 'UNTAG_BACKUP_KEEP_DAYS',
    help: 'Keep backups of this number of days, beside those of --keep. Without both options all backups stay',
    placeholder: 'DAYS',
    fallback: 0,
    min: 0,
    max: 36_500,
  }),
  json,
}

export const RESTORE_OPTIONS = {
  ...dataAndKeys,
  from: text({ flag: 'from', env: 'UNTAG_RESTORE_FROM', help: 'Folder of the backup to restore', placeholder: 'DIR' }),
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

export const KEYS_CHECK_OPTIONS = { ...databaseAndKeys, json }

export const KEYS_LIST_OPTIONS = {
  ...database,
  account: text({
    flag: 'account',
    env: 'UNTAG_ACCOUNT',
    help: 'Name of the account. Default: all accounts',
    placeholder: 'NAME',
  }),
  json,
}

const keyId = text({
  flag: 'key-id',
  env: 'UNTAG_KEY_ID',
  help: 'Id of the API key, from untag keys list',
  placeholder: 'ID',
})

export const KEYS_ROLL_OPTIONS = {
  ...database,
  keyId,
  overlapHours: wholeNumber({
    flag: 'overlap-hours',
    env: 'UNTAG_OVERLAP_HOURS',
    help: 'Hours that the old key stays valid',
    placeholder: 'N',
    fallback: 24,
    min: 0,
    max: 168,
  }),
  json,
}

const signingKey = {
  use: choice({
    flag: 'use',
    env: 'UNTAG_KEY_USE',
    help: 'Act on a signing key instead of an API key: what the key signs',
    values: ['none', 'token', 'receipt', 'policy', 'freshness'],
    fallback: 'none',
  }),
  account: text({
    flag: 'account',
    env: 'UNTAG_ACCOUNT',
    help: 'Name of the account, for a token or receipt key',
    placeholder: 'NAME',
  }),
  mode: choice({
    flag: 'mode',
    env: 'UNTAG_MODE',
    help: 'Side of the account: sandbox, real data or both',
    values: ['both', 'test', 'live'],
    fallback: 'both',
  }),
}

export const KEYS_ROTATE_OPTIONS = {
  ...databaseAndKeys,
  ...signingKey,
  use: choice({
    flag: 'use',
    env: 'UNTAG_KEY_USE',
    help: 'What the key signs. root signs the key sets: afterwards all agents must be re-enrolled',
    values: ['none', 'token', 'receipt', 'policy', 'freshness', 'root'],
    fallback: 'none',
  }),
  json,
}

export const KEYS_REVOKE_OPTIONS = {
  ...databaseAndKeys,
  keyId,
  ...signingKey,
  kid: text({
    flag: 'kid',
    env: 'UNTAG_KID',
    help: 'Id of the signing key, or all: the one that signs now, the next and former ones. Default: the one that signs now',
    placeholder: 'KID',
  }),
  json,
}
