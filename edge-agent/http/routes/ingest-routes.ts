import type { Context, Hono } from 'hono'
import { MAX_PUSHED_BYTES, WRONG_SECRET } from '../../../device-drivers/http-ingest/driver.ts'
import type { WebhookCapability } from '../../../device-drivers/kit/driver.ts'
import { capabilitiesOf, type DeviceEntry } from '../../../device-drivers/registry.ts'
import { readJson, textOfBytes } from '../../../device-drivers/kit/protocol/json-lines.ts'
import type { PushPort } from '../../../device-drivers/transports/memory.ts'
import type { RateLimitedLog } from '../../../policy/rate-limited-log.ts'
import { deadline, type Platform } from '../../../policy/platform.ts'
import { secretsEqual } from '../../../policy/secrets-equal.ts'
import { GrowingBytes } from '../../../policy/growing-bytes.ts'
import { addressOf } from '../access.ts'
import { fail, refuseAddress, refuseHost, REFUSED } from '../fail.ts'
import { peerRateLimit } from '../../peers/store-agents.ts'

/** Request limit per device: a burst of `BURST`, then `PER_SECOND`. */
const BURST = 100
const PER_SECOND = 50
/**
 * Bytes that a request may have; each further share of this size counts as a request. Some 8,000 reads a second, eight
 * times as many as a reader makes, leave the agent free for its other lanes.
 */
const BYTES_PER_REQUEST = 16 * 1_024
const TOO_MANY = `at most ${PER_SECOND} requests, or ${(PER_SECOND * BYTES_PER_REQUEST) / 1_024} KiB, a second: let the reader send several reads at a time, and each tag once`
const OVER_LIMIT = Buffer.from(
  `requests over the limit of ${PER_SECOND} a second, or ${(PER_SECOND * BYTES_PER_REQUEST) / 1_024} KiB\n`,
)
/** Time limit for a busy driver to accept the body, ms. */
const PUSH_TIMEOUT_MS = 2_000
export const INGEST_PATH = '/ingest/'

interface IngestParts {
  /** The present devices. The answer is a new list after each change. */
  devices(): readonly DeviceEntry[]
  port: PushPort
  /** Values of the header `Host` that this agent accepts. */
  hosts(): readonly string[]
  platform: Platform
  /** Log of requests with a wrong secret. */
  refusals: Pick<RateLimitedLog, 'write'>
}

interface Pusher extends WebhookCapability {
  readonly deviceId: string
  tokens: number
  at: number
}

/** Returns the secret from a bearer token, a basic password or X-Untag-Secret. Readers support one of these. */
function secretIn(c: Context): string | undefined {
  const authorization = c.req.header('authorization') ?? ''
  const bearer = /^Bearer (\S{1,200})$/i.exec(authorization)?.[1]
  if (bearer !== undefined) return bearer
  const basic = /^Basic ([A-Za-z0-9+/=]{1,600})$/i.exec(authorization)?.[1]
  const login = basic === undefined ? undefined : Buffer.from(basic, 'base64').toString('utf8')
  return login?.slice(login.indexOf(':') + 1) ?? c.req.header('x-untag-secret')
}

/**
 * Returns the body, or only its start if the body is too long. Reads nothing of a body that announces too many bytes.
 * Counts the bytes, because Content-Length may be missing or wrong.
 */
async function readBody(c: Context): Promise<{ body: Buffer; isWhole: boolean }> {
  const stream = c.req.raw.body
  const announced = Number(c.req.header('content-length') ?? 0)
  if (announced > MAX_PUSHED_BYTES) return { body: Buffer.from(`a body of ${announced} bytes`), isWhole: false }
  const bytes = new GrowingBytes()
  for await (const part of (stream ?? []) as unknown as AsyncIterable<Uint8Array>) {
    bytes.append(part)
    if (bytes.size > MAX_PUSHED_BYTES) return { body: Buffer.from(bytes.whole().subarray(0, 1_024)), isWhole: false }
  }
  return { body: Buffer.from(bytes.whole()), isWhole: true }
}

/**
 * Refuses a body without JSON, or with too much of it. Readers also send JSON with another content type, and the agent
 * accepts that. Parses only the first value, because the driver reads all.
 */
function refuseText(c: Context, text: string): Response | undefined {
  const { items, excess } = readJson(text, 1)
  if (excess !== undefined) return fail(c, 413, 'payload-too-large', `the body is ${excess}: send less at a time`)
  if (text.trim() === '' || items.length > 0) return undefined
  return /^application\/json *(;|$)/i.test(c.req.header('content-type') ?? '')
    ? fail(c, 400, 'invalid-argument', 'the body is not valid JSON')
    : fail(c, 415, 'unsupported-media-type', 'send application/json')
}

