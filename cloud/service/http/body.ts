import type { Context } from 'hono'
import { Failure } from '../../platform/foundation/failure.ts'
import { shares } from '../../platform/foundation/shared-slots.ts'
import { parseJsonBody } from '../../platform/operations/validation.ts'
import { GrowingBytes } from '../../../policy/growing-bytes.ts'

/** Runs the work of one large body in a turn of the event loop (`fairTurns`). */
export type InTurn = <T>(work: () => Promise<T>) => Promise<T>

/** Reads a JSON object of at most `limit` bytes. `rows`: see `parseJsonBody`. Throws 400, 413 or 415. */
export async function readJsonBody(
  c: Context,
  limit: number,
  inTurn?: InTurn,
  rows?: string,
): Promise<Record<string, unknown>> {
  const type = c.req.header('content-type')
  if (type !== undefined && !/^application\/([\w.+-]+\+)?json *(;|$)/i.test(type)) {
    throw new Failure('unsupported-media-type', `send the body as application/json, not ${type.slice(0, 80)}`)
  }
  const bytes = await readBytes(c, limit)
  const parse = () => parseJsonBody(decode(bytes), rows)
  return inTurn && bytes.length > WHOLE_LIMIT ? inTurn(async () => parse()) : parse()
}

/** Announced size of the body, at most `limit`, which also counts for a body that announces none. */
export function announcedSize(c: Context, limit: number): number {
  const announced = c.req.header('content-length') ?? (c.req.header('transfer-encoding') === undefined ? 0 : limit)
  return Math.min(limit, Number(announced))
}

/** Throws 413 if the body announces more than `limit` bytes. */
export function assertAnnounced(c: Context, limit: number): void {
  if (Number(c.req.header('content-length') ?? 0) > limit) throw tooLarge(limit)
}

/** Takes room for a body of a holder, and returns how to give it back. Throws 503 if there is none. */
export type TakeRoom = (holder: string, bytes: number) => () => void

/** Maximum number of bytes of large bodies that are on their way or in work, of one holder and in total. */
export const BODY_ROOM = { ofOne: 128 * 1024 * 1024, total: 512 * 1024 * 1024 }
/** Smaller bodies are not counted: the limits of connections and requests bound them. */
const COUNTED_FROM = 64 * 1024

/**
 * Memory for large bodies. A body takes its room before the first byte is read, so that slow or many uploads of one
 * holder leave room for the others. The function throws 503 if there is no room, and returns how to give it back.
 */
export function bodyRoom(): TakeRoom {
  const take = shares(BODY_ROOM)
  return (holder, bytes) => {
    if (bytes < COUNTED_FROM) return () => undefined
    const release = take(holder, bytes)
    if (release) return release
    throw new Failure('unavailable', 'too many large bodies are on their way: send them one after another', {
      retryAfter: 5,
    })
  }
}

function tooLarge(limit: number): Failure {
  return new Failure('payload-too-large', `the body is larger than ${limit} bytes`)
}

/** Reads a body of at most `limit` bytes. Throws 400 or 413. */
export async function readBytes(c: Context, limit: number): Promise<Uint8Array> {
  try {
    return await collect(c, limit)
  } catch (error) {
    // The client disconnected and gets no response. Throws a `Failure`, because other errors go into the error log.
    throw error instanceof Failure ? error : new Failure('invalid-argument', 'the body was cut off')
  }
}

/** Larger bodies are collected chunk by chunk, so that tiny chunks cost no memory, and each is parsed in its turn. */
const WHOLE_LIMIT = 65_536

async function collect(c: Context, limit: number): Promise<Uint8Array> {
  assertAnnounced(c, limit)
  const announced = c.req.header('content-length')
  if (announced !== undefined && Number(announced) <= WHOLE_LIMIT) return new Uint8Array(await c.req.arrayBuffer())
  const body = c.req.raw.body
  if (!body) return new Uint8Array()
  const bytes = new GrowingBytes()
  for await (const chunk of body as unknown as AsyncIterable<Uint8Array>) {
    bytes.append(chunk)
    if (bytes.size > limit) throw tooLarge(limit)
  }
  return bytes.whole()
}

const strictly = new TextDecoder('utf-8', { fatal: true, ignoreBOM: false })

/** Rejects invalid UTF-8, which would otherwise end up in names and ids as replacement characters. */
function decode(bytes: Uint8Array): string {
  try {
    return strictly.decode(bytes)
  } catch {
    throw new Failure('invalid-argument', 'the body is not valid UTF-8')
  }
}
