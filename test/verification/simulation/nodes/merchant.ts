import { CLOUD_ORIGIN } from './cloud-node.ts'
import type { Core } from '../virtual/core.ts'
import { request, type HttpServer, type SimResponse } from '../virtual/http.ts'
import type { Wire } from '../virtual/wire.ts'

export type Json = Record<string, unknown>

/** Final result of a call. */
export type CallResult = { ok: true; body: Json } | { ok: false; status: number; reason: string }

/** A program of a merchant. The program retries with the same Idempotency-Key until the cloud answers. */
export interface Merchant {
  /** Resolves to the answer, also for an error status. Resolves to undefined if every attempt fails. */
  call(operation: string, body: Json, options?: { tries?: number; key?: string }): Promise<CallResult | undefined>
}

export interface MerchantParts {
  core: Core
  name: string
  apiKey: string
  server: HttpServer
  wire: Wire
}

const ANSWER_WITHIN_MS = 5_000
const TRIES = 12

/** Creates a program with this API key. */
export function merchant({ core, name, apiKey, server, wire }: MerchantParts): Merchant {
  const { scheduler, trace } = core
  const chance = core.chance.fork(`merchant ${name}`)
  let calls = 0

  async function once(operation: string, text: string, key: string): Promise<SimResponse | undefined> {
    const gaveUp = new AbortController()
    const cancel = scheduler.after(ANSWER_WITHIN_MS, () => gaveUp.abort())
    const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json', 'idempotency-key': key }
    try {
      return await request(
        { url: `${CLOUD_ORIGIN}/api/v1/${operation}`, method: 'POST', headers, body: text },
        { wire, server, scheduler, signal: gaveUp.signal },
      )
    } catch {
      return undefined
    } finally {
      cancel()
    }
  }

  return {
    async call(operation, body, { tries = TRIES, key = `${name}-${++calls}` } = {}) {
      const text = JSON.stringify(body)
      for (let n = 0; n < tries; n++) {
        const answer = await once(operation, text, key)
        const json = answer === undefined ? undefined : (JSON.parse(answer.text) as Json)
        trace.add(
          name,
          `${operation} ${answer?.status ?? 'no answer'} ${typeof json?.['reason'] === 'string' ? json['reason'] : ''}`,
        )
        if (answer?.status === 200 && json) return { ok: true, body: json }
        const reason = String(json?.['reason'] ?? json?.['code'] ?? '')
        const isLater =
          answer === undefined || answer.status >= 500 || answer.status === 429 || reason === 'idempotency_in_progress'
        if (!isLater) return { ok: false, status: answer.status, reason }
        await scheduler.pause(chance.between(500, 1_000) * 2 ** Math.min(n, 5))
      }
      return undefined
    },
  }
}
