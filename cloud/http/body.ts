import type { Context } from 'hono'
import { Failure } from '../operations/failure.ts'
import { parseJsonBody } from '../operations/json-body.ts'

/** The JSON object in the request body, never more than `limit` bytes of it. */
export async function readJsonBody(c: Context, limit: number): Promise<Record<string, unknown>> {
  const type = c.req.header('content-type')
  if (type !== undefined && !/^application\/([\w.+-]+\+)?json *(;|$)/i.test(type)) {
    throw new Failure('unsupported-media-type', `send the body as application/json, not ${type.slice(0, 80)}`)
  }
  const text = await readText(c, limit).catch((error: unknown) => {
    // Whoever hung up hears nothing of it; it is no fault of ours either.
    throw error instanceof Failure ? error : new Failure('invalid-argument', 'the body was cut off')
  })
  return parseJsonBody(text)
}

function tooLarge(limit: number): Failure {
  return new Failure('payload-too-large', `the body is over ${limit} bytes`)
}

async function readText(c: Context, limit: number): Promise<string> {
  const announced = c.req.header('content-length')
  if (announced !== undefined) {
    if (Number(announced) > limit) throw tooLarge(limit)
    return decode(await c.req.arrayBuffer())
  }
  const body = c.req.raw.body
  if (!body) return ''
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of body as unknown as AsyncIterable<Uint8Array>) {
    size += chunk.length
    if (size > limit) throw tooLarge(limit)
    chunks.push(chunk)
  }
  return decode(Buffer.concat(chunks))
}

const strictly = new TextDecoder('utf-8', { fatal: true, ignoreBOM: false })

/** What is no UTF-8 must not become part of a name or an id. */
function decode(bytes: ArrayBuffer | Uint8Array): string {
  try {
    return strictly.decode(bytes)
  } catch {
    throw new Failure('invalid-argument', 'the body is not valid UTF-8')
  }
}