function tooMany(c: Context, seconds: number, text: string): Response {
  c.header('retry-after', String(seconds))
  return fail(c, 429, 'rate-limited', text)
}

/** Passes the reason of a refusal to the driver as a text that is no JSON, so that the state of the device shows it. */
function reportRefusal({ port, platform }: Pick<IngestParts, 'port' | 'platform'>, name: string, line: Buffer): void {
  const limit = deadline(platform.timers, PUSH_TIMEOUT_MS)
  void port.push(name, line, limit.signal).finally(limit.done)
}

function mayPass(pusher: Pusher, nowMs: number): boolean {
  pusher.tokens = Math.min(BURST, pusher.tokens + ((nowMs - pusher.at) / 1_000) * PER_SECOND)
  pusher.at = nowMs
  if (pusher.tokens < 1) return false
  pusher.tokens--
  return true
}

/**
 * Adds `POST` and `PUT /ingest/NAME`, which receive reads from readers. NAME and secret belong to a configured device
 * with the capability `webhook`.
 */
export function ingestRoutes(app: Hono, parts: IngestParts): void {
  const { devices, port, hosts, platform, refusals } = parts
  const now = () => platform.clock.elapsed()
  const pushers = new Map<string, Pusher>()
  const wrongSecrets = peerRateLimit(platform.clock, REFUSED)
  let known: readonly DeviceEntry[] = []

  function addPushers(): void {
    const present = devices()
    if (present === known) return
    known = present
    for (const device of present) {
      const { webhook } = capabilitiesOf(device)
      const name = webhook?.name.toLowerCase()
      if (!webhook || name === undefined || pushers.has(name)) continue
      pushers.set(name, { ...webhook, name, deviceId: device.deviceId, tokens: BURST, at: now() })
    }
  }

  /** Returns null for a wrong secret or an unknown name. The HTTP answer is the same in both cases. */
  function authenticated(c: Context): Pusher | null {
    const pusher = pushers.get((c.req.param('name') ?? '').toLowerCase())
    const isRight = secretsEqual(pusher?.secret ?? 'no such device', secretIn(c) ?? '')
    if (pusher && isRight) return pusher
    if (pusher) {
      refusals.write(
        { deviceId: pusher.deviceId },
        'a request with reads has a wrong secret: compare the reader’s settings with the configuration',
        `secret of ${pusher.deviceId}`,
      )
      reportRefusal(parts, pusher.name, WRONG_SECRET)
    }
    return null
  }

  app.on(['POST', 'PUT'], '/ingest/:name', async (c) => {
    addPushers()
    if (pushers.size === 0) return refuseAddress(c)
    const address = addressOf(c) ?? ''
    // The right secret passes whatever others of its address sent: behind a proxy, all clients have one address. It has
    // at least 16 characters, so guesses at any rate find none.
    const pusher = authenticated(c)
    if (!pusher) {
      const wait = wrongSecrets.wait(address)
      if (wait > 0)
        return tooMany(c, wait, 'too many requests of this address had a wrong secret: wait, then try again')
      wrongSecrets.take(address)
      return fail(c, 401, 'unauthenticated', 'the secret of the device is missing or wrong')
    }
    if (!hosts().includes(c.req.header('host') ?? '')) {
      const line = Buffer.from('a request to a host name that "hosts" in the configuration lacks\n')
      reportRefusal(parts, pusher.name, line)
      return refuseHost(c)
    }
    if (!mayPass(pusher, now())) {
      reportRefusal(parts, pusher.name, OVER_LIMIT)
      return tooMany(c, Math.ceil((1 - pusher.tokens) / PER_SECOND), TOO_MANY)
    }
    const { body, isWhole } = await readBody(c)
    // May become negative: the next requests then wait for this one.
    pusher.tokens -= Math.floor(body.length / BYTES_PER_REQUEST)
    const text = textOfBytes(body)
    const limit = deadline(platform.timers, PUSH_TIMEOUT_MS)
    // The driver also receives bodies that the agent cannot read, because it reports them. Line ends never occur inside
    // JSON strings, so spaces can replace them.
    const isAccepted = await port
      .push(pusher.name, Buffer.from(`${text.replaceAll(/[\r\n]/g, ' ')}\n`), limit.signal)
      .finally(limit.done)
    if (!isWhole) return fail(c, 413, 'payload-too-large', `send at most ${MAX_PUSHED_BYTES} bytes at a time`)
    const refusal = refuseText(c, text)
    if (refusal) return refusal
    return isAccepted
      ? c.json({ success: true })
      : fail(c, 503, 'unavailable', 'the device is starting or busy: send the request again')
  })
}
