import { createCloud, type Cloud } from '../../../../cloud/cloud.ts'
import type { KeyFiles } from '../../../../cloud/platform/authority/key-files.ts'
import type { Log } from '../../../../cloud/platform/foundation/log.ts'
import type { CloudConfig } from '../../../../cloud/platform/foundation/config.ts'
import type { OutgoingAnswer, OutgoingRequest } from '../../../../cloud/platform/outgoing/outgoing-http.ts'
import type { Database } from '../../../../cloud/platform/persistence/database.ts'
import { virtualPlatform, type VirtualPlatform } from '../../simulation/virtual/virtual-platform.ts'
import type { PspBooks } from '../../../../simulators/services/psp-books.ts'
import { merchantSystems } from './merchant-systems.ts'

/** JSON object in a request or answer. */
export type Json = Record<string, unknown>

/** One HTTP request to the cloud. */
export interface HttpRequest {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array<ArrayBuffer>
  /** The operation waits for a thread of this process: it hashes a PIN or reads an image. */
  readonly isSlow?: boolean
}

/** The cloud's answer. */
export interface HttpReply {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** The parsed body, if it is a JSON object. */
  readonly json: Json | undefined
}

/** The real cloud in this process, on virtual time and without sockets. */
export interface ServedCloud {
  readonly cloud: Cloud
  readonly database: Database
  readonly platform: VirtualPlatform
  /** The payment provider of every live store. */
  readonly books: PspBooks
  send(request: HttpRequest): Promise<HttpReply>
  /** Waits for `work`. Moves virtual time if the work needs time. */
  settled<T>(work: Promise<T>, isSlow?: boolean): Promise<T>
  /** Moves virtual time forward, so that jobs run. */
  pass(ms: number): Promise<void>
  /** The errors that the cloud logged since the last call. */
  takeErrors(): string[]
  stop(): Promise<void>
}

export const ORIGIN = 'https://cloud.sim'
export const API = '/api/v1'

const CONFIG: CloudConfig = {
  baseUrl: `${ORIGIN}${API}`,
  mqttUrl: 'mqtt://cloud.sim:1883',
  rateLimit: 0,
  publishableRateLimit: 0,
  // This check is off, as in production, because the fuzzer itself compares answers with their schemas.
  checkAnswers: false,
  allowPrivateTargets: true,
  trustedProxies: [],
}

/** Number of event loop turns without a result after which virtual time moves on. */
const TURNS = 40
/** Number of such turns while a thread works. */
const SLOW_TURNS = 2_000_000
const NEVER_MS = 3_600_000

/** What differs from the usual cloud. */
export interface CloudChanges {
  readonly config?: Partial<CloudConfig>
  /** Answers instead of the systems of the merchants. Undefined: they answer. */
  outgoing?(request: OutgoingRequest): Promise<OutgoingAnswer> | undefined
}

/** Starts the cloud on an open database. */
export async function serveCloud(
  database: Database,
  keyFiles: KeyFiles,
  time: { seed: number; startMs: number },
  changes: CloudChanges = {},
): Promise<ServedCloud> {
  const platform = virtualPlatform(time)
  const { books, outgoing } = merchantSystems(platform.clock)
  const errors: string[] = []
  const log: Log = {
    info: () => undefined,
    warn: () => undefined,
    error: (fields, message) => void errors.push(`${message}: ${causeOf(fields)}`),
  }
  const images = new Map<string, Uint8Array>()
  const cloud = await createCloud({
    config: { ...CONFIG, ...changes.config },
    platform,
    log,
    database,
    keyFiles,
    outgoing: { send: (request, signal) => changes.outgoing?.(request) ?? outgoing.send(request, signal) },
    images: {
      put: (name, bytes) => Promise.resolve(void images.set(name, bytes)),
      get: (name) => Promise.resolve(images.get(name)),
    },
  })

  /** Waits for `work`. Moves virtual time only if the event loop alone brings no result. */
  async function settled<T>(work: Promise<T>, isSlow = false): Promise<T> {
    let isDone = false
    const done = () => void (isDone = true)
    work.then(done, done)
    for (let passed = 0; passed < NEVER_MS; passed += 1_000) {
      const turns = isSlow ? SLOW_TURNS : TURNS
      for (let turn = 0; turn < turns && !isDone; turn++) await new Promise((resolve) => setImmediate(resolve))
      if (isDone) return work
      await platform.advance(1_000)
    }
    throw new Error('the cloud did not answer within an hour of virtual time')
  }

  return {
    cloud,
    database,
    platform,
    books,
    async send({ method, path, headers, body, isSlow }) {
      const init = { method, headers, ...(body !== undefined && { body }) }
      const response = await settled(Promise.resolve(cloud.app.request(`${ORIGIN}${path}`, init)), isSlow)
      return replyOf(response, await settled(response.text()))
    },
    settled,
    async pass(ms) {
      // Each overdue job runs once, as after a sleep of the machine.
      platform.sleep(Math.max(0, ms - 1_000))
      await platform.advance(Math.min(ms, 1_000))
    },
    takeErrors: () => errors.splice(0),
    async stop() {
      await settled(cloud.stop())
      await database.close()
    },
  }
}

/** The reply with this text as its body. */
export function replyOf({ status, headers }: Response, text: string): HttpReply {
  return { status, headers, text, json: objectOf(text) }
}

function causeOf(fields: Readonly<Record<string, unknown>>): string {
  const { err } = fields
  return err instanceof Error ? (err.stack ?? err.message) : JSON.stringify(fields)
}

function objectOf(text: string): Json | undefined {
  if (!text.startsWith('{')) return undefined
  try {
    return JSON.parse(text) as Json
  } catch {
    return undefined
  }
}
