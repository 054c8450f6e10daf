import {
  OutgoingFault,
  type OutgoingAnswer,
  type OutgoingHttp,
} from '../../../../cloud/platform/outgoing/outgoing-http.ts'
import type { Clock } from '../../../../policy/platform.ts'
import { PspBooks } from '../../../../simulators/services/psp-books.ts'

export const PSP = 'http://psp.sim'
/** Simulated POS and ERP with the generic protocol (docs/reference/integrations.md). */
export const TILL = 'http://till.sim'
export const ERP = 'http://erp.sim'
/** URL that accepts webhooks. */
export const RECEIVER = 'http://hooks.sim/untag'

const LISTINGS: Readonly<Record<string, readonly object[]>> = {
  articles: [{ ean: '4006381333931', name: 'Marker', price: 1.99, vat: 19 }],
  stock: [{ ean: '4006381333931', quantity: 3 }],
  orders: [{ externalId: 'O-1', supplierId: 'S-1', orderedAt: '2026-11-19', lines: [] }],
  suppliers: [{ externalId: 'S-1', name: 'Lindwerk' }],
}

/**
 * Simulates all systems that a merchant can connect. These systems answer at once; other addresses refuse the
 * connection.
 */
export function merchantSystems(clock: Clock): { books: PspBooks; outgoing: OutgoingHttp } {
  const books = new PspBooks({ dialect: 'custom', nowMs: () => clock.wall() })
  books.moveTo(PSP)
  return {
    books,
    outgoing: {
      async send({ url, method, headers, body = '' }) {
        const { origin, pathname, searchParams } = new URL(url)
        if (origin === PSP) {
          const lower = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
          const answer = books.answer({ method, path: pathname, query: searchParams, headers: lower, body })
          return answerOf(answer.status, answer.body)
        }
        if (origin === TILL || origin === ERP) {
          const name = pathname.split('/').at(-1) ?? ''
          return answerOf(200, method === 'GET' ? { [name]: LISTINGS[name] ?? [] } : {})
        }
        if (url.startsWith(RECEIVER)) return answerOf(200, {})
        throw new OutgoingFault('connection_refused', 'refused')
      },
    },
  }
}

function answerOf(status: number, body: unknown): OutgoingAnswer {
  const text = body === undefined ? '' : JSON.stringify(body)
  return { status, headers: { 'content-type': 'application/json' }, body: new TextEncoder().encode(text), isCut: false }
}
