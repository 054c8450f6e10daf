import { fetchTrusting, type SendRequest } from './tls/private-ca.ts'
import { ANSWER_LIMIT, type Fetch } from '../edge-agent/link/wire/http-client.ts'

/**
 * `fetch` for an agent, with a limit for the decompressed response. The server may be an attacker instead of the cloud
 * or the receipt home. An endless response must not exhaust the agent's memory.
 */
export const boundedFetch: Fetch = boundedBy((url, init) => fetch(url, init))

/** `boundedFetch` that also trusts the certificates of a private CA, if there are any. */
export function agentFetch(ca: string | undefined): Fetch {
  return ca === undefined ? boundedFetch : boundedBy(fetchTrusting(ca))
}

function boundedBy(send: SendRequest): Fetch {
  return async (url, init) => {
    const { status, body } = await send(url, init)
    return { status, text: (onPart) => textOf(body, onPart) }
  }
}

async function textOf(body: ReadableStream<Uint8Array> | null, onPart: () => void): Promise<string> {
  const parts: Uint8Array[] = []
  let size = 0
  // An exception in the loop closes the connection.
  for await (const part of body ?? []) {
    onPart()
    size += part.length
    if (size > ANSWER_LIMIT) throw new Error(`the answer has over ${ANSWER_LIMIT} bytes`)
    parts.push(part)
  }
  return Buffer.concat(parts).toString('utf8')
}
