import type { CertificateStatus, ServerCertificate } from '../../cloud/platform/foundation/config.ts'
import { shownHost } from '../cloud-broker.ts'
import { WrongUsage, type Values } from '../options.ts'
import type { CLOUD_OPTIONS } from '../settings/cloud.ts'
import { openServerCertificate, tlsFilesOf, type CertificateParts } from './server-certificate.ts'

type TlsSettings = Pick<
  Values<typeof CLOUD_OPTIONS>,
  'tlsCert' | 'tlsKey' | 'tlsOn' | 'host' | 'publicUrl' | 'publicMqttUrl' | 'mqttUrl'
>

/** The certificates of the cloud's listeners. */
export interface CloudTls {
  /** Undefined if the API has no TLS. */
  readonly api: ServerCertificate | undefined
  readonly broker: ServerCertificate
  status(): CertificateStatus
  readonly stop: () => void
}

/** True if the API of these settings has TLS. */
export function hasApiTls({ tlsCert, tlsOn }: Pick<TlsSettings, 'tlsCert' | 'tlsOn'>): boolean {
  return tlsCert !== undefined && tlsOn === 'both'
}

/** Opens the certificate of the settings. Undefined without `--tls-cert`. Throws `WrongUsage` for a bad setting. */
export function openCloudTls(settings: TlsSettings, parts: Omit<CertificateParts, 'hosts'>): CloudTls | undefined {
  const files = tlsFilesOf(settings)
  if (!files) {
    if (settings.tlsOn === 'mqtt') throw new WrongUsage(['--tls-on mqtt needs --tls-cert and --tls-key'])
    return undefined
  }
  const faults = faultsOf(settings)
  if (faults.length > 0) throw new WrongUsage(faults)
  const certificate = openServerCertificate(files, { ...parts, hosts: hostsOf(settings) })
  return {
    api: hasApiTls(settings) ? certificate : undefined,
    broker: certificate,
    status: () => certificate.status(),
    stop: certificate.stop,
  }
}

/** Public addresses must match the listeners: the agents get these addresses. */
function faultsOf({ tlsOn, publicUrl, publicMqttUrl, mqttUrl }: TlsSettings): string[] {
  const isOutside = mqttUrl !== undefined
  return [
    ...(tlsOn === 'both' && publicUrl?.startsWith('http:') === true
      ? ['--public-url must begin with https://, because the API has TLS. Behind a proxy, use --tls-on mqtt']
      : []),
    ...(!isOutside && publicMqttUrl?.startsWith('mqtt:') === true
      ? ['--public-mqtt-url must begin with mqtts://, because the broker has TLS']
      : []),
    ...(isOutside && tlsOn === 'mqtt'
      ? ['--tls-on mqtt cannot be used with --mqtt-url: the outside broker has a certificate of its own']
      : []),
  ]
}

function hostsOf({ host, tlsOn, publicUrl, publicMqttUrl, mqttUrl }: TlsSettings): string[] {
  const own = shownHost(host)
  const api = tlsOn === 'both' ? [publicUrl === undefined ? own : new URL(publicUrl).hostname] : []
  const broker = mqttUrl === undefined ? [publicMqttUrl === undefined ? own : new URL(publicMqttUrl).hostname] : []
  return [...new Set([...api, ...broker].map((name) => name.replaceAll(/^\[|\]$/g, '')))]
}
