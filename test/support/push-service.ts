import { createDecipheriv, createECDH, hkdfSync, randomBytes } from 'node:crypto'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createLocalJWKSet, jwtVerify } from 'jose'
import type { Json } from './cloud.ts'

/** A subscribed browser: its data for the application server, and the decryption of messages (RFC 8291, 8188). */
export interface Browser {
  endpoint: string
  keys: { p256dh: string; auth: string }
  /** Decrypts a message. */
  text(message: Buffer): string
  /** Decrypts a message and parses it as JSON. */
  read(message: Buffer): Json
}

/** A request that a push service received. */
export interface Pushed {
  path: string
  headers: IncomingHttpHeaders
  body: Buffer
}

/** Creates a browser with this endpoint. `known`: its private key and secret, base64url; random by default. */
export function newBrowser(endpoint: string, known?: { privateKey: string; auth: string }): Browser {
  const own = createECDH('prime256v1')
  if (known) own.setPrivateKey(known.privateKey, 'base64url')
  else own.generateKeys()
  const publicKey = own.getPublicKey()
  const auth = known ? Buffer.from(known.auth, 'base64url') : randomBytes(16)
  const browser: Browser = {
    endpoint,
    keys: { p256dh: publicKey.toString('base64url'), auth: auth.toString('base64url') },
    read: (message) => JSON.parse(browser.text(message)),
    text(message) {
      const salt = message.subarray(0, 16)
      const keyLength = message.readUInt8(20)
      const sender = message.subarray(21, 21 + keyLength)
      const sealed = message.subarray(21 + keyLength)
      const info = Buffer.concat([Buffer.from('WebPush: info\0'), publicKey, sender])
      const input = Buffer.from(hkdfSync('sha256', own.computeSecret(sender), auth, info, 32))
      const key = Buffer.from(hkdfSync('sha256', input, salt, 'Content-Encoding: aes128gcm\0', 16))
      const nonce = Buffer.from(hkdfSync('sha256', input, salt, 'Content-Encoding: nonce\0', 12))
      const cipher = createDecipheriv('aes-128-gcm', key, nonce).setAuthTag(sealed.subarray(-16))
      const padded = Buffer.concat([cipher.update(sealed.subarray(0, -16)), cipher.final()])
      const end = padded.lastIndexOf(2)
      return padded.subarray(0, end).toString('utf8')
    },
  }
  return browser
}

/**
 * Starts a push service (RFC 8030) on a real socket. `answers` are its next responses; afterwards it responds with 201.
 */
export async function startPushService(): Promise<{
  origin: string
  pushed: Pushed[]
  answers: { status: number; headers?: Record<string, string> }[]
  close(): Promise<void>
}> {
  const pushed: Pushed[] = []
  const answers: { status: number; headers?: Record<string, string> }[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      pushed.push({ path: request.url ?? '', headers: request.headers, body: Buffer.concat(chunks) })
      const { status, headers } = answers.shift() ?? { status: 201 }
      response.writeHead(status, { location: '/message/1', ...headers }).end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    pushed,
    answers,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  }
}

/** Verifies the token of a request like a push service (RFC 8292), with the key of the browser's subscription. */
export async function verifyVapid(
  authorization: string,
  publicKey: string,
  audience: string,
  now?: Date,
): Promise<Json> {
  const { t, k } = /^vapid t=(?<t>[^,]+), ?k=(?<k>.+)$/.exec(authorization)?.groups ?? {}
  if (k !== publicKey) throw new Error('another key than the browser subscribed with')
  const point = Buffer.from(publicKey, 'base64url')
  const jwk = {
    kty: 'EC',
    crv: 'P-256',
    x: point.subarray(1, 33).toString('base64url'),
    y: point.subarray(33).toString('base64url'),
  }
  const { payload } = await jwtVerify(t ?? '', createLocalJWKSet({ keys: [jwk] }), {
    audience,
    algorithms: ['ES256'],
    ...(now && { currentDate: now }),
  })
  return payload
}
