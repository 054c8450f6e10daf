import { z } from 'zod'
import { LinkFault, type ByteLink, type LinkFaultCode } from './byte-link.ts'
import { connectSocket, openTcp, openTls } from './socket-link.ts'

const INSTALL =
  'install the packages pcscd and libccid (apt install pcscd libccid) and start it (systemctl enable --now pcscd.socket)'

const CODES: Record<string, [LinkFaultCode, string]> = {
  ENOENT: ['missing', `pcscd is not there; ${INSTALL}`],
  ECONNREFUSED: ['refused', 'pcscd is not running; start it (systemctl enable --now pcscd.socket)'],
  EACCES: ['forbidden', 'no permission; run the agent as a user that may open this socket'],
}

/**
 * Connects to the Unix socket of pcscd, the Linux daemon for smart-card and NFC readers. One connection serves one
 * client, which can use all readers. Rejects with a `LinkFault`.
 */
async function openPcscd(path: string, signal: AbortSignal): Promise<ByteLink> {
  if (process.platform !== 'linux') throw new LinkFault('unsupported', 'pcscd runs on Linux only; leave link.via out')
  const explain = (error: NodeJS.ErrnoException) => {
    const [code, text] = CODES[error.code ?? ''] ?? (['lost', `pcscd broke the connection (${error.message})`] as const)
    return new LinkFault(code, `${path}: ${text}`, { cause: error })
  }
  return connectSocket({ path }, signal, { address: path, noAnswer: 'pcscd takes no connections', explain })
}

const ADDRESS = /^(\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9._-]+):(\d{1,5})$/

function splitAddress(address: string): { host: string; port: number } | null {
  const match = ADDRESS.exec(address)
  const port = Number(match?.[2])
  if (!match?.[1] || port < 1 || port > 65_535) return null
  return { host: match[1].replace(/^\[|\]$/g, ''), port }
}

/** A device reached over the network: `{ "tcp": "10.0.0.7:502" }`. */
export const TcpLink = z.strictObject({
  tcp: z
    .string({ error: 'give host and port, for example "10.0.0.7:502"' })
    .refine((value) => splitAddress(value) !== null, {
      error: 'give host and port, for example "10.0.0.7:502" or "[fe80::1]:502"',
    })
    .meta({ description: 'host:port of the device or serial device server' }),
})

/** A device on a serial port; default 8N1. */
export const SerialLink = z.strictObject({
  serial: z
    .string({ error: 'give the path of the port, best its stable name below /dev/serial/by-id' })
    .min(1, { error: 'give the path of the port, best its stable name below /dev/serial/by-id' })
    .meta({ description: 'path of the port, best /dev/serial/by-id/…' }),
  baudRate: z
    .int({ error: 'give the speed in bits per second as set on the device, for example 9600' })
    .min(300, { error: 'give 300 to 921600 bits per second' })
    .max(921_600, { error: 'give 300 to 921600 bits per second' }),
  dataBits: z.union([z.literal(7), z.literal(8)], { error: 'use 7 or 8' }).default(8),
  parity: z.enum(['none', 'even', 'odd'], { error: 'use "none", "even" or "odd"' }).default('none'),
  stopBits: z.union([z.literal(1), z.literal(2)], { error: 'use 1 or 2' }).default(1),
})

/** A serial port or TCP address. */
export const LinkSettings = z.union([TcpLink, SerialLink], {
  error: 'give {"tcp": "host:port"} or {"serial": "/dev/serial/by-id/…", "baudRate": 9600}',
})
export type LinkSettings = z.infer<typeof LinkSettings>

/** Default path of pcscd's socket. */
export const PCSCD_SOCKET = '/run/pcscd/pcscd.comm'

