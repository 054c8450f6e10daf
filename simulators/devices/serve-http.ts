import { encodeChunk, encodeResponse, httpParser } from '../../device-drivers/kit/protocol/http-message.ts'
import type { HttpHeaders } from '../../device-drivers/kit/protocol/http-message.ts'
import type { ByteLink } from '../../device-drivers/transports/byte-link.ts'

/** One request to a simulated device. */
export interface SimulatedRequest {
  readonly method: string
  readonly path: string
  readonly headers: HttpHeaders
  readonly body: string
}

/** A chunked body without end. */
export interface OpenBody {
  write(text: string): Promise<void>
  end(): Promise<void>
}

export type SimulatedAnswer =
  | { readonly status: number; readonly body?: string; readonly close?: boolean }
  /** Status 200 with a body that `stream` writes until the link ends. */
  | { readonly stream: (body: OpenBody) => void }
  /** No answer. */
  | 'silence'

const MAX_BODY_BYTES = 1_048_576
const NEVER_ABORTED = new AbortController().signal

/** Answers requests on one link, one after the other, until it ends. */
export async function serveHttp(
  link: ByteLink,
  answer: (request: SimulatedRequest) => SimulatedAnswer | Promise<SimulatedAnswer>,
): Promise<void> {
  const parser = httpParser('requests')
  const send = (bytes: Uint8Array) => link.write(bytes, NEVER_ABORTED)
  let head: Omit<SimulatedRequest, 'body'> | null = null
  let body: Uint8Array[] = []
  let size = 0

  /** Answers a request. Resolves with false if the connection must close. */
  async function respond(request: SimulatedRequest): Promise<boolean> {
    const answered = await answer(request)
    if (answered === 'silence') return true
    if ('stream' in answered) {
      await send(encodeResponse(200, { 'content-type': 'application/json' }))
      answered.stream({
        write: (text) => send(encodeChunk(text)).catch(() => {}),
        end: () =>
          send(encodeChunk('')).then(
            () => link.close(),
            () => {},
          ),
      })
      return true
    }
    await send(
      encodeResponse(
        answered.status,
        { 'content-type': 'application/json', ...(answered.close && { connection: 'close' }) },
        answered.body ?? '',
      ),
    )
    return !answered.close
  }

  try {
    for await (const chunk of link.bytes) {
      for (const piece of parser.push(chunk)) {
        if (piece.kind === 'request') {
          head = piece
          body = []
          size = 0
        } else if (piece.kind === 'data') {
          size += piece.bytes.length
          if (size > MAX_BODY_BYTES) return
          body.push(piece.bytes)
        } else if (head && !(await respond({ ...head, body: Buffer.concat(body).toString('utf8') }))) return
      }
      if (parser.fault !== null) return
    }
  } catch {
    // Ignores the error, because a broken link is like an unplugged device.
  } finally {
    await link.close()
  }
}
