import type { Context, Hono, Next } from 'hono'
import type { z } from 'zod'
import type { TillRight } from '../../ledger/pairings.ts'
import type { Agent } from '../../runtime.ts'
import { TillRefusal } from '../../decisions/assess-sale.ts'
import { FairTurns } from '../../decisions/fair-turns.ts'
import { nameCountOf, type NamedTags } from '../../../policy/till-sale.ts'
import { untrustedReason } from '../../trust/revocation/untrusted-ledger.ts'
import type { Access } from '../access.ts'
import { fail, failField, failUnpaired, reply } from '../fail.ts'
import { failTooLarge, isShortBody, readBody, SALE_BODY_LIMIT } from '../read-request.ts'
import { SaleRequest, SaleReturnRequest, VoidSaleRequest } from '../request-schemas.ts'

/** Maximum number of sales that one program sends at once. Each is one row of a shared commit. */
const SALES_LIMIT = 25

/** Adds the routes for tills: sales, voids and returns (ADR till-sales). */
export function saleRoutes(app: Hono, agent: Agent, access: Access): void {
  /** A large report takes as long as a hundred decisions: one at a time, with pauses. */
  const turns = new FairTurns(agent.platform)
  /** Number of requests that each program has open, by its pairing. */
  const open = new Map<string, number>()

  /** Admits programs with this right, before their body is read. */
  const admit = (right: TillRight) => async (c: Context, next: Next) => {
    if (!isShortBody(c, SALE_BODY_LIMIT)) return failTooLarge(c, SALE_BODY_LIMIT)
    const caller = access.callerOf(c)
    if (caller === undefined) return failUnpaired(c)
    if (!caller.rights?.includes(right)) return failRight(c, right)
    const count = open.get(caller.id) ?? 0
    if (count >= SALES_LIMIT) {
      c.header('retry-after', '1')
      return fail(
        c,
        503,
        'too_many_requests',
        `this program has ${SALES_LIMIT} open requests: send this one again in a second`,
      )
    }
    open.set(caller.id, count + 1)
    return next().finally(() => {
      const left = (open.get(caller.id) ?? 1) - 1
      if (left > 0) open.set(caller.id, left)
      else open.delete(caller.id)
    })
  }

  /** Reads a report of a program. The right counts again when the body has arrived, and a large report has its turn. `isOfOneTill`: about a sale of one till. */
  async function read<S extends z.ZodType>(
    c: Context,
    schema: S,
    right: TillRight,
    isOfOneTill = true,
  ): Promise<z.output<S> | Response> {
    const body = await readBody(c, schema, SALE_BODY_LIMIT)
    if (body instanceof Response) return body
    const sender = access.callerOf(c)
    if (sender && isLarge(body)) await turns.next(sender.id)
    const caller = access.callerOf(c)
    if (caller === undefined) return failUnpaired(c)
    if (!caller.rights?.includes(right)) return failRight(c, right)
    const { tillId = '' } = body as { tillId?: string }
    if (isOfOneTill && caller.tillId !== undefined && tillId !== caller.tillId) return failTill(c, caller.tillId)
    const doubt = untrustedReason(agent.ledger, agent.clock.now().nowMs)
    if (doubt) {
      c.header('retry-after', '60')
      return fail(c, 503, 'ledger_unavailable', `nothing is recorded, because the ledger is not trusted (${doubt})`)
    }
    return body
  }

  app.post('/v1/sales', admit('sales'), async (c) => {
    const sale = await read(c, SaleRequest, 'sales')
    if (sale instanceof Response) return sale
    const { id, rights } = access.callerOf(c) ?? {}
    return answer(c, async () =>
      reply(c, 'recordSale', await agent.sales.sell(sale, rights?.includes('returns') === true, id)),
    )
  })
  app.post('/v1/sales/void', admit('returns'), async (c) => {
    const body = await read(c, VoidSaleRequest, 'returns')
    if (body instanceof Response) return body
    const { reason, ...name } = body
    return answer(c, async () => reply(c, 'voidSale', await agent.sales.void(name, reason, access.callerOf(c)?.id)))
  })
  app.post('/v1/returns', admit('returns'), async (c) => {
    // Goods may come back at another till.
    const body = await read(c, SaleReturnRequest, 'returns', false)
    if (body instanceof Response) return body
    return answer(c, async () => reply(c, 'recordReturn', await agent.sales.takeBack(body, access.callerOf(c)?.id)))
  })
}

/** Tags of a report that need no turn of their own. */
const FEW_TAGS = 50

/** True for reports of many tags, and for those of a whole sale, which may have many. */
function isLarge(body: unknown): boolean {
  const { lines = [], ...named } = body as NamedTags & { lines?: readonly NamedTags[] }
  const count = nameCountOf([named, ...lines])
  return count > FEW_TAGS || (count === 0 && !('occurredAt' in named && lines.length > 0))
}

function failRight(c: Context, right: TillRight): Response {
  return fail(c, 403, 'right_missing', `this program may not report ${right}: pair it with --may ${right}`)
}

function failTill(c: Context, tillId: string): Response {
  return fail(c, 403, 'till_missing', `this program is paired as the till ${tillId}: send it as tillId`)
}

/** Runs a report, and answers a refusal. */
async function answer(c: Context, run: () => Promise<Response>): Promise<Response> {
  try {
    return await run()
  } catch (error) {
    if (!(error instanceof TillRefusal)) throw error
    const { code, message, path } = error
    if (code === 'invalid') return failField(c, path ?? '', 'invalid', message)
    if (code === 'sales_not_allowed' || code === 'right_missing') return fail(c, 403, code, message)
    if (code === 'sale_queue_full') return fail(c, 503, code, message)
    return fail(c, 409, code, message)
  }
}