/** An NFC or smart-card reader: `{ "pcsc": "ACR1552" }`. */
export const PcscLink = z.strictObject(
  {
    pcsc: z
      .string({ error: 'give the name of the reader or a part of it, as untag doctor lists it' })
      .min(1, { error: 'give the name of the reader or a part of it, as untag doctor lists it' })
      .max(127, { error: 'at most 127 characters' })
      .meta({ description: 'name of the reader or a part of it that fits only one' }),
    socket: z
      .string({ error: `give the path of pcscd’s socket, or leave it out for ${PCSCD_SOCKET}` })
      .regex(/^\/.{1,106}$/, { error: `give the path of pcscd’s socket, or leave it out for ${PCSCD_SOCKET}` })
      .optional()
      .meta({ description: `socket of pcscd; default ${PCSCD_SOCKET}` }),
    via: z
      .enum(['pcscd', 'nfc-pcsc'], {
        error: 'use "pcscd" (Linux) or "nfc-pcsc", or leave it out for what this system has',
      })
      .optional()
      .meta({ description: 'how the reader is reached; default pcscd on Linux, elsewhere the package nfc-pcsc' }),
  },
  { error: (issue) => (issue.code === 'invalid_type' ? 'give {"pcsc": "name of the reader"}' : undefined) },
)
export type PcscLink = z.infer<typeof PcscLink>

/** Name of the Linux daemon, for messages. */
export const PCSCD = 'pcscd'

/** Text for error messages: what this link connects to, pcscd or PC/SC. */
export const pcscService = (link: PcscLink): string => (usesNfcPcsc(link) ? 'PC/SC' : PCSCD)

/** True if the package `nfc-pcsc` reaches this reader; false if the link uses pcscd's socket. */
export function usesNfcPcsc({ via }: PcscLink, system: NodeJS.Platform = process.platform): boolean {
  return via === undefined ? system !== 'linux' : via === 'nfc-pcsc'
}

const HOST = /^(?:\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9._-]+)(?::\d{1,5})?$/
const hostError = {
  error: 'give the host, with a port if it is not the usual one, for example "10.0.0.9" or "10.0.0.9:8443"',
}
const host = z
  .string(hostError)
  .regex(HOST, hostError)
  .refine((value) => splitAddress(value) !== null || splitAddress(`${value}:1`) !== null, hostError)
const fingerprintError = { error: 'give the SHA-256 of the certificate, 64 hex digits with or without colons' }
const Fingerprint = z
  .string(fingerprintError)
  .regex(/^[0-9A-Fa-f]{2}(?::?[0-9A-Fa-f]{2}){31}$/, fingerprintError)
  .meta({ description: 'SHA-256 of the only accepted certificate; default: any certificate that this machine trusts' })

/** A device that serves HTTP: `{ "https": "10.0.0.9", "fingerprint": "…" }` or `{ "http": "10.0.0.9:8080" }`. */
export const WebLink = z.union(
  [
    z.strictObject({
      https: host.meta({ description: 'host of the device, default port 443' }),
      fingerprint: Fingerprint.optional(),
    }),
    z.strictObject({
      http: host.meta({ description: 'host of the device, default port 80; passwords are sent unencrypted' }),
    }),
  ],
  { error: 'give {"https": "host", "fingerprint": "…"} or {"http": "host"}' },
)
export type WebLink = z.infer<typeof WebLink>

/** A web link with a channel name. Links with different channel names are separate connections to one device. */
export type WebChannel = WebLink & { readonly channel?: string }

const pushError = {
  error: 'give the last part of the address that the device sends to: letters, digits and hyphens, such as "gate-1"',
}

/** A device that sends requests to the agent: `{ "push": "gate-1" }` for `/ingest/gate-1`. */
export const PushLink = z.strictObject(
  { push: z.string(pushError).regex(/^[A-Za-z0-9-]{1,64}$/, pushError) },
  { error: 'give {"push": "gate-1"}' },
)
export type PushLink = z.infer<typeof PushLink>

const brokerLogin = {
  user: z
    .string({ error: 'give the user name at the broker' })
    .min(1, { error: 'give the user name at the broker' })
    .max(128)
    .optional(),
  password: z.string({ error: 'give the password at the broker' }).max(256).optional(),
}

/** MQTT 3.1.1 §3.1.2.9 forbids a password without a user name. */
const hasUserOfPassword = ({ user, password }: { user?: string | undefined; password?: string | undefined }) =>
  password === undefined || user !== undefined
const userMissing = { error: 'give the user that the password belongs to', path: ['user'] }

