import { parseKeepDays, type KeepDays, type OpenIdConfig } from '../../cloud/platform/foundation/config.ts'
import {
  choice,
  flag,
  optionalPort,
  port,
  text,
  url,
  wholeNumber,
  type Option,
  WrongUsage,
  type Values,
} from '../options.ts'
import {
  POSTGRES_PROTOCOLS,
  allowPrivateTargets,
  brokerUrl,
  dataDir,
  databasePooling,
  databaseUrl,
  host,
  jsonLines,
  keyFiles,
  logLevel,
  tlsFiles,
} from './shared.ts'

/** Settings of the sign-in with OpenID Connect. */
const openIdSettings = {
  oidcIssuer: url({
    flag: 'oidc-issuer',
    env: 'UNTAG_OIDC_ISSUER',
    help: 'Let users sign in to the console with this OpenID Connect provider. See docs/guides/openid-connect.md',
    protocols: ['https:', 'http:'],
  }),
  oidcClientId: text({
    flag: 'oidc-client-id',
    env: 'UNTAG_OIDC_CLIENT_ID',
    help: 'Client id of this cloud at the provider',
    placeholder: 'ID',
  }),
  oidcClientSecret: text({
    flag: 'oidc-client-secret',
    env: 'UNTAG_OIDC_CLIENT_SECRET',
    help: 'Client secret of this cloud at the provider',
    placeholder: 'SECRET',
    isSecret: true,
  }),
  oidcName: text({
    flag: 'oidc-name',
    env: 'UNTAG_OIDC_NAME',
    help: 'Name of the provider on the sign-in page',
    placeholder: 'NAME',
    fallback: 'OpenID Connect',
  }),
  oidcDomains: text({
    flag: 'oidc-domains',
    env: 'UNTAG_OIDC_DOMAINS',
    help: 'Domains of the e-mail addresses that may sign in with the provider, separated by commas. Default: all',
    placeholder: 'LIST',
  }),
}

/** Reads the settings of the provider. Undefined without --oidc-issuer. */
export function openIdConfig(settings: Values<typeof openIdSettings>): OpenIdConfig | undefined {
  const { oidcIssuer: issuer, oidcClientId: clientId, oidcClientSecret: clientSecret, oidcName: name } = settings
  if (issuer === undefined) {
    if (clientId !== undefined || clientSecret !== undefined || settings.oidcDomains !== undefined)
      throw new WrongUsage(['--oidc-client-id, --oidc-client-secret and --oidc-domains need --oidc-issuer'])
    return undefined
  }
  const missing = [
    ...(clientId === undefined ? ['--oidc-client-id'] : []),
    ...(clientSecret === undefined ? ['--oidc-client-secret-file or UNTAG_OIDC_CLIENT_SECRET'] : []),
  ]
  if (clientId === undefined || clientSecret === undefined)
    throw new WrongUsage([`--oidc-issuer also needs ${missing.join(', and ')}`])
  const { protocol, hostname } = new URL(issuer)
  if (protocol === 'http:' && !['localhost', '127.0.0.1', '[::1]'].includes(hostname))
    throw new WrongUsage(['--oidc-issuer must begin with https://, because the client secret is sent there'])
  const domains = (settings.oidcDomains ?? '').split(',').map((domain) => domain.trim().toLowerCase().replace(/^@/, ''))
  return { issuer, clientId, clientSecret, name, domains: domains.filter((domain) => domain !== '') }
}

/** Settings of the cloud, and of the demonstration that starts it. */

