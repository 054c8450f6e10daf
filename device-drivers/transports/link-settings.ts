import { z } from 'zod'
import type { ByteLink } from './byte-link.ts'
import { openPcscd } from './pcscd.ts'
import { openTcp } from './tcp.ts'

const ADDRESS = /^(\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9._-]+):(\d{1,5})$/

function parts(address: string): { host: string; port: number } | null {
  const match = ADDRESS.exec(address)
  const port = Number(match?.[2])
  if (!match?.[1] || port < 1 || port > 65_535) return null
  return { host: match[1].replace(/^\[|\]$/g, ''), port }
}

/** A device reached over the network: `{ "tcp": "10.0.0.7:502" }`. */
export const TcpLink = z.strictObject({
  tcp: z
    .string({ error: 'give host and port, for example "10.0.0.7:502"' })
    .refine((value) => parts(value) !== null, { error: 'give host and port, for example "10.0.0.7:502" or "[fe80::1]:502"' })
    .meta({ description: 'host:port of the device or serial device server' }),
})

/** A device on a serial port; 8N1 unless told otherwise. */
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

/** Where a device is reached. */
export const LinkSettings = z.union([TcpLink, SerialLink], {
  error: 'give {"tcp": "host:port"} or {"serial": "/dev/serial/by-id/…", "baudRate": 9600}',
})
export type LinkSettings = z.infer<typeof LinkSettings>

/** Where pcscd listens unless told otherwise. */
export const PCSCD_SOCKET = '/run/pcscd/pcscd.comm'

/** A reader that pcscd drives: `{ "pcsc": "ACR1552" }`. */
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
  },
  { error: (issue) => (issue.code === 'invalid_type' ? 'give {"pcsc": "name of the reader"}' : undefined) },
)
export type PcscLink = z.infer<typeof PcscLink>

/** Every way to reach a device. */
export type AnyLink = LinkSettings | PcscLink

/** Equal for two settings that mean the same physical link, so that it is opened once. */
export function linkKey(settings: AnyLink): string {
  if ('pcsc' in settings) return settings.socket === undefined ? `pcsc:${settings.pcsc}` : `pcsc:${settings.pcsc} at ${settings.socket}`
  return 'tcp' in settings ? `tcp:${settings.tcp.toLowerCase()}` : `serial:${settings.serial}`
}

/** How a serial link is set up, such as `9600 8N1`; `tcp` for a network link. */
export function linkMode(settings: LinkSettings): string {
  if ('tcp' in settings) return 'tcp'
  return `${settings.baudRate} ${settings.dataBits}${settings.parity[0]?.toUpperCase()}${settings.stopBits}`
}

/** Opens the real link. Rejects with a `LinkFault`. */
export async function openLink(settings: AnyLink, signal: AbortSignal): Promise<ByteLink> {
  if ('pcsc' in settings) return openPcscd(settings.socket ?? PCSCD_SOCKET, signal)
  if ('tcp' in settings) {
    const { host, port } = parts(settings.tcp) ?? { host: settings.tcp, port: 0 }
    return openTcp(host, port, signal)
  }
  const { openSerial } = await import('./serial.ts')
  const { serial: path, baudRate, dataBits, parity, stopBits } = settings
  return openSerial({ path, baudRate, dataBits, parity, stopBits }, signal)
}