/** A device that publishes to an MQTT broker: `{ "mqtt": "10.0.0.5", "user": "…", "password": "…" }`. */
export const MqttLink = z.union(
  [
    z
      .strictObject({
        mqtts: host.meta({ description: 'host of the broker, default port 8883' }),
        fingerprint: Fingerprint.optional(),
        ...brokerLogin,
      })
      .refine(hasUserOfPassword, userMissing),
    z
      .strictObject({
        mqtt: host.meta({
          description: 'host of the broker, default port 1883; passwords are sent unencrypted',
        }),
        ...brokerLogin,
      })
      .refine(hasUserOfPassword, userMissing),
  ],
  { error: 'give {"mqtts": "host"} or {"mqtt": "host"} of the broker, with "user" and "password" where it wants them' },
)
export type MqttLink = z.infer<typeof MqttLink>

/** All kinds of links. */
export type AnyLink = LinkSettings | PcscLink | WebChannel | PushLink | MqttLink

/** Host and port of a web or MQTT link, with the default port of its scheme. */
function hostAndPort(link: WebLink | MqttLink): { scheme: string; host: string; port: number; text: string } {
  const [scheme, address, defaultPort] =
    'https' in link
      ? (['https', link.https, 443] as const)
      : 'http' in link
        ? (['http', link.http, 80] as const)
        : 'mqtts' in link
          ? (['mqtts', link.mqtts, 8_883] as const)
          : (['mqtt', link.mqtt, 1_883] as const)
  const { host: name, port } = splitAddress(address) ??
    splitAddress(`${address}:${defaultPort}`) ?? { host: address, port: defaultPort }
  return { scheme, host: name, port, text: `${name.includes(':') ? `[${name}]` : name}:${port}`.toLowerCase() }
}

/** Key of the physical link. Devices whose settings have equal keys share one link. */
export function linkKey(settings: AnyLink): string {
  if ('https' in settings || 'http' in settings) {
    const { scheme, text } = hostAndPort(settings)
    return `${scheme}:${text}${settings.channel === undefined ? '' : ` (${settings.channel})`}`
  }
  if ('pcsc' in settings) {
    const { pcsc, socket, via } = settings
    return `pcsc:${pcsc}${socket === undefined ? '' : ` at ${socket}`}${via === undefined ? '' : ` by ${via}`}`
  }
  if ('mqtts' in settings || 'mqtt' in settings) {
    const { scheme, text } = hostAndPort(settings)
    return `${scheme}:${text}${settings.user === undefined ? '' : ` as ${settings.user}`}`
  }
  if ('push' in settings) return `push:${settings.push.toLowerCase()}`
  return 'tcp' in settings ? `tcp:${settings.tcp.toLowerCase()}` : `serial:${settings.serial}`
}

/** Mode of a link, such as `9600 8N1`, or `tcp`. */
export function linkMode(settings: LinkSettings): string {
  if ('tcp' in settings) return 'tcp'
  return `${settings.baudRate} ${settings.dataBits}${settings.parity[0]?.toUpperCase()}${settings.stopBits}`
}

/** Value of the `Host` header for this link. */
export function webHost(link: WebLink): string {
  return hostAndPort(link).text
}

/** Opens the real link. Rejects with a `LinkFault`. */
export async function openLink(settings: AnyLink, signal: AbortSignal): Promise<ByteLink> {
  if ('pcsc' in settings) {
    if (usesNfcPcsc(settings))
      throw new LinkFault('unsupported', 'the package nfc-pcsc is loaded in a process of its own')
    return openPcscd(settings.socket ?? PCSCD_SOCKET, signal)
  }
  if ('tcp' in settings) {
    const { host, port } = splitAddress(settings.tcp) ?? { host: settings.tcp, port: 0 }
    return openTcp(host, port, signal)
  }
  if ('https' in settings || 'http' in settings || 'mqtts' in settings || 'mqtt' in settings) {
    const { host: name, port } = hostAndPort(settings)
    return 'https' in settings || 'mqtts' in settings
      ? openTls(name, port, settings.fingerprint, signal)
      : openTcp(name, port, signal)
  }
  if ('push' in settings)
    throw new LinkFault('unsupported', 'a device that calls is reached through the agent’s own HTTP only')
  const { openSerial } = await import('./serial.ts')
  const { serial: path, baudRate, dataBits, parity, stopBits } = settings
  return openSerial({ path, baudRate, dataBits, parity, stopBits }, signal)
}
