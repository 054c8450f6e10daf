import type { Context } from 'hono'
import { Failure } from '../operations/failure.ts'
import { parseJsonBody } from '../operations/json-body.ts'

/** The JSON object in the request body, never more than `limit` bytes of it. */
export async function readJsonBody(c: Context, limit: number): Promise<Record<string, unknown>> {
  const type = c.req.header('content-type')
  if (type !== undefined && !/^application\/([\w.+-]+\+)?json *(;|$)/i.test(type)) {
    throw new Failure('unsupported-media-type', `send the body as application/json, not ${type.slice(0, 80)}`)
  }
  return parseJsonBody(await readText(c, limit))
}

function tooLarge(limit: number): Failure {
  return new Failure('payload-too-large', `the body is over ${limit} bytes`)
}

async function readText(c: Context, limit: number): Promise<string> {
  const announced = c.req.header('content-length')
  if (announced !== undefined) {
    if (Number(announced) > limit) throw tooLarge(limit)
    return c.req.text()
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
  return Buffer.concat(chunks).toString('utf8')
}
