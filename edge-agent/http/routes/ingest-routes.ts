import type { Context, Hono } from 'hono'
import { MAX_PUSHED_BYTES } from '../../../device-drivers/drivers/http-ingest.ts'
import type { WebhookCapability } from '../../../device-drivers/drivers/capabilities.ts'
import { capabilitiesOf, type DeviceEntry } from '../../../device-drivers/drivers/registry.ts'
import type { PushPort } from '../../../device-drivers/transports/push-port.ts'
import type { RateLimitedLog } from '../../../policy/rate-limited-log.ts'
import { deadline, type Platform } from '../../../policy/platform.ts'
import { secretsEqual } from '../../../policy/secrets-equal.ts'
import { fail, refuseAddress } from '../fail.ts'

/** Request limit per device: a burst of `BURST`, then `PER_SECOND`. */
const BURST = 100
const PER_SECOND = 50
/** Time limit for a busy driver to accept the body, ms. */
const PUSH_TIMEOUT_MS = 2_000

export interface IngestParts {
  /** The present devices. The answer is a new list after each change. */
  devices(): readonly DeviceEntry[]
  port: PushPort
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
 * Returns the body, or null if the body is too long. Counts the bytes, because Content-Length may be missing or wrong.
 */
async function readBody(c: Context): Promise<Buffer | null> {
  const stream = c.req.raw.body
  if (!stream || Number(c.req.header('content-length') ?? 0) > MAX_PUSHED_BYTES) return stream ? null : Buffer.alloc(0)
  const parts: Uint8Array[] = []
  let size = 0
  for await (const part of stream as unknown as AsyncIterable<Uint8Array>) {
    size += part.length
    if (size > MAX_PUSHED_BYTES) return null
    parts.push(part)
  }
  return Buffer.concat(parts)
}

/**
 * Adds `POST` and `PUT /ingest/NAME`, which receive reads from readers. NAME and secret belong to a configured device
 * with the capability `webhook`.
 */
export function ingestRoutes(app: Hono, { devices, port, platform, refusals }: IngestParts): void {
  const now = () => platform.clock.elapsed()
  const pushers = new Map<string, Pusher>()
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
    if (pusher)
      refusals.write(
        { deviceId: pusher.deviceId },
        'a request with reads has a wrong secret: compare the reader’s settings with the configuration',
        `secret of ${pusher.deviceId}`,
      )
    return null
  }

  function mayPass(pusher: Pusher): boolean {
    pusher.tokens = Math.min(BURST, pusher.tokens + ((now() - pusher.at) / 1_000) * PER_SECOND)
    pusher.at = now()
    if (pusher.tokens < 1) return false
    pusher.tokens--
    return true
  }

  app.on(['POST', 'PUT'], '/ingest/:name', async (c) => {
    addPushers()
    if (pushers.size === 0) return refuseAddress(c)
    const pusher = authenticated(c)
    if (!pusher) return fail(c, 401, 'unauthenticated', 'the secret of the device is missing or wrong')
    if (!mayPass(pusher)) {
      c.header('retry-after', '1')
      return fail(
        c,
        429,
        'rate-limited',
        `at most ${PER_SECOND} requests a second: let the reader send several reads at a time`,
      )
    }
    if (!/^application\/json *(;|$)/i.test(c.req.header('content-type') ?? ''))
      return fail(c, 415, 'unsupported-media-type', 'send application/json')
    const body = await readBody(c)
    if (!body) return fail(c, 413, 'payload-too-large', `send at most ${MAX_PUSHED_BYTES} bytes at a time`)
    const text = body.toString('utf8')
    try {
      JSON.parse(text)
    } catch {
      return fail(c, 400, 'invalid-argument', 'the body is not valid JSON')
    }
    const limit = deadline(platform.timers, PUSH_TIMEOUT_MS)
    // Line ends never occur inside JSON strings, so spaces can replace them.
    const isAccepted = await port
      .push(pusher.name, Buffer.from(`${text.replaceAll(/[\r\n]/g, ' ')}\n`), limit.signal)
      .finally(limit.done)
    return isAccepted
      ? c.json({ success: true })
      : fail(c, 503, 'unavailable', 'the device is starting or busy: send the request again')
  })
}