export const CLOUD_OPTIONS = {
  port: port({ flag: 'port', env: 'UNTAG_PORT', help: 'Port of the API. 0 chooses a free port', fallback: 8080 }),
  host,
  mqttPort: port({
    flag: 'mqtt-port',
    env: 'UNTAG_MQTT_PORT',
    help: 'Port of the MQTT broker. 0 chooses a free port',
    fallback: 1883,
  }),
  data: dataDir('var/cloud'),
  ...keyFiles,
  databaseUrl,
  databasePooling,
  replicaUrl: url({
    flag: 'replica-url',
    env: 'UNTAG_REPLICA_URL',
    help: 'Standby of --database-url. It answers catalogue pages, searches, reports and exports',
    protocols: POSTGRES_PROTOCOLS,
    isSecret: true,
  }),
  replicaMaxLag: wholeNumber({
    flag: 'replica-max-lag',
    env: 'UNTAG_REPLICA_MAX_LAG',
    help: 'Seconds that data of --replica-url may be old. If the replica lags more, the primary answers',
    placeholder: 'SECONDS',
    fallback: 5,
    min: 2,
    max: 3_600,
  }),
  requireMigrated: flag({
    flag: 'require-migrated',
    env: 'UNTAG_REQUIRE_MIGRATED',
    help: 'Do not start if migrations are missing. By default the cloud applies them when it starts',
  }),
  publicUrl: url({
    flag: 'public-url',
    env: 'UNTAG_PUBLIC_URL',
    help: 'Origin of the API for clients and QR codes',
    protocols: ['http:', 'https:'],
  }),
  securityContact: url({
    flag: 'security-contact',
    env: 'UNTAG_SECURITY_CONTACT',
    help: 'Contact for security reports, such as mailto:security@shop.example. Makes /.well-known/security.txt',
    protocols: ['mailto:', 'https:'],
  }),
  publicMqttUrl: url({
    flag: 'public-mqtt-url',
    env: 'UNTAG_PUBLIC_MQTT_URL',
    help: 'Address of the MQTT broker for agents',
    protocols: ['mqtt:', 'mqtts:'],
  }),
  ...tlsFiles,
  tlsOn: choice({
    flag: 'tls-on',
    env: 'UNTAG_TLS_ON',
    help: 'Listeners with TLS. mqtt: only the MQTT broker, if a proxy serves HTTPS',
    values: ['both', 'mqtt'],
    fallback: 'both',
  }),
  mqttUrl: brokerUrl,
  mqttCa: text({
    flag: 'mqtt-ca',
    env: 'UNTAG_MQTT_CA',
    help: 'File with the private CA of the outside broker, PEM',
    placeholder: 'FILE',
  }),
  brokerLoginSecret: text({
    flag: 'broker-login-secret',
    env: 'UNTAG_BROKER_LOGIN_SECRET',
    help: 'Answer the logins of an EMQX broker that sends this secret. See docs/guides/brokers.md',
    placeholder: 'SECRET',
    isSecret: true,
  }),
  silentMinutes: wholeNumber({
    flag: 'silent-minutes',
    env: 'UNTAG_SILENT_MINUTES',
    help: 'Raise an exception if an agent is silent, a device is not ready or a policy does not arrive for this time, minutes. 0: never',
    placeholder: 'N',
    fallback: 15,
    min: 0,
    max: 10_080,
  }),
  minFreeMb: wholeNumber({
    flag: 'min-free-mb',
    env: 'UNTAG_MIN_FREE_MB',
    help: 'Raise an exception if less is free on the disk of --data, MiB. 0: never',
    placeholder: 'N',
    fallback: 1_024,
    min: 0,
    max: 1_000_000,
  }),
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
  metricsHost: text({
    flag: 'metrics-host',
    env: 'UNTAG_METRICS_HOST',
    help: 'Address of /metrics to listen on. The default serves this machine only',
    placeholder: 'HOST',
    fallback: '127.0.0.1',
  }),
  rateLimit: wholeNumber({
    flag: 'rate-limit',
    env: 'UNTAG_RATE_LIMIT',
    help: 'Requests per second for each key. 0 means no limit',
    placeholder: 'N',
    fallback: 50,
    min: 0,
    max: 1_000_000,
  }),
  ...openIdSettings,
  trustedProxies: text({
    flag: 'trusted-proxies',
    env: 'UNTAG_TRUSTED_PROXIES',
    help: 'Addresses of proxies whose X-Forwarded-For the cloud trusts, separated by commas',
    placeholder: 'LIST',
  }),
  workers: wholeNumber({
    flag: 'workers',
    env: 'UNTAG_WORKERS',
    help: 'Number of processes that share the ports. More than 1 need --database-url',
    placeholder: 'N',
    fallback: 1,
    min: 1,
    max: 64,
  }),
  drainDelay: wholeNumber({
    flag: 'drain-delay',
    env: 'UNTAG_DRAIN_DELAY',
    help: 'Seconds between SIGTERM and the last new connection. /readyz answers 503. Needs --database-url and --mqtt-url',
    placeholder: 'SECONDS',
    fallback: 3,
    min: 0,
    max: 300,
  }),
  allowPrivateTargets,
  imagesBucket: url({
    flag: 'images-bucket',
    env: 'UNTAG_IMAGES_BUCKET',
    help: 'Store pictures in this S3-compatible bucket instead of a folder',
    protocols: ['http:', 'https:'],
  }),
  imagesRegion: text({
    flag: 'images-region',
    env: 'UNTAG_IMAGES_REGION',
    help: 'Region of the bucket',
    placeholder: 'REGION',
    fallback: 'us-east-1',
  }),
  imagesAccessKeyId: text({
    flag: 'images-access-key-id',
    env: 'UNTAG_IMAGES_ACCESS_KEY_ID',
    help: 'Access key id for the bucket',
    placeholder: 'ID',
  }),
  imagesSecretAccessKey: text({
    flag: 'images-secret-access-key',
    env: 'UNTAG_IMAGES_SECRET_ACCESS_KEY',
    help: 'Secret access key for the bucket',
    placeholder: 'SECRET',
    isSecret: true,
  }),
  logLevel: logLevel('info'),
  json: jsonLines,
}

export const START_OPTIONS = {
  port: CLOUD_OPTIONS.port,
  mqttPort: CLOUD_OPTIONS.mqttPort,
  edgePort: port({
    flag: 'edge-port',
    env: 'UNTAG_EDGE_PORT',
    help: 'Port of the station and gate pages. 0 chooses a free port',
    fallback: 8090,
  }),
  data: dataDir(
    'var/demo',
    'Folder for data and keys, with a folder cloud (as for untag cloud) and edge (as for untag edge)',
  ),
  // Not UNTAG_DATABASE_URL: the demonstration must not write into the database of a real cloud.
  databaseUrl: url({
    flag: 'database-url',
    env: 'UNTAG_DEMO_DATABASE_URL',
    help: 'Use this PostgreSQL database instead of SQLite. It must be empty at the first start',
    protocols: POSTGRES_PROTOCOLS,
    isSecret: true,
  }),
  allowPrivateTargets,
  logLevel: logLevel('error'),
  json: jsonLines,
}
