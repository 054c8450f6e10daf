import { ANSWER_LIMIT, type Fetch } from '../edge-agent/link/wire/http-client.ts'

/**
 * `fetch` for an agent, with a limit for the decompressed response. The server may be an attacker instead of the cloud
 * or the receipt home. An endless response must not exhaust the agent's memory.
 */
export const boundedFetch: Fetch = async (url, init) => {
  const { status, body } = await fetch(url, init)
  return { status, text: (onPart) => textOf(body, onPart) }
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
