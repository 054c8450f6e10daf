import { PCSCD_SOCKET } from '../../device-drivers/transports/link-settings.ts'
import type { Pooling } from '../../cloud/platform/persistence/database.ts'
import { choice, flag, text, url } from '../options.ts'

/** Settings that several commands have. The files beside this one declare the options of each command. */

export const dataDir = (fallback: string, help = 'Folder for data and keys') =>
  text({ flag: 'data', env: 'UNTAG_DATA_DIR', help, placeholder: 'DIR', fallback })

export const host = text({
  flag: 'host',
  env: 'UNTAG_HOST',
  help: 'Address to listen on. The default serves this machine only',
  placeholder: 'HOST',
  fallback: '127.0.0.1',
})

/** Log levels. The log contains lines of the chosen level and of all levels after it in this list. */
const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'silent'] as const

export type LogLevel = (typeof LOG_LEVELS)[number]

export const logLevel = (fallback: LogLevel) =>
  choice({
    flag: 'log-level',
    env: 'UNTAG_LOG_LEVEL',
    help: 'Lowest level of the log. The log is JSON lines on stderr',
    values: LOG_LEVELS,
    fallback,
  })

export const POSTGRES_PROTOCOLS = ['postgres:', 'postgresql:']

export const databaseUrl = url({
  flag: 'database-url',
  env: 'UNTAG_DATABASE_URL',
  help: 'Use this PostgreSQL database instead of SQLite',
  protocols: POSTGRES_PROTOCOLS,
  isSecret: true,
})

export const databasePooling = choice<Pooling>({
  flag: 'database-pooling',
  env: 'UNTAG_DATABASE_POOLING',
  help: 'Use transaction if --database-url names a pooler in transaction mode, such as PgBouncer',
  values: ['session', 'transaction'],
  fallback: 'session',
})

export const keyFiles = {
  keysDir: text({
    flag: 'keys-dir',
    env: 'UNTAG_KEYS_DIR',
    help: 'Folder with master.key and root.json, for clouds on several machines. Default: keys in the data folder',
    placeholder: 'DIR',
  }),
  masterKeyFile: text({
    flag: 'master-key-file',
    env: 'UNTAG_MASTER_KEY_FILE',
    help: 'File with the master key. Default: master.key in --keys-dir',
    placeholder: 'FILE',
  }),
  rootKeyFile: text({
    flag: 'root-key-file',
    env: 'UNTAG_ROOT_KEY_FILE',
    help: 'File with the root key. Default: root.json in --keys-dir',
    placeholder: 'FILE',
  }),
}

export const brokerUrl = url({
  flag: 'mqtt-url',
  env: 'UNTAG_MQTT_URL',
  help: 'Use this MQTT broker instead of the embedded one, such as mqtts://USER:PASSWORD@HOST',
  protocols: ['mqtt:', 'mqtts:'],
  isSecret: true,
})

export const tlsFiles = {
  tlsCert: text({
    flag: 'tls-cert',
    env: 'UNTAG_TLS_CERT',
    help: 'Serve TLS with this certificate, PEM, intermediates after it. Read again every 5 s. See docs/guides/tls.md',
    placeholder: 'FILE',
  }),
  tlsKey: text({
    flag: 'tls-key',
    env: 'UNTAG_TLS_KEY',
    help: 'File with the private key of --tls-cert, PEM',
    placeholder: 'FILE',
  }),
}

export const ca = text({
  flag: 'ca',
  env: 'UNTAG_CA',
  help: 'File with the certificates of a private CA, PEM, to trust beside the public CAs',
  placeholder: 'FILE',
})

export const account = text({ flag: 'account', env: 'UNTAG_ACCOUNT', help: 'Name of the account', placeholder: 'NAME' })

export const allowPrivateTargets = flag({
  flag: 'allow-private-targets',
  env: 'UNTAG_ALLOW_PRIVATE_TARGETS',
  help: 'Allow webhooks and merchants’ systems in private networks and on this machine. For tests and demonstrations',
})

export const json = flag({ flag: 'json', env: 'UNTAG_JSON', help: 'Print the result as JSON' })

export const jsonLines = flag({ flag: 'json', env: 'UNTAG_JSON', help: 'Print each line as JSON' })

export const pcscdSocket = text({
  flag: 'pcscd-socket',
  env: 'PCSCLITE_CSOCK_NAME',
  help: 'Socket of pcscd, the service for NFC readers',
  placeholder: 'FILE',
  fallback: PCSCD_SOCKET,
})
